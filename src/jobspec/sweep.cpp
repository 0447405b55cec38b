#include "jobspec/sweep.hpp"

#include <algorithm>
#include <span>
#include <unordered_set>

#include <fmt/format.h>

#include "core/placeholders.hpp"
#include "jobspec/fingerprint.hpp"
#include "jobspec/launch_words.hpp"
#include "jobspec/values.hpp"

namespace berth {
namespace {

/// Every text but the commands that an axis may stand in.
template <class Job, class See>
void each_other_text(Job& job, See see) {
  std::for_each(job.payload.extra_env.begin(), job.payload.extra_env.end(), see);
  see(job.payload.cwd);
  see(job.payload.log);
}

/// Every text of a job that an axis may stand in.
template <class Job, class See>
void each_text(Job& job, See see) {
  for (auto& command : job.payload.commands) {
    std::for_each(command.argv.begin(), command.argv.end(), see);
  }
  each_other_text(job, see);
}

/// `{{word}}` loses its second braces where neither an axis nor a launch would take them.
std::string without_escapes(std::string_view text, std::span<const std::string_view> axes) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto rest = text.substr(at);
    const auto end = rest.starts_with("{{") ? rest.find("}}") : std::string_view::npos;
    const auto word = end == std::string_view::npos ? std::string_view() : rest.substr(2, end - 2);
    if (is_axis_name(word) && !is_launch_placeholder(word) && word != kFirstId &&
        std::find(axes.begin(), axes.end(), word) == axes.end()) {
      out += fmt::format("{{{}}}", word);
      at += end + 2;
    } else {
      out += text[at++];
    }
  }
  return out;
}

Status check_words(const Matrix& matrix, const JobSpec& job) {
  auto known = matrix.axis_names();
  known.insert(known.end(), kLaunchPlaceholders.begin(), kLaunchPlaceholders.end());
  known.push_back(kFirstId);
  Status status;
  const auto look = [&](const std::string& text) {
    for (const auto word : placeholders(text)) {
      if (status && std::find(known.begin(), known.end(), word) == known.end()) {
        const auto meant = closest(word, known);
        status =
            fail(ErrorCode::invalid,
                 fmt::format("nothing fills '{{{}}}'; {}", word,
                             meant.empty()
                                 ? fmt::format("'{{{{{}}}}}' gives the braces themselves", word)
                                 : fmt::format("did you mean '{{{}}}'?", meant)));
      }
    }
  };
  each_text(job, look);
  // The name is there before the job starts.
  known = matrix.axis_names();
  look(job.name);
  return status;
}

bool mentions_anywhere(const JobSpec& job, std::string_view axis) {
  bool found = mentions(job.name, axis);
  each_text(job, [&](const std::string& text) { found = found || mentions(text, axis); });
  return found;
}

/// A list of combinations may leave out what others have.
Status check_filled(const JobSpec& job, const Combination& combination, const Matrix& matrix) {
  for (const auto axis : matrix.axis_names()) {
    const bool has = std::any_of(combination.begin(), combination.end(),
                                 [&](const Binding& binding) { return binding.axis == axis; });
    if (!has && mentions_anywhere(job, axis)) {
      std::string shown;
      for (const auto& [name, value] : combination) {
        shown += fmt::format("{}{}={}", shown.empty() ? "" : " ", name, value);
      }
      return fail(ErrorCode::invalid,
                  fmt::format("the combination '{}' has no value for '{{{}}}'", shown, axis));
    }
  }
  return {};
}

JobSpec instance(const JobSpec& job, const Combination& combination) {
  JobSpec out = job;
  out.name = instance_name(job.name, combination);
  for (auto& command : out.payload.commands) {
    for (std::string& text : command.argv) {
      text = command.shell ? substitute_in_shell(text, combination) : substitute(text, combination);
    }
  }
  each_other_text(out, [&](std::string& text) { text = substitute(text, combination); });
  for (const auto& [axis, value] : combination) {
    out.payload.params.insert_or_assign(std::string(axis), std::string(value));
  }
  return out;
}

void warn_about_axes(const Matrix& matrix, const JobSpec& job, JobFile& file) {
  for (const auto axis : matrix.axis_names()) {
    if (const auto hides = hidden_word(axis); !hides.empty()) {
      file.warnings.push_back(hides);
    }
    if (!mentions_anywhere(job, axis)) {
      file.warnings.push_back(fmt::format(
          "axis '{0}' stands nowhere in the command, so its values change nothing; write {{{0}}} "
          "where it belongs",
          axis));
    }
  }
}

}  // namespace

Result<JobFile> make_sweep(const Matrix& matrix, const JobSpec& job) {
  TRY(check_words(matrix, job));
  const auto axes = matrix.axis_names();
  if (matrix.size() > kJobFileMostJobs) {
    return fail(ErrorCode::invalid,
                fmt::format("this makes more than {} jobs; sweep in parts", kJobFileMostJobs));
  }
  JobSpec open = job;
  if (open.name.empty()) {
    open.name = "sweep";
  }
  JobFile file;
  file.name = open.name;
  warn_about_axes(matrix, open, file);
  // Before anything is put in: values are nobody's to change.
  each_text(open, [&](std::string& text) { text = without_escapes(text, axes); });
  std::unordered_set<std::string> names;
  std::unordered_set<std::string> logs;
  bool shared_log = false;
  for (std::uint64_t i = 0; i < matrix.size(); ++i) {
    const auto combination = matrix.at(i);
    TRY(check_filled(open, combination, matrix));
    JobSpec one = instance(open, combination);
    if (const auto problem = name_problem(one.name); !problem.empty()) {
      return fail(ErrorCode::invalid, problem);
    }
    if (!names.insert(one.name).second) {
      return fail(
          ErrorCode::invalid,
          fmt::format("two jobs would be called '{}': a combination is there twice", one.name));
    }
    one.payload.fingerprint = fingerprint(one);
    shared_log = shared_log || (!one.payload.log.empty() && !logs.insert(one.payload.log).second);
    file.jobs.push_back(std::move(one));
  }
  if (shared_log) {
    file.warnings.emplace_back(
        "more than one job writes to the same log; put an axis into its name");
  }
  return file;
}

}  // namespace berth
