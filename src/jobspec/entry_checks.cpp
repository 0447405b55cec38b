#include "jobspec/entry_checks.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/placeholders.hpp"
#include "jobspec/launch_words.hpp"

namespace berth {
namespace {

constexpr std::string_view kDevices = "CUDA_VISIBLE_DEVICES";

/// Calls `see` for every single value in and below `node`.
void each_scalar(const Node& node, const std::function<void(const Node&)>& see) {
  if (node.kind == Node::Kind::scalar) {
    see(node);
  }
  for (const auto& item : node.items) {
    each_scalar(*item, see);
  }
  for (const auto& entry : node.entries) {
    each_scalar(*entry.value, see);
  }
}

/// Braces mean something else here often enough that a stranger in them may be meant.
bool may_have_braces(JobKey key) {
  return key == JobKey::run || key == JobKey::env;
}

/// When an attempt starts.
bool is_filled_later(JobKey key, std::string_view word) {
  if (word == kFirstId) {
    return key == JobKey::log || may_have_braces(key);
  }
  return key == JobKey::log ? is_log_placeholder(word)
                            : may_have_braces(key) && is_launch_placeholder(word);
}

/// Whether a value of CUDA_VISIBLE_DEVICES says: those it is given.
bool means_given_devices(std::string_view value) {
  if (value.starts_with('"') || value.starts_with('\'')) {
    value.remove_prefix(1);
  }
  return value.starts_with("{gpu_list}") || value.starts_with("{gpu_uuids}");
}

}  // namespace

void check_placeholders(const JobKeys& own, const JobContext& context, const Matrix& matrix,
                        Diagnostics& diagnostics, const Warn& warn) {
  const auto axes = matrix.axis_names();
  const auto* const written = own.get(JobKey::matrix);
  for (const auto axis : axes) {
    if (const auto hides = hidden_word(axis); !hides.empty() && written != nullptr) {
      warn(written->at, hides);
    }
  }
  const auto check = [&](JobKey key, const Node& node) {
    for (const auto word : placeholders(node.text)) {
      if (std::find(axes.begin(), axes.end(), word) != axes.end() || is_filled_later(key, word)) {
        continue;
      }
      const auto meant = closest(word, axes);
      if (meant.empty() && (may_have_braces(key) || key == JobKey::log)) {
        if (auto slip = slip_of(word); !slip.empty()) {
          warn(node.at, std::move(slip));
          continue;
        }
      }
      if (!matrix.declared()) {
        continue;
      }
      const auto hint =
          meant.empty() ? std::string() : fmt::format("; did you mean '{{{}}}'?", meant);
      if (!may_have_braces(key)) {
        diagnostics.add_once(node.at, fmt::format("'{{{}}}' names no axis of this job's matrix, "
                                                  "which has {}{}",
                                                  word, fmt::join(axes, ", "), hint));
      } else if (!meant.empty()) {
        warn(node.at,
             fmt::format("'{{{}}}' names no axis of this job's matrix and stays as it is{}", word,
                         hint));
      }
    }
  };
  for (std::size_t i = 0; i < kJobKeyNames.size(); ++i) {
    const auto key = static_cast<JobKey>(i);
    // `after` may use the names of other jobs as they are written, their axes included.
    const auto* node = context.get(own, key);
    if (key == JobKey::matrix || key == JobKey::after || key == JobKey::after_any ||
        key == JobKey::after_failed || key == JobKey::rules || node == nullptr) {
      continue;
    }
    each_scalar(*node, [&](const Node& scalar) { check(key, scalar); });
  }
  for (const auto* keys : {&own, &context.defaults}) {
    for (const RuleNode& rule : keys->rules()) {
      each_scalar(*rule.value, [&](const Node& scalar) { check(JobKey::rules, scalar); });
    }
  }
}

std::string slip_of(std::string_view word) {
  const auto meant = is_launch_placeholder(word) ? "" : closest(word, kLaunchPlaceholders);
  return meant.empty() ? std::string()
                       : fmt::format(
                             "'{{{}}}' stands for nothing and stays as it is; did you mean "
                             "'{{{}}}'?",
                             word, meant);
}

void check_devices(const JobKeys& own, const JobContext& context, const Warn& warn) {
  constexpr std::string_view kMessage =
      "this sets CUDA_VISIBLE_DEVICES itself, so the job may use other GPUs than those it is "
      "given; leave it out, or say 'gpus: 0'";
  const auto* gpus = context.get(own, JobKey::gpus);
  if (gpus != nullptr && gpus->text == "0") {
    return;
  }
  if (const auto* run = context.get(own, JobKey::run); run != nullptr) {
    each_scalar(*run, [&](const Node& scalar) {
      if (sets_visible_devices(scalar.text)) {
        warn(scalar.at, std::string(kMessage));
      }
    });
  }
  for (const auto* env : {own.get(JobKey::env), context.defaults.get(JobKey::env)}) {
    if (const auto* value = env == nullptr ? nullptr : env->find(kDevices);
        value != nullptr && !means_given_devices(value->text)) {
      return warn(value->at, std::string(kMessage));
    }
  }
}

void check_directories(const JobKeys& own, const JobContext& context, const JobSpec& job,
                       const LacksDirectory& lacks, std::set<std::string>& seen, const Warn& warn) {
  if (!lacks) {
    return;
  }
  for (const auto& [key, path] :
       {std::pair{JobKey::cwd, job.payload.cwd}, {JobKey::work_dir, job.payload.work_dir}}) {
    const Node* node = context.get(own, key);
    if (node != nullptr && seen.insert(path).second && lacks(path)) {
      warn(node->at, no_directory(kJobKeyNames[static_cast<std::size_t>(key)], path));
    }
  }
}

std::string no_directory(std::string_view key, std::string_view path) {
  return fmt::format("{} '{}' is no directory; make it before the job starts", key, path);
}

bool sets_visible_devices(std::string_view text) {
  for (std::size_t at = 0; (at = text.find(kDevices, at)) != std::string_view::npos;
       at += kDevices.size()) {
    const bool begins =
        at == 0 || std::string_view(" \t\n;&|(").find(text[at - 1]) != std::string_view::npos;
    const auto rest = text.substr(at + kDevices.size());
    if (begins && rest.starts_with('=') && !means_given_devices(rest.substr(1))) {
      return true;
    }
  }
  return false;
}

}  // namespace berth
