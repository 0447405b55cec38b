#pragma once
// One event being applied. For the files of `apply` only.

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

#include "core/apply.hpp"
#include "core/state.hpp"

namespace berth {

/// Where to write what happens, and what several events do alike.
struct ApplyContext {
  State& state;
  Now now;
  Step& step;
  std::unordered_set<JobId> retired;

  void history(std::string kind, const Job& job, AttemptId attempt, std::string detail = {});
  void write(const Job& job, std::optional<std::int32_t> exit_code = {},
             std::optional<FailureClass> failure = {}, std::string message = {});
  /// The queue of this name, made if there is none.
  QueueId queue_named(const std::string& name);
  /// Takes jobs that have just ended out of State, and with them, if they did not succeed, all
  /// that were to follow them.
  void retire(JobId ended);
  /// Ends a queued job without a run. The caller retires it.
  void cancel(Job& job, const std::string& why);
};

/// In apply_remove.cpp.
[[nodiscard]] Result<Answer> apply_remove(ApplyContext& c, const event::Remove& remove);

/// In apply_submit.cpp.
[[nodiscard]] Result<Answer> apply_submit(ApplyContext& c, event::Submit submit);

}  // namespace berth
