#pragma once
// One event being applied. For the files of `apply` only.

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

#include "core/apply.hpp"
#include "core/state.hpp"

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
  /// Ends a queued job without a run. The caller retires it.
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

}  // namespace berth
