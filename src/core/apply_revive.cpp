// Jobs that have ended and are to run again.

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "core/apply_context.hpp"
#include "core/state_ops.hpp"

namespace berth {
namespace {

/// What it was to follow and that has ended otherwise; none: nothing is in its way.
JobId failed_dependency(const State& state, const EndedJob& row, const event::Revive& revive) {
  for (const JobId id : row.after) {
    const auto ended = revive.finished_dependencies.find(id);
    if (!state.jobs.contains(id) && ended != revive.finished_dependencies.end() &&
        !is_as_wanted(row.after_kind, ended->second)) {
      return id;
    }
  }
  return {};
}

/// The batch it belongs to counts one more; one that had left memory comes back.
void rejoin_batch(ApplyContext& c, const EndedJob& row) {
  State& state = c.state;
  if (!row.batch) {
    return;
  }
  const auto [batch, made] = state.batches.try_emplace(row.batch);
  if (made) {
    batch->second.id = row.batch;
    batch->second.name = row.batch_name;
    batch->second.max_concurrent = row.batch_max_concurrent;
    batch->second.owner = row.owner;
    batch->second.rules = row.batch_rules;
    // What it used was forgotten when it left; a restart must not know better.
    c.step.changes.push_back(change::UsagePut{true, row.batch.value, 0, c.now.wall});
  }
  ++batch->second.live;
}

void put_back(ApplyContext& c, const EndedJob& row) {
  State& state = c.state;
  rejoin_batch(c, row);
  Job job;
  job.id = row.id;
  job.batch = row.batch;
  job.queue = row.queue;
  job.after_kind = row.after_kind;
  job.owner = row.owner;
  job.priority = row.priority;
  job.retries = row.retries;
  job.attempts = row.attempts;
  std::vector<JobId> pending;
  for (const JobId id : row.after) {
    if (state.jobs.contains(id)) {
      pending.push_back(id);
      state.dependents[id].push_back(row.id);
    }
  }
  job.waiting_for = static_cast<std::uint32_t>(pending.size());
  if (!pending.empty()) {
    state.pending.emplace(row.id, std::move(pending));
  }
  state_ops::set_shape(state, job, row.request);
  if (row.rank != 0) {
    state_ops::set_rank(state, job, row.rank);
  }
  Job& stored = state.jobs.emplace(job.id, job).first->second;
  if (stored.ready()) {
    state_ops::enqueue(state, stored, c.now);
  }
  if (row.expedited) {
    stored.expedited = true;
    c.end_expedition(stored);
  }
  c.write(stored);
  std::get<change::JobUpdate>(c.step.changes.back()).revived = true;
  c.history("revived", stored, {},
            fmt::format("had {}", row.state == JobState::killed ? "been killed"
                                  : row.state == JobState::cancelled
                                      ? "been cancelled"
                                      : std::string(to_string(row.state))));
  state.recheck_all = true;
}

/// Why it cannot wait again whatever it follows; empty: it can.
std::string objection(const State& state, const EndedJob& row, const event::Revive& revive) {
  if (row.state == JobState::succeeded && !revive.succeeded) {
    return "has succeeded";
  }
  if (const auto batch = state.batches.find(row.batch);
      batch != state.batches.end() && batch->second.open) {
    return "belongs to a batch that is still being submitted";
  }
  return state.queues.contains(row.queue) ? "" : "its queue is gone";
}

}  // namespace

Result<Answer> apply_revive(ApplyContext& c, const event::Revive& revive) {
  TRY(check_room(c.state));
  Controlled answer;
  std::unordered_map<JobId, const EndedJob*> rows;
  for (const EndedJob& row : revive.ended) {
    rows.emplace(row.id, &row);
  }
  std::vector<const EndedJob*> left;
  std::unordered_set<JobId> seen;
  for (const JobId id : revive.jobs) {
    const auto row = rows.find(id);
    if (!seen.insert(id).second) {
      continue;
    }
    if (c.state.jobs.contains(id)) {
      answer.refused["has not ended"].push_back(id);
    } else if (row == rows.end()) {
      answer.absent.push_back(id);
    } else if (std::string why = objection(c.state, *row->second, revive); !why.empty()) {
      answer.refused[std::move(why)].push_back(id);
    } else {
      left.push_back(row->second);
    }
  }
  // Round after round: a job can wait for another once that one lives again.
  for (bool progress = true; progress;) {
    progress = false;
    std::vector<const EndedJob*> again;
    for (const EndedJob* row : left) {
      if (failed_dependency(c.state, *row, revive)) {
        again.push_back(row);
        continue;
      }
      put_back(c, *row);
      answer.jobs[Controlled::What::revived].push_back(row->id);
      progress = true;
    }
    left = std::move(again);
  }
  for (const EndedJob* row : left) {
    const JobId id = failed_dependency(c.state, *row, revive);
    answer
        .refused[fmt::format("follows job {}, which {}; run both again", id.value,
                             to_string(revive.finished_dependencies.at(id)))]
        .push_back(row->id);
  }
  return answer;
}

}  // namespace berth
