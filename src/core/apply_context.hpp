#pragma once
// One event being applied. For the files of `apply` only.

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

#include "core/apply.hpp"
#include "core/state.hpp"
#include "core/state_ops.hpp"

namespace berth {

/// What one event may do at most to jobs nobody named; the rest is for event::Continue.
inline constexpr std::size_t kSlice = 500;

/// Where to write what happens, and what several events do alike.
struct ApplyContext {
  State& state;
  Now now;
  Step& step;
  std::unordered_set<JobId> retired;
  std::size_t budget = kSlice;

  void history(std::string kind, const Job& job, AttemptId attempt, std::string detail = {});
  void write(const Job& job, std::optional<std::int32_t> exit_code = {},
             std::optional<FailureClass> failure = {}, std::string message = {});
  /// The queue of this name, made if there is none.
  QueueId queue_named(const std::string& name);
  /// Changes how many jobs of a queue run at once. The caller writes it down.
  void set_limit(Queue& queue, std::uint32_t limit);
  /// Takes a job that has just ended out of State and tells its followers, as far as the budget
  /// goes: they may start, or, if it did not succeed, have ended too.
  void retire(JobId ended);
  /// Goes on with followers to tell and with abandoned batches to take away. Asks to be called
  /// again if that is not all.
  void go_on();
  /// Changes what decides where a job stands, which must not happen while a decision can find it.
  template <class Change>
  void relocate(Job& job, const Change& change) {
    if (job.ready()) {
      state_ops::dequeue(state, job, now);
    }
    std::optional<Delay> delay;
    if (const auto it = state.delays.find(job.id); it != state.delays.end()) {
      delay = it->second;
      state_ops::end_delay(state, job);
    }
    change();
    state_ops::note_held(state, job);
    if (state.shapes.at(job.shape).key.queue != job.queue) {
      state_ops::set_shape(state, job, Request(state.request(job)));
    }
    if (delay && !job.expedited) {
      state_ops::delay(state, job, *delay);
    }
    if (job.ready()) {
      state_ops::enqueue(state, job, now);
    }
    // Another job may be the first of its queue now.
    state.recheck_all = true;
  }
  /// Takes a card out of use, unless it is already.
  void drain(const Gpu& gpu, const std::string& why);
  /// Ends an attempt for somebody else's sake; its job waits again.
  void give_way(Attempt& attempt, GivesWay why, const std::string& detail);
  /// Its job stands still for a stranger, as a paused one. The caller sees to its processes.
  void park(Attempt& attempt);
  void unpark(Attempt& attempt);
  /// It has had its turn, or is not to have one.
  void end_expedition(Job& job);
  /// Sorts the jobs of a request: those there are go to `each`, the others are absent.
  template <class Each>
  Controlled for_each(const std::vector<JobId>& ids, const Each& each) {
    Controlled answer;
    for (const JobId id : ids) {
      const auto it = state.jobs.find(id);
      if (it == state.jobs.end()) {
        answer.absent.push_back(id);
      } else if (const auto batch = state.batches.find(it->second.batch);
                 batch != state.batches.end() && batch->second.open) {
        answer.refused["belongs to a batch that is still being submitted"].push_back(id);
      } else {
        each(it->second, answer);
      }
    }
    return answer;
  }
  /// Writes down what the job's owner and batch have used.
  void note_usage(const Job& job);
  /// Lets time take its course: delays end, jobs age, or have waited long enough.
  void pass_time();
  /// Ends a waiting job without a run. The caller retires it.
  void cancel(Job& job, const std::string& why);

 private:
  void leave(JobId ended);
  /// Of a job that is about to leave State: all that stands elsewhere than in its record.
  void forget(Job& job);
  void settle();
  void reorder();
  void drop();
};

/// In apply_remove.cpp.
[[nodiscard]] Result<Answer> apply_remove(ApplyContext& c, const event::Remove& remove);

/// In apply_revive.cpp.
[[nodiscard]] Result<Answer> apply_revive(ApplyContext& c, const event::Revive& revive);

/// In apply_exit.cpp.
[[nodiscard]] Result<Answer> apply_exit(ApplyContext& c, const event::AttemptExited& exited);
[[nodiscard]] Result<Answer> apply_revoked(ApplyContext& c, event::AttemptRevoked revoked);
/// In apply_sample.cpp.
[[nodiscard]] Result<Answer> apply_sample(ApplyContext& c, event::Sampled sampled);
[[nodiscard]] Result<Answer> apply_drain(ApplyContext& c, const event::DrainGpu& drain);

/// In apply_submit.cpp.
/// Whether there is room on the disk for more to do.
[[nodiscard]] Status check_room(const State& state);
[[nodiscard]] Result<Answer> apply_submit(ApplyContext& c, event::Submit submit);
[[nodiscard]] Result<Answer> apply_begin(ApplyContext& c, event::SubmitBegin begin);
[[nodiscard]] Result<Answer> apply_part(ApplyContext& c, event::SubmitPart part);
[[nodiscard]] Result<Answer> apply_end(ApplyContext& c, const event::SubmitEnd& end);
[[nodiscard]] Result<Answer> apply_abort(ApplyContext& c, const event::SubmitAbort& abort);
/// In apply_control.cpp.
[[nodiscard]] Result<Answer> apply_pause(ApplyContext& c, const event::Pause& pause);
[[nodiscard]] Result<Answer> apply_resume(ApplyContext& c, const event::Resume& resume);
[[nodiscard]] Result<Answer> apply_pause_queue(ApplyContext& c, const event::PauseQueue& pause);
[[nodiscard]] Result<Answer> apply_expedite(ApplyContext& c, const event::Expedite& expedite);
[[nodiscard]] Result<Answer> apply_pause_instance(ApplyContext& c,
                                                  const event::PauseInstance& pause);
/// In apply_move.cpp.
[[nodiscard]] Result<Answer> apply_move(ApplyContext& c, const event::Move& move);
/// In apply_set.cpp.
[[nodiscard]] Result<Answer> apply_set_jobs(ApplyContext& c, const event::SetJobs& set);
[[nodiscard]] Result<Answer> apply_set_rules(ApplyContext& c, const event::SetRules& set);

}  // namespace berth
