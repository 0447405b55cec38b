// Pausing, resuming and starting out of turn.

#include <utility>

#include <fmt/format.h>

#include "core/apply_context.hpp"

namespace berth {

std::string_view to_string(Controlled::What what) {
  switch (what) {
    case Controlled::What::paused:
      return "paused";
    case Controlled::What::held:
      return "held";
    case Controlled::What::resumed:
      return "resumed";
    case Controlled::What::released:
      return "released";
    case Controlled::What::moved:
      return "moved";
    case Controlled::What::expedited:
      return "expedited";
    case Controlled::What::changed:
      return "changed";
    case Controlled::What::revived:
      return "revived";
    case Controlled::What::unchanged:
      return "unchanged";
  }
  return "?";
}

Result<Answer> apply_pause(ApplyContext& c, const event::Pause& pause) {
  using What = Controlled::What;
  return c.for_each(pause.jobs, [&c](Job& job, Controlled& answer) {
    const auto attempt = c.state.attempts.find(job.attempt);
    const bool parked = attempt != c.state.attempts.end() && attempt->second.parked();
    if (job.state == JobState::paused && !parked) {
      answer.jobs[What::unchanged].push_back(job.id);
      return;
    }
    if (job.kill_requested) {
      answer.refused["is being ended"].push_back(job.id);
      return;
    }
    if (parked) {
      c.unpark(attempt->second);  // from now on it waits for somebody's word, not for quiet
    }
    if (job.state == JobState::queued) {
      c.relocate(job, [&] {
        job.state = JobState::paused;
        c.end_expedition(job);
      });
      c.write(job);
      c.history("paused", job, {}, "held");
      answer.jobs[What::held].push_back(job.id);
      return;
    }
    job.state = JobState::paused;
    c.write(job);
    c.history("paused", job, job.attempt);
    c.step.effects.push_back(effect::Pause{job.attempt});
    answer.jobs[What::paused].push_back(job.id);
  });
}

Result<Answer> apply_resume(ApplyContext& c, const event::Resume& resume) {
  using What = Controlled::What;
  return c.for_each(resume.jobs, [&c](Job& job, Controlled& answer) {
    if (job.state != JobState::paused) {
      answer.jobs[What::unchanged].push_back(job.id);
      return;
    }
    if (job.held()) {
      c.relocate(job, [&] { job.state = JobState::queued; });
      c.write(job);
      c.history("resumed", job, {}, "released");
      answer.jobs[What::released].push_back(job.id);
      return;
    }
    if (c.state.attempts.at(job.attempt).parked()) {
      answer.refused["makes room for somebody else on its card, and goes on when that one has left"]
          .push_back(job.id);
      return;
    }
    job.state = JobState::running;
    c.write(job);
    c.history("resumed", job, job.attempt);
    // One that is to end has been woken for that already.
    if (!job.kill_requested) {
      c.step.effects.push_back(effect::Resume{job.attempt});
    }
    answer.jobs[What::resumed].push_back(job.id);
  });
}

Result<Answer> apply_pause_queue(ApplyContext& c, const event::PauseQueue& pause) {
  // The one that jobs go to unless told otherwise is there from the beginning.
  if (!c.state.queue_names.contains(pause.queue) && pause.queue != kDefaultQueue) {
    return fail(ErrorCode::not_found,
                fmt::format("there is no queue '{}'; `berth status` lists them", pause.queue));
  }
  Queue& queue = c.state.queues.at(c.queue_named(pause.queue));
  if (queue.paused == pause.paused) {
    return Answer{};
  }
  queue.paused = pause.paused;
  c.step.changes.push_back(
      change::QueuePut{queue.id, {queue.name, queue.limit, queue.rules}, queue.paused});
  c.step.changes.push_back(change::History{queue.paused ? "paused" : "resumed",
                                           {},
                                           {},
                                           {},
                                           fmt::format("queue '{}'", queue.name),
                                           c.now.wall});
  state_ops::refresh_queue(c.state, queue.id);
  c.state.recheck_all = true;
  return Answer{};
}

Result<Answer> apply_pause_instance(ApplyContext& c, const event::PauseInstance& pause) {
  if (c.state.paused != pause.paused) {
    c.state.paused = pause.paused;
    c.step.changes.push_back(change::InstancePut{pause.paused});
    c.step.changes.push_back(change::History{
        pause.paused ? "paused" : "resumed", {}, {}, {}, "the instance", c.now.wall});
    c.state.recheck_all = true;
  }
  return Answer{};
}

Result<Answer> apply_expedite(ApplyContext& c, const event::Expedite& expedite) {
  using What = Controlled::What;
  return c.for_each(expedite.jobs, [&c](Job& job, Controlled& answer) {
    if (!job.waits()) {
      answer
          .refused[job.state == JobState::paused ? "is paused in the middle of its run; resume it"
                                                 : "runs already"]
          .push_back(job.id);
      return;
    }
    if (job.expedited) {
      answer.jobs[What::unchanged].push_back(job.id);
      return;
    }
    if (const auto batch = c.state.batches.find(job.batch);
        batch != c.state.batches.end() && batch->second.open) {
      answer.refused["belongs to a batch that is still being submitted"].push_back(job.id);
      return;
    }
    const bool held = job.held();
    c.relocate(job, [&] {
      job.state = JobState::queued;
      job.expedited = true;  // which ends a delay, too
    });
    if (held) {
      c.write(job);
    }
    change::JobSet set;
    set.id = job.id;
    set.expedited = true;
    c.step.changes.push_back(std::move(set));
    c.history("expedited", job, {}, held ? "released" : "");
    answer.jobs[What::expedited].push_back(job.id);
  });
}

}  // namespace berth
