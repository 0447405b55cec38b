#pragma once
// The lines of a command file: blocks between blank lines, and what each line can be.

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "jobspec/diagnostic.hpp"

namespace berth {

struct CommandLine {
  enum class Kind : std::uint8_t {
    command,
    number,       ///< "20", "20.5", "20 #note", "20GB", "20 显存"
    pair,         ///< "1,20", "1,20 GB"
    near_number,  ///< was meant to be one of these: "20MB", "-1", digits of another width
  };

  Kind kind = Kind::command;
  Position at;             ///< of `text`
  std::string_view text;   ///< without blanks around it
  std::string_view value;  ///< of a number; of a pair, what is before the comma
  std::string_view
      second;           ///< of a pair, what is behind it; of what begins with a number, the rest
  bool memory = false;  ///< a number with a unit: no queue, no count
};

/// The lines of one task, without comments; never empty.
using CommandBlock = std::vector<CommandLine>;

/// Borrows from `text`, which has no byte order mark.
[[nodiscard]] std::vector<CommandBlock> split_blocks(std::string_view text);

/// What a line runs: without the quotes around it, if they are around all of it. Or why it cannot
/// be told what that is.
[[nodiscard]] std::expected<std::string, std::string> command_of(std::string_view line);

}  // namespace berth
