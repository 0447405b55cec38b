#pragma once
// How a command line becomes a job.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/event.hpp"
#include "core/job.hpp"
#include "core/rule_table.hpp"
#include "submit/environment.hpp"

namespace berth::cli {

/// The options of `berth add` and the command that follows them.
struct AddWords {
  std::vector<std::string> options;
  std::vector<std::string> command;
};
/// The first word that is not an option, nor the value of one, begins the command; so does what
/// follows "--". Words of the command that look like options are therefore left alone.
[[nodiscard]] AddWords split_add_words(const std::vector<std::string>& words);

/// Several words are executed as they are. One word that contains blanks or shell syntax goes to
/// bash; any other single word is the name of a program.
[[nodiscard]] Result<Command> make_command(std::vector<std::string> words);

/// Whether a command chooses its own GPUs, against what it will be given.
[[nodiscard]] bool sets_visible_devices(const Command& command);

/// Whether a job that is given GPUs chooses its own, by a command or by its variables.
[[nodiscard]] bool chooses_own_gpus(const JobSpec& job);

/// The current directory under the name the user knows it by ($PWD, where that is true).
[[nodiscard]] Result<std::string> current_directory();

/// `path` as an absolute one, from `base`. Not resolved: links stay what they are.
[[nodiscard]] std::string make_absolute(const std::string& path, const std::string& base);

/// "2", "1..4" or "0".
[[nodiscard]] Result<GpuCount> parse_gpu_count(std::string_view text);
/// "NAME=N".
[[nodiscard]] Result<std::pair<std::string, std::uint64_t>> parse_resource(std::string_view text);

/// "KEY=VALUE", with the canonical key of a rule that a job, or a batch, may have.
[[nodiscard]] Result<std::pair<std::string, std::string>> parse_rule(
    std::string_view text, RuleScope scope = RuleScope::any);

}  // namespace berth::cli
