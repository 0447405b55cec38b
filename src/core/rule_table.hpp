#pragma once
// The rules as people set them: one table for the daemon, job files, the command line, its help
// and the documentation.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "core/rules.hpp"

namespace berth {

/// Where a rule may be set.
enum class RuleScope : std::uint8_t {
  instance,
  batch,  ///< for the instance or a batch
  any,    ///< for the instance, a queue, a batch or a job
};

struct RuleDef {
  std::string_view key;   ///< dotted where rules belong together: "foreign.policy"
  std::string_view type;  ///< "N", "SIZE", "TIME", "PERCENT", "BOOL", "LIST" or the choices "a|b"
  RuleScope scope = RuleScope::instance;
  std::string_view help;
  std::string (*get)(const Rules& rules);
  /// An error does not name the key.
  Status (*set)(Rules& rules, std::string_view text);
};

/// Those with a fixed name.
[[nodiscard]] std::span<const RuleDef> rule_definitions();
/// The rule of this name, or of this other spelling of it ("retry.jitter").
[[nodiscard]] const RuleDef* find_rule(std::string_view key);
/// The name under which layers keep it; as it is if there is no such rule.
[[nodiscard]] std::string canonical_rule(std::string_view key);

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

/// Whether a queue, batch or job (`scope` any, batch, any) may have this rule with this value.
[[nodiscard]] Status check_override(std::string_view key, std::string_view text, RuleScope scope);
/// `rules` with a layer on top. What a layer holds has been checked when it was made.
void overlay(Rules& rules, const Overrides& layer);

/// A number of bytes or a time so that reading it again gives the same.
[[nodiscard]] std::string exact_size(Bytes bytes);
[[nodiscard]] std::string exact_duration(Millis time);

}  // namespace berth
