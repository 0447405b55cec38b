#pragma once
// What a job inherits from the shell it was submitted from, and how a command line becomes a job.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/event.hpp"
#include "core/job.hpp"

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

/// Whether a job should see this variable. Those that describe one terminal, one login or one
/// attempt are left out: they would be wrong later, and make equal environments differ.
[[nodiscard]] bool is_inherited(std::string_view name);

/// The environment of this process as a job should see it.
[[nodiscard]] Environment capture_environment(const char* const* environ,
                                              const std::string& instance_dir);

/// The current directory under the name the user knows it by ($PWD, where that is true).
[[nodiscard]] Result<std::string> current_directory();

/// `path` as an absolute one, from `base`. Not resolved: links stay what they are.
[[nodiscard]] std::string make_absolute(const std::string& path, const std::string& base);

/// Fills in environment, umask, niceness and a fresh client key.
[[nodiscard]] Status complete_submission(event::Submit& submit, const std::string& instance_dir);

/// "2", "1..4" or "0".
[[nodiscard]] Result<GpuCount> parse_gpu_count(std::string_view text);
/// "NAME=N".
[[nodiscard]] Result<std::pair<std::string, std::uint64_t>> parse_resource(std::string_view text);

}  // namespace berth::cli
