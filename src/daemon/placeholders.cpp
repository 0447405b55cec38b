#include "daemon/placeholders.hpp"

#include <algorithm>
#include <deque>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/placeholders.hpp"
#include "jobspec/launch_words.hpp"
#include "jobspec/matrix.hpp"

namespace berth {
namespace {

/// The words with their values, as the matrix of a job file has its axes: the braces mean the same
/// in both.
class Words {
 public:
  explicit Words(const LaunchFacts& facts)
      : values_{fmt::format("{}", fmt::join(facts.gpu_indices, ",")),
                fmt::format("{}", facts.gpus.size()),
                fmt::format("{}", fmt::join(facts.gpus, ",")),
                fmt::format("{}", facts.job.value),
                facts.batch ? fmt::format("{}", facts.batch.value) : std::string(),
                facts.uni_id,
                facts.work_dir,
                facts.log_path,
                facts.port ? fmt::format("{}", *facts.port) : std::string()} {}

  [[nodiscard]] Combination all() const { return those(kLaunchPlaceholders); }
  [[nodiscard]] Combination for_log() const { return those(kLogPlaceholders); }

 private:
  template <class Names>
  [[nodiscard]] Combination those(const Names& names) const {
    Combination found;
    for (std::size_t i = 0; i < kLaunchPlaceholders.size(); ++i) {
      if (std::ranges::find(names, kLaunchPlaceholders[i]) != names.end()) {
        found.push_back({kLaunchPlaceholders[i], values_[i]});
      }
    }
    return found;
  }

  std::array<std::string, kLaunchPlaceholders.size()> values_;
};

/// The text with the words put in, and with `{job_id~3}` as well: there are as many of those as
/// there are jobs, so the text tells which are asked for.
std::string fill(std::string_view text, const Combination& words, JobId job) {
  constexpr std::string_view kBegins = "{job_id~";
  if (text.find(kBegins) == std::string_view::npos) {
    return substitute(text, words);
  }
  Combination more = words;
  std::deque<std::string> ids;
  for (std::size_t at = 0; (at = text.find(kBegins, at)) != std::string_view::npos; ++at) {
    const auto word = text.substr(at + 1, text.find('}', at) - at - 1);
    if (const auto back = places_back(word); back && *back < job.value) {
      more.push_back({word, ids.emplace_back(fmt::format("{}", job.value - *back))});
    }
  }
  return substitute(text, more);
}

/// Of "NAME=value" the value alone: nobody names a variable with braces.
std::string_view value_of(std::string_view entry) {
  const auto equals = entry.find('=');
  return equals == std::string_view::npos ? std::string_view() : entry.substr(equals + 1);
}

}  // namespace

std::string fill_log_path(std::string_view pattern, const LaunchFacts& facts) {
  if (pattern.find('{') == std::string_view::npos) {
    return std::string(pattern);
  }
  const Words words(facts);
  return fill(pattern, words.for_log(), facts.job);
}

bool mentions_placeholder(const Payload& payload, std::string_view word) {
  const auto in_command = [word](const Command& command) {
    return std::ranges::any_of(command.argv,
                               [word](const std::string& text) { return mentions(text, word); });
  };
  return std::ranges::any_of(payload.commands, in_command) ||
         std::ranges::any_of(payload.extra_env, [word](const std::string& entry) {
           return mentions(value_of(entry), word);
         });
}

void fill_placeholders(Payload& payload, const LaunchFacts& facts) {
  const Words words(facts);
  const Combination all = words.all();
  for (Command& command : payload.commands) {
    for (std::string& text : command.argv) {
      text = fill(text, all, facts.job);
    }
  }
  for (std::string& entry : payload.extra_env) {
    const std::string_view value = value_of(entry);
    entry = entry.substr(0, entry.size() - value.size()) + fill(value, all, facts.job);
  }
}

}  // namespace berth
