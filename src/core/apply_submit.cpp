// Accepting jobs, at once or in parts.

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/apply_context.hpp"
#include "core/rule_table.hpp"
#include "core/state_ops.hpp"

namespace berth {
namespace {

using Resources = std::map<std::string, std::uint64_t>;

std::string name_of(const JobSpec& job, std::uint64_t index, std::uint64_t count) {
  if (!job.name.empty()) {
    return fmt::format("job '{}'", job.name);
  }
  return count == 1 ? std::string("the job")
                    : fmt::format("job number {} of the submission", index + 1);
}

/// What can be said of one job, the `index`th of `count`, without State.
Status check_job(const JobSpec& job, std::uint64_t index, std::uint64_t count) {
  const auto wrong = [&](const std::string& what) {
    return fail(ErrorCode::invalid, name_of(job, index, count) + what);
  };
  if (job.payload.commands.empty()) {
    return wrong(" has no command");
  }
  for (const Command& command : job.payload.commands) {
    if (command.argv.empty() || command.argv.front().empty()) {
      return wrong(" has a command without a program to run");
    }
  }
  if (job.queue.empty()) {
    return wrong(" names no queue; leave it out for 'default'");
  }
  if (job.request.gpu_memory == Bytes{0}) {
    return wrong(": gpu_memory must be more than 0; leave it out for whole cards");
  }
  if (job.request.gpus.min > job.request.gpus.max) {
    return wrong(fmt::format(": gpus {}..{} is empty; write the smaller number first",
                             job.request.gpus.min, job.request.gpus.max));
  }
  for (const auto& [key, text] : job.request.rules) {
    if (const Status status = check_override(key, text, RuleScope::any); !status) {
      return wrong(": " + status.error().message);
    }
  }
  for (const std::uint32_t position : job.after_index) {
    if (position >= count || position == index) {
      return wrong(fmt::format(": after_index {} is no other job of this submission", position));
    }
  }
  return {};
}

/// Circles are possible only through positions, since ids are older than the submission.
Status check_circles(const std::vector<JobSpec>& jobs) {
  std::vector<std::uint32_t> waits(jobs.size(), 0);
  std::vector<std::vector<std::uint32_t>> followers(jobs.size());
  std::deque<std::uint32_t> free;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const std::set<std::uint32_t> distinct(jobs[i].after_index.begin(), jobs[i].after_index.end());
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
  if (seen == jobs.size()) {
    return {};
  }
  auto stuck = static_cast<std::size_t>(
      std::ranges::find_if(waits, [](std::uint32_t w) { return w > 0; }) - waits.begin());
  // It may only follow the circle; going back often enough leads into it.
  for (std::size_t i = 0; i < waits.size(); ++i) {
    stuck = *std::ranges::find_if(jobs[stuck].after_index,
                                  [&](std::uint32_t d) { return waits[d] > 0; });
  }
  return fail(ErrorCode::invalid,
              fmt::format("the jobs wait for each other in a circle; '{}' is part of it",
                          jobs[stuck].name));
}

Status check_rules(const Overrides& rules, RuleScope scope, const std::string& whose) {
  for (const auto& [key, text] : rules) {
    if (const Status status = check_override(key, text, scope); !status) {
      return fail(status.error().code, fmt::format("{}: {}", whose, status.error().message));
    }
  }
  return {};
}

Status check_queues(const std::vector<QueueSpec>& queues) {
  if (std::ranges::any_of(queues, [](const QueueSpec& queue) { return queue.name.empty(); })) {
    return fail(ErrorCode::invalid, "a queue needs a name");
  }
  for (const QueueSpec& queue : queues) {
    TRY(check_rules(queue.rules, RuleScope::any, fmt::format("queue '{}'", queue.name)));
  }
  return {};
}

Overrides canonical(const Overrides& rules) {
  Overrides result;
  for (const auto& [key, text] : rules) {
    result.insert_or_assign(canonical_rule(key), text);
  }
  return result;
}

/// Of a batch: said in its own field, or as the rule.
std::uint32_t limit_of(std::uint32_t max_concurrent, const Overrides& rules) {
  if (max_concurrent != 0 || !rules.contains("max_concurrent")) {
    return max_concurrent;
  }
  Rules said;
  overlay(said, rules);
  return said.max_concurrent;
}

/// The submission that jobs are being taken from.
struct Source {
  std::uint32_t owner = 0;
  BatchId batch;
  JobId first;
  std::uint64_t count = 0;
  const Resources& resources;
  const std::map<JobId, JobState>& finished_dependencies;
};

Status check_resources(const State& state, const JobSpec& job, std::uint64_t index,
                       const Source& source) {
  for (const auto& [name, count] : job.request.resources) {
    const auto given = source.resources.find(name);
    const auto known = state.rules.resources.find(name);
    if (given == source.resources.end() && known == state.rules.resources.end()) {
      return fail(ErrorCode::invalid,
                  fmt::format("{}: nobody has said how many '{}' there are; `berth set "
                              "resources.{}=N` does, or `rules: {{resources: {{{}: N}}}}` in a job "
                              "file",
                              name_of(job, index, source.count), name, name, name));
    }
    const std::uint64_t total = given != source.resources.end() ? given->second : known->second;
    if (count > total) {
      return fail(ErrorCode::invalid,
                  fmt::format("{} asks for {} '{}', there are only {}",
                              name_of(job, index, source.count), count, name, total));
    }
  }
  return {};
}

Status check_after(const State& state, const JobSpec& job, std::uint64_t index,
                   const Source& source) {
  for (const JobId id : job.after) {
    if (const auto it = state.jobs.find(id); it != state.jobs.end()) {
      const auto batch = state.batches.find(it->second.batch);
      if (batch == state.batches.end() || !batch->second.open) {
        continue;
      }
      return fail(ErrorCode::conflict,
                  fmt::format("{} is to follow job {}, whose batch is still being submitted; wait "
                              "for its end",
                              name_of(job, index, source.count), id.value));
    }
    const auto finished = source.finished_dependencies.find(id);
    if (finished == source.finished_dependencies.end()) {
      return fail(ErrorCode::not_found,
                  fmt::format("{}: there is no job {} to follow; `berth ls --all` lists them",
                              name_of(job, index, source.count), id.value));
    }
    if (job.after_kind == After::failed && finished->second == JobState::succeeded) {
      return fail(ErrorCode::conflict,
                  fmt::format("{} is to run if job {} fails, which has succeeded",
                              name_of(job, index, source.count), id.value));
    }
    if (job.after_kind == After::ok && finished->second != JobState::succeeded) {
      return fail(
          ErrorCode::conflict,
          fmt::format("{} is to follow job {}, which has {}; `berth retry {}` runs that one again",
                      name_of(job, index, source.count), id.value,
                      finished->second == JobState::failed ? "failed" : "been ended early",
                      id.value));
    }
  }
  return {};
}

Status check_jobs(const State& state, const std::vector<JobSpec>& jobs, std::uint64_t first_index,
                  const Source& source) {
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    TRY(check_job(jobs[i], first_index + i, source.count));
    TRY(check_resources(state, jobs[i], first_index + i, source));
    TRY(check_after(state, jobs[i], first_index + i, source));
  }
  return {};
}

void set_queue(ApplyContext& c, const QueueSpec& spec) {
  State& state = c.state;
  const QueueId id = c.queue_named(spec.name);
  Queue& queue = state.queues.at(id);
  Overrides rules = queue.rules;
  for (const auto& [key, text] : spec.rules) {
    rules.insert_or_assign(canonical_rule(key), text);
  }
  if (queue.limit != spec.limit || queue.rules != rules) {
    queue.rules = std::move(rules);
    state_ops::resolve_shapes(state);
    c.set_limit(queue, spec.limit);
    c.step.changes.push_back(
        change::QueuePut{id, {queue.name, queue.limit, queue.rules}, queue.paused});
  }
}

/// A queue that is made for a job is as it shall be before the job comes: whether it is serial says
/// in which order jobs stand, and to order them anew takes a while.
void make_queue(ApplyContext& c, const std::string& name, const std::vector<QueueSpec>& queues) {
  if (c.state.queue_names.contains(name)) {
    return;
  }
  if (const auto spec = std::ranges::find(queues, name, &QueueSpec::name); spec != queues.end()) {
    set_queue(c, *spec);
  }
}

void set_totals(ApplyContext& c, const Resources& resources, const std::vector<QueueSpec>& queues) {
  State& state = c.state;
  for (const auto& [name, total] : resources) {
    if (const auto it = state.rules.resources.find(name);
        it == state.rules.resources.end() || it->second != total) {
      state.rules.resources[name] = total;
      state.recheck_all = true;
      c.step.changes.push_back(change::ResourcePut{name, total});
    }
  }
  for (const QueueSpec& spec : queues) {
    set_queue(c, spec);
  }
}

/// Puts the `index`th job of a submission in line.
void accept(ApplyContext& c, JobSpec job_spec, std::uint64_t index, const Source& source) {
  State& state = c.state;
  auto spec = std::make_shared<JobSpec>(std::move(job_spec));
  Job job;
  job.id = JobId{source.first.value + index};
  job.batch = source.batch;
  job.queue = c.queue_named(spec->queue);
  spec->request.time = spec->payload.time_limit;
  job.after_kind = spec->after_kind;
  job.owner = source.owner;
  job.priority = spec->priority;
  job.retries = spec->retries;
  std::set<JobId> after(spec->after.begin(), spec->after.end());
  for (const std::uint32_t position : spec->after_index) {
    after.insert(JobId{source.first.value + position});
  }
  std::vector<JobId> pending;
  JobId gone;
  for (const JobId id : after) {
    if (state.jobs.contains(id) || id > job.id) {
      pending.push_back(id);
      state.dependents[id].push_back(job.id);
    } else if (id >= source.first) {
      // It arrived with an earlier part and was cancelled since.
      gone = job.after_kind == After::ok ? id : gone;
    }
  }
  job.waiting_for = static_cast<std::uint32_t>(pending.size());
  c.step.changes.push_back(change::JobPut{
      job.id, job.batch, job.queue, job.owner, c.now.wall, spec, {after.begin(), after.end()}});
  if (!pending.empty()) {
    state.pending.emplace(job.id, std::move(pending));
  }
  Job& stored = state.jobs.emplace(job.id, job).first->second;
  state_ops::set_shape(state, stored, spec->request);
  if (spec->start_at > c.now.wall) {
    state_ops::delay(state, stored,
                     {c.now.mono + (spec->start_at - c.now.wall), spec->start_at, false});
  }
  if (stored.ready()) {
    state_ops::enqueue(state, stored, c.now);
  }
  if (gone) {
    c.cancel(stored, fmt::format("job {}, which it was to follow, was cancelled", gone.value));
    c.retire(stored.id);
  }
}

void note_submitted(ApplyContext& c, const Submitted& answer, const std::string& client_key,
                    std::uint32_t owner) {
  c.step.changes.push_back(
      change::History{"submitted",
                      answer.first,
                      {},
                      answer.batch,
                      answer.count == 1 ? std::string{} : fmt::format("{} jobs", answer.count),
                      c.now.wall});
  if (!client_key.empty()) {
    c.step.changes.push_back(
        change::ClientKey{client_key, owner, answer.batch, answer.first, answer.count});
  }
}

std::unexpected<Error> not_open(BatchId batch) {
  return fail(ErrorCode::conflict, fmt::format("batch {} is not being submitted", batch.value));
}

}  // namespace

Status check_room(const State& state) {
  if (state.low_space) {
    return fail(ErrorCode::no_space,
                fmt::format("no room to accept jobs ({}); free some space and submit again",
                            state.space_detail));
  }
  return {};
}

Status check_submission(const std::vector<JobSpec>& jobs) {
  if (jobs.empty()) {
    return fail(ErrorCode::invalid, "the submission has no jobs; give at least one");
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    TRY(check_job(jobs[i], i, jobs.size()));
  }
  return check_circles(jobs);
}

Result<Answer> apply_submit(ApplyContext& c, event::Submit submit) {
  State& state = c.state;
  const Source checked{
      submit.owner, {}, {}, submit.jobs.size(), submit.resources, submit.finished_dependencies};
  TRY(check_room(state));
  TRY(check_queues(submit.queues));
  TRY(check_rules(submit.batch_rules, RuleScope::batch, "the batch"));
  TRY(check_submission(submit.jobs));
  TRY(check_jobs(state, submit.jobs, 0, checked));
  submit.batch_max_concurrent = limit_of(submit.batch_max_concurrent, submit.batch_rules);
  set_totals(c, submit.resources, submit.queues);
  Submitted answer;
  answer.first = JobId{state.last_job.value + 1};
  answer.count = submit.jobs.size();
  if (!submit.batch_name.empty() || submit.jobs.size() > 1 || submit.batch_max_concurrent != 0 ||
      !submit.batch_rules.empty() || submit.traits != BatchTraits{}) {
    answer.batch = BatchId{++state.last_batch.value};
    Batch batch;
    batch.id = answer.batch;
    batch.name = submit.batch_name;
    batch.max_concurrent = submit.batch_max_concurrent;
    batch.live = answer.count;
    batch.owner = submit.owner;
    batch.rules = canonical(submit.batch_rules);
    c.step.changes.push_back(change::BatchPut{answer.batch,
                                              submit.batch_name,
                                              submit.owner,
                                              submit.batch_max_concurrent,
                                              answer.count,
                                              c.now.wall,
                                              false,
                                              false,
                                              {},
                                              batch.rules,
                                              std::move(submit.traits)});
    state.batches.emplace(answer.batch, std::move(batch));
  }
  state.last_job.value += answer.count;
  const Source source{submit.owner, answer.batch,     answer.first,
                      answer.count, submit.resources, submit.finished_dependencies};
  for (std::size_t i = 0; i < submit.jobs.size(); ++i) {
    accept(c, std::move(submit.jobs[i]), i, source);
  }
  note_submitted(c, answer, submit.client_key, submit.owner);
  return answer;
}

Result<Answer> apply_begin(ApplyContext& c, event::SubmitBegin begin) {
  State& state = c.state;
  TRY(check_room(state));
  TRY(check_queues(begin.queues));
  TRY(check_rules(begin.batch_rules, RuleScope::batch, "the batch"));
  if (begin.count == 0) {
    return fail(ErrorCode::invalid, "the submission has no jobs; give at least one");
  }
  begin.batch_max_concurrent = limit_of(begin.batch_max_concurrent, begin.batch_rules);
  Submitted answer;
  answer.batch = BatchId{++state.last_batch.value};
  answer.first = JobId{state.last_job.value + 1};
  answer.count = begin.count;
  state.last_job.value += begin.count;
  Batch batch;
  batch.id = answer.batch;
  batch.name = begin.batch_name;
  batch.max_concurrent = begin.batch_max_concurrent;
  batch.open = true;
  batch.owner = begin.owner;
  batch.rules = canonical(begin.batch_rules);
  begin.batch_rules = batch.rules;
  state.batches.emplace(answer.batch, std::move(batch));
  c.step.changes.push_back(change::BatchPut{
      answer.batch, begin.batch_name, begin.owner, begin.batch_max_concurrent, begin.count,
      c.now.wall, true, true, state.last_job, begin.batch_rules, begin.traits});
  state.submissions.emplace(answer.batch, OpenSubmission{std::move(begin), answer.first, 0});
  return answer;
}

Result<Answer> apply_part(ApplyContext& c, event::SubmitPart part) {
  State& state = c.state;
  const auto open = state.submissions.find(part.batch);
  if (open == state.submissions.end()) {
    return not_open(part.batch);
  }
  OpenSubmission& submission = open->second;
  const event::SubmitBegin& head = submission.head;
  if (part.jobs.size() > head.count - submission.arrived) {
    return fail(ErrorCode::invalid,
                fmt::format("more jobs than the {} that were announced", head.count));
  }
  const Source source{head.owner, part.batch,     submission.first,
                      head.count, head.resources, part.finished_dependencies};
  TRY(check_room(state));
  TRY(check_jobs(state, part.jobs, submission.arrived, source));
  state.batches.at(part.batch).live += part.jobs.size();
  for (JobSpec& job : part.jobs) {
    make_queue(c, job.queue, head.queues);
    accept(c, std::move(job), submission.arrived++, source);
  }
  return Answer{};
}

Result<Answer> apply_end(ApplyContext& c, const event::SubmitEnd& end) {
  State& state = c.state;
  const auto open = state.submissions.find(end.batch);
  if (open == state.submissions.end()) {
    return not_open(end.batch);
  }
  const OpenSubmission& submission = open->second;
  const event::SubmitBegin& head = submission.head;
  if (submission.arrived != head.count) {
    return fail(ErrorCode::invalid, fmt::format("only {} of the {} jobs that were announced came",
                                                submission.arrived, head.count));
  }
  set_totals(c, head.resources, head.queues);
  const Submitted answer{end.batch, submission.first, head.count};
  c.step.changes.push_back(change::BatchPut{end.batch,
                                            head.batch_name,
                                            head.owner,
                                            head.batch_max_concurrent,
                                            head.count,
                                            c.now.wall,
                                            true,
                                            false,
                                            {},
                                            head.batch_rules,
                                            head.traits});
  note_submitted(c, answer, head.client_key, head.owner);
  Batch& batch = state.batches.at(end.batch);
  batch.open = false;
  state.submissions.erase(open);
  if (batch.live == 0) {
    state.batches.erase(end.batch);  // all were cancelled on their way in
  } else {
    state_ops::refresh_batch(state, end.batch);
  }
  state.recheck_all = true;
  return answer;
}

Result<Answer> apply_abort(ApplyContext& c, const event::SubmitAbort& abort) {
  State& state = c.state;
  const auto open = state.submissions.find(abort.batch);
  if (open == state.submissions.end()) {
    return not_open(abort.batch);
  }
  const OpenSubmission& submission = open->second;
  const JobId last{submission.first.value + submission.arrived - 1};
  state.dropping.push_back({abort.batch, submission.first, last});
  state.submissions.erase(open);
  c.go_on();
  return Answer{};
}

}  // namespace berth
