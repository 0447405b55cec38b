// What a preview of rules says is what happens when they are set.

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>  // needs the one above

#include "core/apply.hpp"
#include "core/decide.hpp"
#include "core/preview.hpp"
#include "core/reason.hpp"
#include "property/history.hpp"

namespace berth::testing {
namespace {

constexpr std::size_t kMany = 10'000;

event::SetRules any_change() {
  using Value = std::pair<std::string, std::string>;
  const auto value = *rc::gen::elementOf(std::vector<Value>{{"max_concurrent", "0"},
                                                            {"max_concurrent", "1"},
                                                            {"max_concurrent", "3"},
                                                            {"gpu_left", "0"},
                                                            {"gpu_left", "2"},
                                                            {"order", "random"},
                                                            {"order", "largest_first"},
                                                            {"strategy", "pack"},
                                                            {"backfill", "any"},
                                                            {"queue.default.limit", "1"},
                                                            {"queue.default.limit", "0"},
                                                            {"max_gpu", "1"},
                                                            {"max_concurrent", "nonsense"}});
  event::SetRules set{{value}};
  if (*rc::gen::inRange(0, 4) == 0) {
    set.layer = event::SetRules::Layer::queue;
    set.queue = "default";
  }
  return set;
}

/// What the engine does with an event and with what it leads to; the jobs that start.
std::vector<JobId> really_set(State& state, const event::SetRules& set, Now now, bool& refused) {
  std::vector<JobId> started;
  std::vector<Event> events{set};
  refused = false;
  while (!events.empty()) {
    Event event = std::move(events.back());
    events.pop_back();
    Step step;
    if (!apply(state, std::move(event), now, step)) {
      refused = true;
      return started;
    }
    apply(state, decide(state, now), now, step);
    for (const Effect& effect : step.effects) {
      if (const auto* start = std::get_if<effect::Start>(&effect)) {
        started.push_back(start->job);
      } else if (std::holds_alternative<effect::Continue>(effect)) {
        events.emplace_back(event::Continue{});
      }
    }
  }
  std::ranges::sort(started);
  return started;
}

RC_GTEST_PROP(PreviewProperty, APreviewIsWhatHappensAfterSaving, ()) {
  Player player(Limits::changing);
  for (const Op& op : *rc::gen::scale(2.0, rc::gen::arbitrary<History>())) {
    player.play(op);
    player.apply(decide(player.state, player.now));
  }
  const event::SetRules set = any_change();
  const std::string before = fingerprint(player.state);
  const auto preview = preview_rules(player.state, set, player.now, kMany);
  RC_ASSERT(fingerprint(player.state) == before);  // nothing was done

  const State untouched = player.state;
  bool refused = false;
  const auto started = really_set(player.state, set, player.now, refused);
  RC_ASSERT(preview.has_value() == !refused);
  if (!preview) {
    return;
  }
  RC_ASSERT(preview->starts == started);
  const Room then = room_to_explain(player.state, player.now);
  const Room now = room_to_explain(untouched, player.now);
  for (const Preview::Wait& wait : preview->waits) {
    const auto reason = [&wait](const State& state, const Room& room) {
      const Job* job = state.job(wait.id);
      const auto reasons = job == nullptr ? std::vector<Reason>() : explain(state, *job, room);
      return reasons.empty() ? std::string() : reasons.front().text;
    };
    const std::string was = wait.before ? wait.before->text : std::string();
    const std::string is = wait.after ? wait.after->text : std::string();
    RC_ASSERT(was == reason(untouched, now));
    RC_ASSERT(is == reason(player.state, then));
    RC_ASSERT(was != is);
  }
}

}  // namespace
}  // namespace berth::testing
