#pragma once
// The one way through: event → apply → decide → commit → effects.
//
// Everything that happens while a commit is under way shares the next one. An answer, a read
// included, is given when the commit that covers the State it saw is durable; an effect is released
// by the commit that records it. So nobody ever sees what a crash could erase.
//
// Not thread-safe: one thread owns the engine and its State.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "core/apply.hpp"
#include "core/state.hpp"
#include "engine/ports.hpp"

namespace berth {

class Engine {
 public:
  using Reply = std::function<void(Result<Answer>)>;

  /// The ports must outlive the engine.
  Engine(State state, Store& store, EffectSink& effects, Clock& clock);

  /// Applies an event and decides. `reply`, if given, is called once: at once when the event was
  /// refused and nothing is pending, else when the commit that covers it is durable.
  void handle(Event event, Reply reply = {});

  /// Calls `reader` with the present State, and `then` once what it saw is durable.
  template <class Reader, class Then>
  void read(const Reader& reader, Then then) {
    when_durable(
        [value = reader(state_), then = std::move(then)]() mutable { then(std::move(value)); });
  }

  /// Tells every open attempt once more what it was told before a restart: to end, to stand still
  /// or to go on. The daemon may have died between writing it down and saying it. Call after
  /// recovery.
  void repeat_orders();

  [[nodiscard]] const State& state() const { return state_; }
  /// Set once a commit has failed: the State is ahead of the disk, and nothing more is done.
  [[nodiscard]] const std::optional<Error>& broken() const { return broken_; }
  /// Called at once when that happens. The daemon ends itself and recovers.
  std::function<void(const Error&)> on_broken;
  /// Called after each commit, when its answers have been given.
  std::function<void()> on_durable;
  Meter* meter = nullptr;  ///< may be none

 private:
  using Key = std::pair<std::string, std::uint32_t>;  ///< of a client, and who it is
  struct Batch {
    Step step;
    std::vector<std::function<void()>> replies;
    std::map<Key, Submitted> keys;                 ///< not yet in the store
    std::unordered_map<JobId, JobState> finished;  ///< likewise
    std::unordered_set<JobId> removed;             ///< still in the store
    std::unordered_set<BatchId> batches;           ///< the store knows them as they were
    [[nodiscard]] bool empty() const {
      return step.changes.empty() && step.effects.empty() && replies.empty();
    }
  };

  void decide_now();
  void when_durable(std::function<void()> reply);
  void pump();
  void committed(CommitOutcome outcome);
  void release(Batch& batch, const CommitOutcome& outcome);
  std::optional<Submitted> find_earlier(const Key& key);
  void find_dependencies(const std::vector<JobSpec>& jobs, std::map<JobId, JobState>& finished);
  std::optional<JobState> find_finished(JobId id);
  void note_finished(std::size_t first_change);
  /// Adds what the store knows of the jobs; false: some of it is on its way to the store.
  [[nodiscard]] bool find_ended(event::Revive& revive);
  template <class Asked>
  [[nodiscard]] bool on_its_way(const Asked& asked) const;

  State state_;
  Store& store_;
  EffectSink& effects_;
  Clock& clock_;
  Batch open_;  ///< collects what the next commit will cover
  Batch committing_;
  bool in_flight_ = false;
  bool records_full_ = false;  ///< there was no space for the record of an attempt
  std::optional<Error> broken_;
};

}  // namespace berth
