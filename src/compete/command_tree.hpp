#pragma once
// A command file as three levels: the file, its queues, the processes of each. Texts in, texts out.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "compete/places.hpp"
#include "dialects/command_blocks.hpp"
#include "jobspec/diagnostic.hpp"

namespace berth::compete {

struct CommandProcess {
  std::vector<std::string> commands;
  std::uint32_t gpus = 1;
  double memory_gib = 0;   ///< per GPU
  std::uint32_t line = 0;  ///< of its block in the file; 0: it comes from no file

  friend bool operator==(const CommandProcess&, const CommandProcess&) = default;
};

struct CommandQueue {
  std::uint32_t id = 0;
  std::vector<CommandProcess> processes;  ///< in the order of the file

  friend bool operator==(const CommandQueue&, const CommandQueue&) = default;
};

struct CommandTree {
  std::vector<CommandQueue> queues;  ///< by id
  std::vector<Diagnostic> mistakes;  ///< blocks that could not be read are not among the queues
  [[nodiscard]] std::size_t size() const;
};

[[nodiscard]] CommandTree read_tree(std::string_view text, const std::string& file_name,
                                    Cards mode);

/// The text of a file that reads back as `queues`, below the comments that `old` begins with. An
/// error names the first process that no command file can hold, and why.
[[nodiscard]] Result<std::string> write_tree(const std::vector<CommandQueue>& queues, Cards mode,
                                             std::string_view old);

/// A file without a task, with a comment on how to write one.
[[nodiscard]] std::string empty_config(Cards mode);

}  // namespace berth::compete
