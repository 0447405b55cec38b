#pragma once
// What one instance of berth says on the claims board, as a text with a checksum.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

namespace berth {

inline constexpr std::size_t kBoardTextMax = 256 * kKiB;

enum class ClaimState : std::uint8_t {
  waiting,  ///< would like to be next on a card of another; keeps nobody from anything but a second
            ///< turn
  wanted,   ///< an intent, of which nothing has been started
  held,
};
[[nodiscard]] std::string_view to_string(ClaimState state);

/// One attempt's claim on one card.
struct BoardClaim {
  std::string gpu;  ///< UUID
  AttemptId attempt;
  Bytes memory = 0;  ///< 0: the whole card
  Millis since{0};   ///< CLOCK_BOOTTIME
  /// A daemon that died leaves intents behind that mean nothing, and held claims of attempts that
  /// run on.
  ClaimState state = ClaimState::wanted;

  friend bool operator==(const BoardClaim&, const BoardClaim&) = default;
};

struct BoardEntry {
  std::uint32_t uid = 0;
  std::string instance;  ///< tells instances of one user apart
  std::string boot;      ///< of which `since` counts the time
  std::vector<BoardClaim> claims;

  friend bool operator==(const BoardEntry&, const BoardEntry&) = default;
};

/// Whether the text may name a card: short, printable, without a space.
[[nodiscard]] bool is_card_name(std::string_view text);
/// Whether it may name an instance, and stand in a file's name: short, and of letters, digits and
/// "-_.:".
[[nodiscard]] bool is_board_word(std::string_view text);

[[nodiscard]] std::string encode_board_entry(const BoardEntry& entry);
/// Refuses whatever is cut, damaged, too long or of another version. Never trusts a byte.
[[nodiscard]] Result<BoardEntry> decode_board_entry(std::string_view text);

}  // namespace berth
