#pragma once
// The tasks of a command file, from its blocks.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "dialects/command_lines.hpp"
#include "dialects/dialect.hpp"

namespace berth {

/// What one block asks for.
struct CommandTask {
  std::uint32_t queue = 0;
  std::vector<std::string> commands;
  std::uint32_t gpus = 1;
  Bytes memory = 0;  ///< per GPU
  Position at;       ///< of its first line

  friend bool operator==(const CommandTask&, const CommandTask&) = default;
};

/// Which variant a file holds by its name: command_gpus*.txt, command*.txt; else by_file_name.
[[nodiscard]] DialectOptions::Cards cards_of_name(std::string_view file_name);

/// A block has one of the forms
///   commands, "queue,memory"                  for one GPU
///   queue, commands, memory                   for one GPU
///   queue, commands, number of GPUs, memory   for several
/// `cards` says which are allowed; by_file_name: unknown. What fits none, or two, is reported.
[[nodiscard]] std::vector<CommandTask> read_tasks(std::span<const CommandBlock> blocks,
                                                  DialectOptions::Cards cards,
                                                  Diagnostics& diagnostics);

/// Whether some block has one of the forms, whatever `cards` would say.
[[nodiscard]] bool has_a_task(std::span<const CommandBlock> blocks);

}  // namespace berth
