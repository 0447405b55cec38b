#pragma once
// config.yaml and gpu_manage.yaml: how the tasks of a command file are scheduled.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/rules.hpp"
#include "jobspec/diagnostic.hpp"

namespace berth {

/// A path as it is written there, and where.
struct NamedPath {
  std::string path;
  Position at;
};

/// What such a file says, and what holds where it says nothing.
struct CommandConfig {
  Overrides rules;
  std::optional<NamedPath> work_dir;  ///< none: the parent of the script's directory
  std::optional<NamedPath> gpu_command_file;
  std::optional<NamedPath> gpus_command_file;
  std::optional<std::uint32_t> max_gpu;
  std::optional<std::uint32_t> listed_gpus;  ///< how many cards it may use; none: all there are
  std::vector<std::pair<Position, std::string>> warnings;
};

/// Mistakes are reported; what could be read comes back.
[[nodiscard]] CommandConfig read_command_config(std::string_view text, Diagnostics& diagnostics);

/// Whether a text is such a file: it names command files, or is a map with keys of one and none of
/// a job file.
[[nodiscard]] bool looks_like_command_config(std::string_view text);
/// Whether some key of it is one of such a file.
[[nodiscard]] bool has_config_key(std::string_view text);

/// Where commands run. `script_dir` is the directory that the files of a scheduler lie in.
[[nodiscard]] std::filesystem::path resolve_work_dir(const std::optional<NamedPath>& work_dir,
                                                     const std::filesystem::path& script_dir);

/// "command_gpu.txt" and 2: "command_gpu_2.txt"; 0: as it is.
[[nodiscard]] std::filesystem::path with_index(const std::filesystem::path& command_file,
                                               std::uint32_t index);
/// And back: 2 of "command_gpu_2.txt"; 0 where there is none.
[[nodiscard]] std::uint32_t index_of(const std::filesystem::path& command_file);

}  // namespace berth
