#pragma once
// Where the files of compete_gpu_retry are: a scheduler's directory with
//
//     command/                        command_gpu.txt, command_gpu_1.txt, command_gpus.txt, …
//     config/control_setting.yaml     how its console behaves
//     control/logs/log_bindings.json  which log belongs to which task
//     logs/                           what the daemon tells of its batches
//
// All of it is found from the directory of the command files.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "dialects/dialect.hpp"

namespace berth::compete {

using Cards = DialectOptions::Cards;

/// "single" or "multi"; anything else is not_found.
[[nodiscard]] Result<Cards> mode_from(std::string_view text);
[[nodiscard]] std::string_view to_string(Cards mode);

/// Numbers of command files; more would be a mistake.
inline constexpr std::uint32_t kMostConfigs = 9'999;
[[nodiscard]] Result<std::uint32_t> config_index_from(std::string_view text);

/// "command_gpu.txt", "command_gpus_2.txt".
[[nodiscard]] std::string config_file_name(Cards mode, std::uint32_t index);
/// And back; none: it is no such name, or not one of this mode.
[[nodiscard]] std::optional<std::uint32_t> config_index_of(Cards mode, std::string_view file_name);

struct Places {
  std::filesystem::path command_dir;
  std::filesystem::path scheduler_dir;

  [[nodiscard]] std::filesystem::path config(Cards mode, std::uint32_t index) const {
    return command_dir / config_file_name(mode, index);
  }
  /// What keeps apart those who change command files takes "….lock" of it.
  [[nodiscard]] std::string configs_lock() const { return (command_dir / ".berth").native(); }
  [[nodiscard]] std::string control_setting() const {
    return (scheduler_dir / "config" / "control_setting.yaml").native();
  }
  [[nodiscard]] std::string log_bindings() const {
    return (scheduler_dir / "control" / "logs" / "log_bindings.json").native();
  }
};

/// `command_dir` is absolute. The scheduler's directory is the one above a directory called
/// "command", else that directory itself, as for command files everywhere.
[[nodiscard]] Places places_of(const std::string& command_dir);

/// Where command files are when nothing is said: "berth/command" in the home directory.
[[nodiscard]] std::string usual_command_dir(const std::string& home);

/// Whether a value of `command_dir` can be one; the error says what is wrong with it.
[[nodiscard]] Status check_command_dir(std::string_view text);

}  // namespace berth::compete
