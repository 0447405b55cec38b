#pragma once
// What programs write when they fail, and what it means.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/units.hpp"

namespace berth {

/// What a line of a log tells of the failure.
enum class Symptom : std::uint8_t {
  gpu_memory,     ///< a GPU had no memory left
  gpu_memory_if,  ///< probably so, unless something else is said anywhere
  some_memory,    ///< of the GPU or of the host, it does not say which
  on_chip,        ///< of a GPU's small memory for one kernel: more VRAM does not help
  host_memory,    ///< the kernel ended a process for lack of memory
  code_bug,       ///< the program did something wrong on the GPU
  hardware,       ///< the card is broken
  no_device,      ///< no card was found where one should be
  aftermath,      ///< of the failure of another process; says nothing if something else is said
};

struct Signature {
  std::string_view text;  ///< in lower case
  Symptom symptom = Symptom::gpu_memory;
  std::string_view says;            ///< for people
  std::string_view only_with = {};  ///< counts only if this stands in the same line
  std::string_view not_with = {};   ///< does not count if this does
};

[[nodiscard]] std::span<const Signature> signatures();

/// A signature found in a log, and the line it stands in, in lower case.
struct Sighting {
  const Signature* signature = nullptr;
  std::string line;
};

/// The one that explains the failure: the last of those that speak for themselves, else the last of
/// the others.
[[nodiscard]] std::optional<Sighting> find_signature(std::string_view log_end);

/// What a message about GPU memory says in numbers. Absent: it does not say.
struct MemoryFigures {
  std::optional<Bytes> tried;   ///< asked for when there was no more
  std::optional<Bytes> total;   ///< of the card
  std::optional<Bytes> free;    ///< on it
  std::optional<Bytes> own;     ///< in use by the program itself
  std::optional<Bytes> others;  ///< in use by others
  bool guessed = false;         ///< `others` is what the other numbers do not explain
  /// In use by jobs that share the card and keep to what they were promised; no message says so.
  Bytes fellows = 0;

  friend bool operator==(const MemoryFigures&, const MemoryFigures&) = default;
};

/// `line` is in lower case.
[[nodiscard]] MemoryFigures read_figures(std::string_view line);

}  // namespace berth
