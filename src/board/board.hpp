#pragma once
// The claims board: berths of different users, which trust each other with nothing, never keep the
// same card.
//
// Whoever wants a card first says so, then reads what all others say, and keeps the card only if
// nobody else says so: of two who want it at once, at least one sees the other. README.md has the
// argument. Blocks (files, and a few hundred milliseconds at most when two meet), so it belongs on
// a thread of its own; it is not thread-safe.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "board/board_directory.hpp"
#include "board/board_entry.hpp"
#include "board/own_place.hpp"

namespace berth {

/// Who was seen on a card, processes of our own attempts apart.
struct CardUse {
  std::optional<std::set<std::uint32_t>> users;  ///< nullopt: nobody knows
  Millis seen{0};  ///< when that look began: it says nothing of who came later
};
/// By card; one that is not in it: nobody knows.
using CardUsers = std::map<std::string, CardUse>;

/// Somebody else who has or wants a card, or whose turn it is.
struct CardHolder {
  std::string gpu;
  std::uint32_t uid = 0;
  std::string instance;
  ClaimState state = ClaimState::held;

  friend bool operator==(const CardHolder&, const CardHolder&) = default;
};

struct BoardConfig {
  std::string directory;
  std::string instance;
  std::string boot;
  std::uint32_t uid = 0;
  std::function<Millis()> now;  ///< CLOCK_BOOTTIME
  /// How long a claim counts without a process of its owner on the card.
  Millis lapse{120'000};
  /// For how long a card that was ours is left to others who were waiting for it.
  Millis turn{5'000};
};

class Board {
 public:
  /// Writes nothing yet.
  [[nodiscard]] static Result<std::unique_ptr<Board>> open(BoardConfig config);

  /// Attempts that run already: their cards are held, whoever else says so, too. Takes the place of
  /// all that an earlier daemon of this instance has left on the board.
  [[nodiscard]] Status begin(const std::vector<BoardClaim>& running);

  /// Asks for all these cards or none. Nullopt: they are held, and everybody can see it. Else
  /// nothing is claimed, and this is who stands in the way. After an error nothing is claimed
  /// either.
  [[nodiscard]] Result<std::optional<CardHolder>> ask(AttemptId attempt, Bytes memory,
                                                      const std::vector<std::string>& gpus,
                                                      const CardUsers& users);

  using Kept = std::set<std::pair<std::string, AttemptId>>;  ///< card and attempt
  /// Lets go of every claim that is not among these. Says again what somebody has removed.
  /// `waiting`: whether anything of ours still waits for a card.
  [[nodiscard]] Status keep_only(const Kept& kept, bool waiting = true);

  /// Says that we would like to be next on these cards, as a refusal does.
  [[nodiscard]] Status queue_for(const std::set<std::string>& gpus);

  /// What others hold or want at this moment, by card.
  [[nodiscard]] Result<std::map<std::string, CardHolder>> others(const CardUsers& users);

  /// To be called at the end: leaves the board, unless attempts run on.
  void leave();

  [[nodiscard]] const std::string& path() const { return directory_.path(); }

 private:
  enum class Conflict : std::uint8_t { none, waits_for_us, stands };

  Board(BoardConfig config, BoardDirectory directory);

  [[nodiscard]] Status publish();
  void withdraw(AttemptId attempt);
  /// Withdraws, and says that we would like to be next.
  void wait_for(const std::vector<std::string>& gpus, AttemptId attempt);
  [[nodiscard]] bool has_its_turn(const BoardClaim& waiting) const;
  [[nodiscard]] bool mine(const BoardEntry& entry) const;
  /// Whether a claim of somebody else is to be respected.
  [[nodiscard]] bool counts(const FoundEntry& found, const BoardClaim& claim,
                            const CardUsers& users);
  [[nodiscard]] Conflict conflict(const std::vector<FoundEntry>& found,
                                  const std::vector<std::string>& gpus, Millis since,
                                  const CardUsers& users, CardHolder& who);
  [[nodiscard]] bool before_us(const BoardEntry& entry, const BoardClaim& claim,
                               Millis since) const;

  BoardConfig config_;
  BoardDirectory directory_;
  OwnPlace place_;
  std::vector<BoardClaim> claims_;
  std::map<std::string, Millis> waits_;     ///< cards we were refused, since when
  std::map<std::string, Millis> released_;  ///< cards that were ours until then
  bool unsaid_ = false;                     ///< the board does not show claims_: writing failed
  /// When a process of that place's owner was last seen on that card.
  std::map<std::pair<std::string, std::string>, Millis> busy_;
};

}  // namespace berth
