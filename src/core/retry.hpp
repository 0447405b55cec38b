#pragma once
// What becomes of a job whose attempt has failed: tried again, when, where and with what, or not.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/classify.hpp"
#include "core/rules.hpp"

namespace berth {

/// What is known of the job and of the machine.
struct RetryCase {
  Request request;
  std::uint32_t retries = 0;          ///< asked for
  std::uint32_t retries_used = 0;     ///< of these
  std::uint32_t excused = 0;          ///< further ones, for what was not its fault
  std::uint64_t lot = 0;              ///< what the jitter is drawn from
  std::optional<Bytes> card = {};     ///< memory of the smallest card it had
  std::optional<Bytes> largest = {};  ///< of the largest card it may have
  std::optional<Bytes> peak = {};     ///< the most it was seen to use of one card
};

/// At whose cost a job is tried again.
enum class Charge : std::uint8_t {
  nobody,   ///< it counts nowhere
  retries,  ///< one of those it has asked for
  excused,  ///< one of those everybody has
};

struct Retry {
  bool again = false;
  Charge charge = Charge::nobody;
  Millis wait{0};                  ///< before it stands in line again
  bool elsewhere = false;          ///< on other cards, as long as there are any
  std::optional<Request> request;  ///< what it asks for from now on; none: as before
  std::string next;                ///< for people: what happens now; empty: nothing to say
};

[[nodiscard]] Retry plan_retry(const Finding& finding, const RetryCase& job,
                               const RetryRules& rules);

/// How long the `count`th retry (1 for the first) waits.
[[nodiscard]] Millis backoff(const RetryRules& rules, std::uint32_t count, std::uint64_t lot);

/// The rule for this class; none: as usual.
[[nodiscard]] std::optional<std::uint32_t> limit_of(const RetryRules& rules, FailureClass failure);

}  // namespace berth
