#pragma once
// The rules of an instance as people set them: one table for the daemon, the command line, its help
// and the documentation.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "core/rules.hpp"

namespace berth {

struct RuleDef {
  std::string_view key;
  std::string_view type;  ///< "N", "SIZE", "TIME", "PERCENT"
  std::string_view help;
  std::string (*get)(const Rules& rules);
  /// An error does not name the key.
  Status (*set)(Rules& rules, std::string_view text);
};

/// Those with a fixed name.
[[nodiscard]] std::span<const RuleDef> rule_definitions();

// Besides these there is one rule per named resource and per queue.

inline constexpr std::string_view kResourcePrefix = "resources.";
inline constexpr std::string_view kResourceHelp = "how many of this resource there are";
inline constexpr std::string_view kQueueLimitHelp = "jobs of this queue that run at once; 0: any";

/// NAME of "resources.NAME".
[[nodiscard]] std::optional<std::string> resource_of_rule(std::string_view key);
/// NAME of "queue.NAME.limit".
[[nodiscard]] std::optional<std::string> queue_of_rule(std::string_view key);
[[nodiscard]] std::string queue_rule(std::string_view queue);

/// Sets a rule that lives in Rules: all but the limits of queues, which are only checked. The error
/// names the key, and the nearest one if there is none of this name.
[[nodiscard]] Status set_rule(Rules& rules, std::string_view key, std::string_view text);
[[nodiscard]] Result<std::uint32_t> parse_queue_limit(std::string_view key, std::string_view text);

/// A number of bytes or a time so that reading it again gives the same.
[[nodiscard]] std::string exact_size(Bytes bytes);
[[nodiscard]] std::string exact_duration(Millis time);

}  // namespace berth
