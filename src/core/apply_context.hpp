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
  /// Takes a job that has just ended out of State and tells its followers, as far as the budget
  /// goes: they may start, or, if it did not succeed, have ended too.
  void retire(JobId ended);
  /// Goes on with followers to tell and with abandoned batches to take away. Asks to be called
  /// again if that is not all.
  void go_on();
  /// Changes what decides where a job stands, which must not happen while a decision can find it.
  template <class Change>
  void relocate(Job& job, const Change& change) {
    const bool ready = job.state == JobState::queued && job.waiting_for == 0;
    if (ready) {
      state_ops::dequeue(state, job);
    }
    change();
    if (job.state == JobState::queued && job.waiting_for == 0) {
      state_ops::enqueue(state, job);
    }
    // Another job may be the first of its queue now.
    state.recheck_all = true;
  }
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
  /// Ends a waiting job without a run. The caller retires it.
  void cancel(Job& job, const std::string& why);

 private:
  void leave(JobId ended);
  void settle();
  void drop();
};

/// In apply_remove.cpp.
[[nodiscard]] Result<Answer> apply_remove(ApplyContext& c, const event::Remove& remove);

/// In apply_submit.cpp.
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
/// In apply_move.cpp.
[[nodiscard]] Result<Answer> apply_move(ApplyContext& c, const event::Move& move);
/// In apply_set.cpp.
[[nodiscard]] Result<Answer> apply_set_jobs(ApplyContext& c, const event::SetJobs& set);
[[nodiscard]] Result<Answer> apply_set_rules(ApplyContext& c, const event::SetRules& set);

}  // namespace berth
