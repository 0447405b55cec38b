#pragma once
// Random histories: plain numbers, so that they shrink well, given a meaning by a Player.

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <rapidcheck.h>

#include "core/apply.hpp"
#include "core/decide.hpp"
#include "unit/core/ledger.hpp"

namespace berth::testing {

struct Op {
  std::uint32_t what = 0;  ///< see Player::play
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t c = 0;
};
using History = std::vector<Op>;

void showValue(const Op& op, std::ostream& out);

/// Whether limits, resources and the host stay as they are or change on the way.
enum class Limits { fixed, changing };

/// Plays a history on a State, and keeps the physical truth that samples show: attempts use at
/// most what they were promised, processes may outlive their attempt, strangers come and go.
class Player {
 public:
  explicit Player(Limits limits, Rules rules = {});

  /// One event. The caller decides afterwards.
  void play(const Op& op);
  /// A look at healthy cards, of which everything is known, after all leftovers have gone.
  void settle();
  void apply(const Decision& decision);

  State state;
  Now now{Millis{100'000}, Millis{1'700'000'000'000}};
  Ledger ledger;

 private:
  void send(Event event);
  void submit(const Op& op);
  void end_one(const Op& op);
  void kill(const Op& op);
  void control(const Op& op);
  void sample(const Op& op);
  void disturb(const Op& op);
  void revive(const Op& op);

  Limits limits_;
  std::map<std::pair<AttemptId, std::string>, Bytes> leftovers_;
};

/// Of any length, so that it may be played.
[[nodiscard]] History any_history();
[[nodiscard]] Rules any_rules();
/// Of a backlog that nobody stands up for: neither cards are kept nor jobs displaced.
[[nodiscard]] Rules plain_rules();
/// Fails the property if there is something to say.
void expect_none(const std::string& broken);

/// Plays a history with a decision after every event. `before` sees each decision before it is
/// applied, `after` the State afterwards.
template <class Before, class After>
void play(Player& player, const History& history, Before before, After after) {
  for (const Op& op : history) {
    player.play(op);
    const Decision decision = decide(player.state, player.now);
    before(decision);
    player.apply(decision);
    after();
  }
}

constexpr auto kNothing = [](auto&&...) {};

}  // namespace berth::testing

template <>
struct rc::Arbitrary<berth::testing::Op> {
  static Gen<berth::testing::Op> arbitrary() {
    using berth::testing::Op;
    return gen::build<Op>(
        gen::set(&Op::what, gen::inRange(0U, 22U)), gen::set(&Op::a, gen::inRange(0U, 1000U)),
        gen::set(&Op::b, gen::inRange(0U, 1000U)), gen::set(&Op::c, gen::inRange(0U, 1000U)));
  }
};
