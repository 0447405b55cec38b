// Accepting jobs.

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/apply_context.hpp"
#include "core/state_ops.hpp"

namespace berth {
namespace {

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

}  // namespace

Result<Answer> apply_submit(ApplyContext& c, event::Submit submit) {
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
      c.step.changes.push_back(change::QueuePut{id, spec, queue.paused});
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

}  // namespace berth
