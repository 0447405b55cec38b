#pragma once
// People on the same machine who do not use berth: what their processes on a card mean for us.

#include <cstdint>
#include <optional>

#include "core/state.hpp"

namespace berth {

/// What strangers do on a card, by the rules of whoever wants it.
struct Strangers {
  bool present = false;  ///< some that matter
  bool others = false;   ///< and they are not all our own
  bool awaited = false;  ///< one is our own, and `foreign.own` says to wait for such
  Bytes memory = 0;      ///< of all of them, small ones included
  std::uint32_t utilization = 0;
  bool utilization_unknown = false;
  bool young = false;         ///< one of them has hardly begun
  bool young_others = false;  ///< and it is not our own
  bool own = false;           ///< one belongs to us, outside berth, however small
  bool alien = false;         ///< one does not, however small
  std::uint32_t ignored = 0;  ///< small ones that idle, and our own where the rules say so
};

/// `claimed`: attempts of ours could have been at work on the card when it was looked at. `self`:
/// whose processes outside berth are our own.
[[nodiscard]] Strangers strangers_on(const GpuFacts& facts, bool claimed, const ForeignRules& rules,
                                     std::optional<std::uint32_t> self);

/// Who works on the card that was not there, or did not work, when an attempt that gives way began.
enum class InTheWay : std::uint8_t { nobody, own_process, stranger };
[[nodiscard]] InTheWay in_the_way(const Gpu& gpu, const Rules& rules, Millis began,
                                  std::optional<std::uint32_t> self);

/// Whether strangers are on the card whom these rules wait for.
[[nodiscard]] bool is_disturbed(const Gpu& gpu, const ForeignRules& rules,
                                std::uint32_t max_utilization, std::optional<std::uint32_t> self);

/// When somebody who is in the way by these rules was last seen on a card that was given up.
[[nodiscard]] std::optional<Millis> last_disturbed(const Gpu& gpu, const Rules& rules);
/// From now on that is followed for these rules, too; what was before `since` is not known.
void watch(Gpu& gpu, const Rules& rules, Millis since);
/// Notes that it was so just now.
void note_disturbed(Gpu& gpu, const Rules& rules, Millis now);

}  // namespace berth
