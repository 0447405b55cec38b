#pragma once
// uni_id.json: what is known of each attempt of a batch, shared with the scripts it runs. Texts in,
// texts out; see state_directory.hpp for the file itself.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/self_report.hpp"

namespace berth {

/// What berth knows of an attempt.
struct UniEntry {
  std::string uni_id;
  std::optional<std::uint64_t> pid;  ///< none: not known; what stands there stays
  ReportedState state = ReportedState::running;
  std::uint32_t retry_count = 0;
  std::string error_type;  ///< of abnormal_exit

  friend bool operator==(const UniEntry&, const UniEntry&) = default;
};

/// What the script wrote of itself. Nothing when the text is broken or does not know it.
[[nodiscard]] SelfReport entry_of(std::string_view text, std::string_view uni_id);

/// The text with `entries` put in. Entries and keys that others wrote stay as they are: a script
/// knows its pid and what went wrong better. None: `text` is no JSON object.
[[nodiscard]] std::optional<std::string> merge_entries(std::string_view text,
                                                       const std::vector<UniEntry>& entries);

}  // namespace berth
