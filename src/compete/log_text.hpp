#pragma once
// A piece of a log: its last lines, or some bytes of it.

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace berth::compete {

inline constexpr std::uint64_t kLogPieceMost = 1024UL * 1024;
inline constexpr std::uint64_t kTailLinesUsual = 100;

/// With `offset` bytes from there on, else the last `tail` lines.
struct LogPiece {
  std::uint64_t tail = kTailLinesUsual;
  std::optional<std::uint64_t> offset;
  std::uint64_t limit = kLogPieceMost;  ///< bytes, at most kLogPieceMost
};

struct LogText {
  std::string content;       ///< UTF-8; what is none is replaced
  std::uint64_t offset = 0;  ///< where it begins
  std::uint64_t next = 0;    ///< where to go on
  std::uint64_t size = 0;    ///< of the file
  /// None: the file is too large to count them.
  std::optional<std::uint64_t> total_lines;
};

/// `path` is for messages. Reads no more than it needs, except to count lines.
[[nodiscard]] Result<LogText> read_log(const Fd& file, const std::string& path,
                                       const LogPiece& piece);

}  // namespace berth::compete
