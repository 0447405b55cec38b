#pragma once
// Why an attempt failed, and whose fault it was: from how it ended, from what it wrote and from
// what was seen of its cards.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.hpp"
#include "core/signatures.hpp"
#include "core/state.hpp"

namespace berth {

enum class Blame : std::uint8_t {
  own,        ///< the job's
  code_bug,   ///< the job's, and the next attempt will do the same
  neighbour,  ///< somebody else's
  hardware,   ///< the machine's
};

[[nodiscard]] std::string_view to_string(Blame blame);

/// What is known of an attempt that failed besides its verdict.
struct Evidence {
  std::string_view log_end = {};
  std::optional<GivesWay> gives_way = {};
  std::vector<std::uint32_t> xids = {};  ///< application errors on its cards
  std::string card_trouble = {};  ///< what its cards suffered from while it ran; empty: nothing
  bool uses_gpus = false;
  Bytes claim = 0;                      ///< per GPU; 0: whole cards
  std::optional<Bytes> card = {};       ///< memory of the smallest of its cards
  std::optional<Bytes> peak = {};       ///< the most it was seen to use of one card
  std::optional<Bytes> intruders = {};  ///< on one of its cards, beyond what anybody was promised
  /// The most that was so seen while it ran.
  std::optional<Bytes> company = {};
  Bytes fellows = 0;     ///< on one of its cards, by other jobs within what they were promised
  bool for_own = false;  ///< it gives way to a process of its owner
};

/// What an attempt suffered from.
struct Finding {
  FailureClass failure = FailureClass::exit;
  Blame blame = Blame::own;
  std::string what;  ///< for people
  std::optional<MemoryFigures> figures = {};
  bool drain = false;  ///< the card is to be taken out of use

  /// What the job would have needed on each GPU, if that can be told.
  [[nodiscard]] std::optional<Bytes> needed() const;
};

/// What is held of a card beside one attempt.
struct Beside {
  Bytes promised = 0;   ///< by other attempts, as far as they were promised it
  Bytes beyond = 0;     ///< by them beyond that, and by strangers
  bool hidden = false;  ///< it cannot all be told
};

[[nodiscard]] Beside look_beside(const Gpu& gpu, AttemptId attempt);

/// `verdict` is one of a failure.
[[nodiscard]] Finding classify(const Verdict& verdict, const Evidence& evidence);

/// Of an attempt that has just ended; its claims are still there.
[[nodiscard]] Evidence gather_evidence(const State& state, const Attempt& attempt,
                                       std::string_view log_end);

}  // namespace berth
