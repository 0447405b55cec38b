#include "core/apply.hpp"

#include <algorithm>
#include <deque>
#include <set>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/assert.hpp"
#include "core/state_ops.hpp"

namespace berth {
namespace {

/// One event being applied: where to write what happens.
struct Context {
  State& state;
  Now now;
  Step& step;
  std::unordered_set<JobId> retired;

  void history(std::string kind, const Job& job, AttemptId attempt, std::string detail = {}) {
    step.changes.push_back(
        change::History{std::move(kind), job.id, attempt, job.batch, std::move(detail), now.wall});
  }

  void write(const Job& job, std::optional<std::int32_t> exit_code = {},
             std::optional<FailureClass> failure = {}, std::string message = {}) {
    step.changes.push_back(change::JobUpdate{job.id, job.state, exit_code, failure,
                                             std::move(message), job.attempts, job.retries_used,
                                             job.kill_requested, now.wall});
  }

  QueueId queue_named(const std::string& name) {
    if (const auto it = state.queue_names.find(name); it != state.queue_names.end()) {
      return it->second;
    }
    const QueueId id{++state.last_queue.value};
    state.queues.emplace(id, Queue{id, name, 0, 0});
    state.queue_names.emplace(name, id);
    step.changes.push_back(change::QueuePut{id, {name, 0}});
    return id;
  }

  /// Takes jobs that have just ended out of State, and with them, if they did not succeed, all
  /// that were to follow them. A work list, not recursion: chains can be long.
  void retire(JobId ended) {
    std::deque<JobId> work{ended};
    while (!work.empty()) {
      const auto node = state.jobs.extract(work.front());
      retired.insert(work.front());
      work.pop_front();
      const Job& job = node.mapped();
      BERTH_ASSERT(is_terminal(job.state));
      if (const auto batch = state.batches.find(job.batch);
          batch != state.batches.end() && --batch->second.live == 0) {
        state.batches.erase(batch);
      }
      const auto followers = state.dependents.extract(job.id);
      if (followers.empty()) {
        continue;
      }
      for (const JobId id : followers.mapped()) {
        const auto it = state.jobs.find(id);
        if (it == state.jobs.end() || it->second.state != JobState::queued) {
          continue;
        }
        Job& follower = it->second;
        if (job.state == JobState::succeeded) {
          std::erase(state.pending.at(id), job.id);
          if (--follower.waiting_for == 0) {
            state.pending.erase(id);
            state_ops::enqueue(state, follower);
          }
          continue;
        }
        const std::string why = fmt::format("job {}, which it was to follow, {}", job.id.value,
                                            job.state == JobState::failed   ? "failed"
                                            : job.state == JobState::killed ? "was killed"
                                                                            : "was cancelled");
        cancel(follower, why);
        work.push_back(id);
      }
    }
  }

  /// Ends a queued job without a run. The caller retires it.
  void cancel(Job& job, const std::string& why) {
    if (job.waiting_for == 0) {
      state_ops::dequeue(state, job);
    } else {
      state.pending.erase(job.id);
    }
    job.state = JobState::cancelled;
    write(job, {}, {}, why);
    history("cancelled", job, {}, why);
    state.recheck_all = true;
  }
};

Status check(const State& state, const event::Submit& submit) {
  if (submit.jobs.empty()) {
    return fail(ErrorCode::invalid, "the submission has no jobs; give at least one");
  }
  if (state.low_space) {
    return fail(ErrorCode::no_space,
                fmt::format("no room to accept jobs ({}); free some space and submit again",
                            state.space_detail));
  }
  for (const QueueSpec& queue : submit.queues) {
    if (queue.name.empty()) {
      return fail(ErrorCode::invalid, "a queue needs a name");
    }
  }
  for (std::size_t i = 0; i < submit.jobs.size(); ++i) {
    const JobSpec& job = submit.jobs[i];
    const auto where = [&] {
      if (!job.name.empty()) {
        return fmt::format("job '{}'", job.name);
      }
      return submit.jobs.size() == 1 ? std::string("the job")
                                     : fmt::format("job number {} of the submission", i + 1);
    };
    if (job.payload.commands.empty()) {
      return fail(ErrorCode::invalid, where() + " has no command");
    }
    for (const Command& command : job.payload.commands) {
      if (command.argv.empty() || command.argv.front().empty()) {
        return fail(ErrorCode::invalid, where() + " has a command without a program to run");
      }
    }
    if (job.queue.empty()) {
      return fail(ErrorCode::invalid, where() + " names no queue; leave it out for 'default'");
    }
    if (job.request.gpu_memory == Bytes{0}) {
      return fail(ErrorCode::invalid,
                  where() + ": gpu_memory must be more than 0; leave it out for whole cards");
    }
    if (job.request.gpus.min > job.request.gpus.max) {
      return fail(ErrorCode::invalid,
                  fmt::format("{}: gpus {}..{} is empty; write the smaller number first", where(),
                              job.request.gpus.min, job.request.gpus.max));
    }
    for (const auto& [name, count] : job.request.resources) {
      const auto given = submit.resources.find(name);
      const auto known = state.rules.resources.find(name);
      if (given == submit.resources.end() && known == state.rules.resources.end()) {
        return fail(ErrorCode::invalid,
                    fmt::format("{}: nobody has said how many '{}' there are; put "
                                "`rules: {{resources: {{{}: N}}}}` into the job file",
                                where(), name, name));
      }
      const std::uint64_t total = given != submit.resources.end() ? given->second : known->second;
      if (count > total) {
        return fail(ErrorCode::invalid, fmt::format("{} asks for {} '{}', there are only {}",
                                                    where(), count, name, total));
      }
    }
    for (const std::uint32_t index : job.after_index) {
      if (index >= submit.jobs.size() || index == i) {
        return fail(
            ErrorCode::invalid,
            fmt::format("{}: after_index {} is no other job of this submission", where(), index));
      }
    }
    for (const JobId id : job.after) {
      if (state.jobs.contains(id)) {
        continue;
      }
      const auto finished = submit.finished_dependencies.find(id);
      if (finished == submit.finished_dependencies.end()) {
        return fail(ErrorCode::not_found,
                    fmt::format("{}: there is no job {} to follow; `berth ls --all` lists them",
                                where(), id.value));
      }
      if (finished->second != JobState::succeeded) {
        return fail(
            ErrorCode::conflict,
            fmt::format("{} is to follow job {}, which has {}; submit that one again first",
                        where(), id.value,
                        finished->second == JobState::failed ? "failed" : "been ended early"));
      }
    }
  }
  // Cycles are possible only through positions, since ids are older than this submission.
  std::vector<std::uint32_t> waits(submit.jobs.size(), 0);
  std::vector<std::vector<std::uint32_t>> followers(submit.jobs.size());
  std::deque<std::uint32_t> free;
  for (std::uint32_t i = 0; i < submit.jobs.size(); ++i) {
    const std::set<std::uint32_t> distinct(submit.jobs[i].after_index.begin(),
                                           submit.jobs[i].after_index.end());
    waits[i] = static_cast<std::uint32_t>(distinct.size());
    for (const std::uint32_t d : distinct) {
      followers[d].push_back(i);
    }
    if (waits[i] == 0) {
      free.push_back(i);
    }
  }
  std::size_t seen = 0;
  for (; !free.empty(); ++seen) {
    for (const std::uint32_t f : followers[free.front()]) {
      if (--waits[f] == 0) {
        free.push_back(f);
      }
    }
    free.pop_front();
  }
  if (seen != submit.jobs.size()) {
    auto stuck = static_cast<std::size_t>(
        std::ranges::find_if(waits, [](std::uint32_t w) { return w > 0; }) - waits.begin());
    // It may only follow the circle; going back often enough leads into it.
    for (std::size_t i = 0; i < waits.size(); ++i) {
      stuck = *std::ranges::find_if(submit.jobs[stuck].after_index,
                                    [&](std::uint32_t d) { return waits[d] > 0; });
    }
    return fail(ErrorCode::invalid,
                fmt::format("the jobs wait for each other in a circle; '{}' is part of it",
                            submit.jobs[stuck].name));
  }
  return {};
}

Result<Answer> on(Context& c, event::Submit submit) {
  TRY(check(c.state, submit));
  State& state = c.state;
  for (const auto& [name, total] : submit.resources) {
    if (const auto it = state.rules.resources.find(name);
        it == state.rules.resources.end() || it->second != total) {
      state.rules.resources[name] = total;
      state.recheck_all = true;
      c.step.changes.push_back(change::ResourcePut{name, total});
    }
  }
  for (const QueueSpec& spec : submit.queues) {
    const QueueId id = c.queue_named(spec.name);
    Queue& queue = state.queues.at(id);
    if (queue.limit != spec.limit) {
      queue.limit = spec.limit;
      c.step.changes.push_back(change::QueuePut{id, spec});
      state_ops::refresh_queue(state, id);
      state.recheck_all = true;
    }
  }
  Submitted answer;
  answer.first = JobId{state.last_job.value + 1};
  answer.count = submit.jobs.size();
  if (!submit.batch_name.empty() || submit.jobs.size() > 1 || submit.batch_max_concurrent != 0) {
    answer.batch = BatchId{++state.last_batch.value};
    state.batches.emplace(answer.batch, Batch{answer.batch, submit.batch_name,
                                              submit.batch_max_concurrent, 0, answer.count});
    c.step.changes.push_back(change::BatchPut{answer.batch, submit.batch_name, submit.owner,
                                              submit.batch_max_concurrent, answer.count,
                                              c.now.wall});
  }
  state.last_job.value += answer.count;
  for (std::size_t i = 0; i < submit.jobs.size(); ++i) {
    auto spec = std::make_shared<JobSpec>(std::move(submit.jobs[i]));
    Job job;
    job.id = JobId{answer.first.value + i};
    job.batch = answer.batch;
    job.queue = c.queue_named(spec->queue);
    job.shape = state_ops::intern(state, spec->request);
    job.owner = submit.owner;
    job.priority = spec->priority;
    job.retries = spec->retries;
    std::set<JobId> after(spec->after.begin(), spec->after.end());
    for (const std::uint32_t index : spec->after_index) {
      after.insert(JobId{answer.first.value + index});
    }
    std::vector<JobId> pending;
    for (const JobId id : after) {
      // Of older jobs only the unfinished can be waited for; of this submission all can.
      if (id >= answer.first || state.jobs.contains(id)) {
        pending.push_back(id);
        state.dependents[id].push_back(job.id);
      }
    }
    job.waiting_for = static_cast<std::uint32_t>(pending.size());
    c.step.changes.push_back(change::JobPut{job.id,
                                            job.batch,
                                            job.queue,
                                            job.owner,
                                            c.now.wall,
                                            std::move(spec),
                                            {after.begin(), after.end()}});
    if (!pending.empty()) {
      state.pending.emplace(job.id, std::move(pending));
    }
    const Job& stored = state.jobs.emplace(job.id, job).first->second;
    if (job.waiting_for == 0) {
      state_ops::enqueue(state, stored);
    }
  }
  c.step.changes.push_back(
      change::History{"submitted",
                      answer.first,
                      {},
                      answer.batch,
                      answer.count == 1 ? std::string{} : fmt::format("{} jobs", answer.count),
                      c.now.wall});
  if (!submit.client_key.empty()) {
    c.step.changes.push_back(change::ClientKey{submit.client_key, submit.owner, answer.batch,
                                               answer.first, answer.count});
  }
  return answer;
}

Result<Answer> on(Context& c, const event::Kill& kill) {
  Killed answer;
  std::unordered_set<JobId> seen;
  for (const JobId id : kill.jobs) {
    if (!seen.insert(id).second) {
      continue;
    }
    const auto it = c.state.jobs.find(id);
    if (it == c.state.jobs.end()) {
      // It may have been there a moment ago, and have ended with one it was to follow.
      (c.retired.contains(id) ? answer.cancelled : answer.unknown).push_back(id);
      continue;
    }
    Job& job = it->second;
    if (job.state == JobState::queued) {
      c.cancel(job, "cancelled on request");
      c.retire(id);
      answer.cancelled.push_back(id);
      continue;
    }
    answer.killed.push_back(id);
    if (!job.kill_requested) {
      job.kill_requested = true;
      c.write(job);
      c.history("kill_requested", job, job.attempt);
    }
    c.step.effects.push_back(effect::Kill{job.attempt, kill.grace});
  }
  return answer;
}

/// Closes an attempt: its GPUs are `ending` until a later sample shows them free.
Attempt close(Context& c, AttemptId id) {
  auto node = c.state.attempts.extract(id);
  Attempt attempt = std::move(node.mapped());
  for (Gpu& gpu : c.state.gpus) {
    for (Claim& claim : gpu.claims) {
      if (claim.attempt == id) {
        claim.ended = c.now.mono;
      }
    }
  }
  if (!attempt.gpus.empty()) {
    c.step.effects.push_back(effect::Sample{});
  }
  c.step.effects.push_back(effect::Forget{id});
  return attempt;
}

Result<Answer> on(Context& c, event::AttemptExited exited) {
  if (!c.state.attempts.contains(exited.attempt)) {
    return fail(ErrorCode::not_found, fmt::format("attempt {} is not open", exited.attempt.value));
  }
  const Attempt attempt = close(c, exited.attempt);
  Job& job = c.state.jobs.at(attempt.job);
  const Verdict& verdict = exited.verdict;
  c.step.changes.push_back(change::AttemptEnd{attempt.id, false, verdict, c.now.wall});
  state_ops::vacate(c.state, job);
  job.attempt = {};
  const bool killed = verdict.killed || (job.kill_requested && verdict.failure);
  if (!killed && verdict.failure && job.retries_used < job.retries) {
    ++job.retries_used;
    job.state = JobState::queued;
    c.write(job, verdict.exit_code, verdict.failure, verdict.message);
    c.history("retried", job, attempt.id, verdict.message);
    state_ops::enqueue(c.state, job);
    return Answer{};
  }
  job.state = killed ? JobState::killed : verdict.failure ? JobState::failed : JobState::succeeded;
  c.write(job, verdict.exit_code, killed ? std::nullopt : verdict.failure, verdict.message);
  c.history(std::string(to_string(job.state)), job, attempt.id, verdict.message);
  c.retire(job.id);
  return Answer{};
}

Result<Answer> on(Context& c, event::AttemptRevoked revoked) {
  if (!c.state.attempts.contains(revoked.attempt)) {
    return fail(ErrorCode::not_found, fmt::format("attempt {} is not open", revoked.attempt.value));
  }
  const Attempt attempt = close(c, revoked.attempt);
  Job& job = c.state.jobs.at(attempt.job);
  Verdict verdict;
  verdict.message = std::move(revoked.why);
  verdict.ended_wall = c.now.wall;
  c.step.changes.push_back(change::AttemptEnd{attempt.id, true, verdict, c.now.wall});
  state_ops::vacate(c.state, job);
  job.attempt = {};
  --job.attempts;
  if (job.kill_requested) {
    job.state = JobState::killed;
    c.write(job, {}, {}, "killed before its command ran");
    c.history("killed", job, attempt.id);
    c.retire(job.id);
    return Answer{};
  }
  job.state = JobState::queued;
  c.write(job, {}, {}, verdict.message);
  c.history("revoked", job, attempt.id, verdict.message);
  state_ops::enqueue(c.state, job);
  return Answer{};
}

Result<Answer> on(Context& c, event::Sampled sampled) {
  State& state = c.state;
  GpuSample& sample = sampled.sample;
  state.seen = c.now.mono;
  state.probe_error.clear();
  state.driver = sample.driver;
  std::vector<Gpu> gpus;
  for (GpuFacts& facts : sample.gpus) {
    Gpu gpu;
    gpu.known = true;
    gpu.sampled = sample.begun_mono;
    gpu.seen = c.now.mono;
    gpu.facts = std::move(facts);
    const auto old =
        std::ranges::find(state.gpus, gpu.facts.uuid, [](const Gpu& g) { return g.facts.uuid; });
    if (old != state.gpus.end()) {
      gpu.claims = std::move(old->claims);
      old->claims.clear();
      std::erase_if(gpu.claims, [&](const Claim& claim) {
        if (!claim.ended || sample.begun_mono < *claim.ended || !gpu.facts.trouble.empty()) {
          return false;
        }
        return !gpu.facts.processes ||
               std::ranges::none_of(*gpu.facts.processes, [&](const GpuProcess& process) {
                 return process.attempt == claim.attempt;
               });
      });
    }
    gpus.push_back(std::move(gpu));
  }
  for (Gpu& old : state.gpus) {
    if (!old.claims.empty()) {
      // Promised, but the driver no longer shows it.
      old.known = false;
      old.facts.trouble = "the driver no longer shows it";
      gpus.push_back(std::move(old));
    }
  }
  state.gpus = std::move(gpus);
  state.recheck_all = true;
  return Answer{};
}

Result<Answer> on(Context& c, event::ProbeFailed failed) {
  c.state.probe_error = std::move(failed.why);
  c.state.seen.reset();
  for (Gpu& gpu : c.state.gpus) {
    gpu.known = false;
  }
  return Answer{};
}

Result<Answer> on(Context& c, event::SpaceChanged space) {
  c.state.low_space = space.low;
  c.state.space_detail = std::move(space.detail);
  c.state.recheck_all = true;
  return Answer{};
}

Result<Answer> on(Context& c, const event::SetHost& set) {
  c.state.host = set.host;
  c.state.recheck_all = true;
  return Answer{};
}

Result<Answer> on(Context& c, const event::Tick&) {
  c.state.recheck_all = true;
  return Answer{};
}

}  // namespace

Result<Answer> apply(State& state, Event event, Now now, Step& step) {
  Context context{state, now, step, {}};
  return std::visit([&](auto&& e) { return on(context, std::forward<decltype(e)>(e)); },
                    std::move(event));
}

void apply(State& state, const Decision& decision, Now now, Step& step) {
  Context c{state, now, step, {}};
  state.recheck_all = false;
  state.recheck_shapes.clear();
  for (const Placement& placement : decision.start) {
    Job& job = state.jobs.at(placement.job);
    const Request& request = state.request(job);
    state_ops::dequeue(state, job);
    Attempt attempt;
    attempt.id = AttemptId{++state.last_attempt.value};
    attempt.job = job.id;
    attempt.number = ++job.attempts;
    attempt.gpu_memory = request.gpu_memory.value_or(0);
    std::vector<std::uint32_t> indices;
    for (const std::size_t gpu : placement.gpus) {
      attempt.gpus.push_back(state.gpus[gpu].facts.uuid);
      indices.push_back(state.gpus[gpu].facts.index);
    }
    job.state = JobState::running;
    job.attempt = attempt.id;
    state_ops::claim(state, attempt, now.mono);
    state_ops::occupy(state, job);
    c.write(job);
    step.changes.push_back(change::AttemptPut{attempt.id, job.id, attempt.number, attempt.gpus,
                                              indices, attempt.gpu_memory, now.wall});
    c.history("started", job, attempt.id);
    step.prepare.push_back(attempt.id);
    step.effects.push_back(
        effect::Start{attempt.id, job.id, attempt.number, attempt.gpus, std::move(indices)});
    state.attempts.emplace(attempt.id, std::move(attempt));
  }
  if (decision.want_sample) {
    step.effects.push_back(effect::Sample{});
  }
}

}  // namespace berth
