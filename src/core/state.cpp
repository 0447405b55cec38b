#include "core/state.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.hpp"
#include "core/state_ops.hpp"

namespace berth {

const Job* State::job(JobId id) const {
  const auto it = jobs.find(id);
  return it == jobs.end() ? nullptr : &it->second;
}

const Request& State::request(const Job& job) const {
  return shapes[job.shape.value - 1];
}

const Gpu* State::gpu(const std::string& uuid) const {
  const auto it = std::ranges::find(gpus, uuid, [](const Gpu& g) { return g.facts.uuid; });
  return it == gpus.end() ? nullptr : &*it;
}

std::int64_t State::rank(const Job& job) const {
  const auto moved = ranks.find(job.id);
  return moved == ranks.end() ? usual_rank(job.id) : moved->second;
}

OrderKey State::order(const Job& job) const {
  return {!job.expedited, job.priority, rank(job), job.id};
}

LaneKey State::lane(const Job& job) const {
  if (job.expedited) {
    return {};
  }
  const auto batch = batches.find(job.batch);
  const bool apart = batch != batches.end() && batch->second.own_lanes;
  return {job.queue, apart ? job.batch : BatchId{}};
}

bool State::wants_samples() const {
  for (const Gpu& gpu : gpus) {
    // Ended ones too, and those on a card that the driver no longer shows: not seeing a card is no
    // evidence that it is free, so one goes on looking.
    if (!gpu.claims.empty()) {
      return true;
    }
  }
  for (const auto& [shape, heads] : ready.heads()) {
    if (shapes[shape.value - 1].gpus.max > 0) {
      return true;
    }
  }
  return false;
}

namespace state_ops {

ShapeId intern(State& state, const Request& request) {
  const auto [it, fresh] = state.shape_ids.try_emplace(request, ShapeId{state.shapes.size() + 1});
  if (fresh) {
    state.shapes.push_back(request);
  }
  return it->second;
}

namespace {

ReadyIndex::Gate gate_of(const State& state, LaneKey lane) {
  using Gate = ReadyIndex::Gate;
  if (!lane.queue) {
    return Gate::open;  // that of the expedited
  }
  if (lane.batch) {
    const Batch& batch = state.batches.at(lane.batch);
    if (batch.open) {
      return Gate::hidden;
    }
    if (!batch.has_room()) {
      return Gate::closed;
    }
  }
  return state.queues.at(lane.queue).open() ? Gate::open : Gate::closed;
}

void refresh_lanes(State& state, const std::vector<LaneKey>& lanes) {
  for (const LaneKey lane : lanes) {
    state.ready.set_gate(lane, gate_of(state, lane));
  }
}

}  // namespace

void enqueue(State& state, const Job& job) {
  BERTH_ASSERT(job.state == JobState::queued && job.waiting_for == 0);
  const LaneKey lane = state.lane(job);
  state.ready.add(lane, gate_of(state, lane), job.shape, state.order(job));
  state.recheck_shapes.push_back(job.shape);
}

void dequeue(State& state, const Job& job) {
  state.ready.remove(state.lane(job), job.shape, state.order(job));
}

void refresh_queue(State& state, QueueId queue) {
  state.ready.set_serial(queue, state.queues.at(queue).limit == 1);
  refresh_lanes(state, state.ready.lanes_of(queue));
}

void refresh_batch(State& state, BatchId batch) {
  refresh_lanes(state, state.ready.lanes_of(batch));
}

void set_rank(State& state, const Job& job, std::int64_t rank) {
  forget_rank(state, job.id);
  state.ranks.emplace(job.id, rank);
  state.ranks_in_order.insert(rank);
}

void forget_rank(State& state, JobId id) {
  if (const auto moved = state.ranks.extract(id)) {
    state.ranks_in_order.erase(state.ranks_in_order.find(moved.mapped()));
  }
}

void occupy(State& state, const Job& job) {
  const Request& request = state.request(job);
  ++state.running;
  state.use.cpus += request.cpus;
  state.use.memory += request.memory;
  for (const auto& [name, count] : request.resources) {
    state.use.resources[name] += count;
  }
  Queue& queue = state.queues.at(job.queue);
  ++queue.running;
  if (queue.running == queue.limit) {
    refresh_lanes(state, state.ready.lanes_of(queue.id));
  }
  if (const auto it = state.batches.find(job.batch); it != state.batches.end()) {
    Batch& batch = it->second;
    ++batch.running;
    if (batch.running == batch.max_concurrent) {
      refresh_lanes(state, state.ready.lanes_of(batch.id));
    }
  }
}

void vacate(State& state, const Job& job) {
  const Request& request = state.request(job);
  --state.running;
  state.use.cpus -= request.cpus;
  state.use.memory -= request.memory;
  for (const auto& [name, count] : request.resources) {
    state.use.resources[name] -= count;
  }
  Queue& queue = state.queues.at(job.queue);
  --queue.running;
  if (queue.limit != 0 && queue.running + 1 == queue.limit) {
    refresh_lanes(state, state.ready.lanes_of(queue.id));
  }
  if (const auto it = state.batches.find(job.batch); it != state.batches.end()) {
    Batch& batch = it->second;
    --batch.running;
    if (batch.max_concurrent != 0 && batch.running + 1 == batch.max_concurrent) {
      refresh_lanes(state, state.ready.lanes_of(batch.id));
    }
  }
  state.recheck_all = true;
}

void claim(State& state, const Attempt& attempt, Millis made) {
  for (const std::string& uuid : attempt.gpus) {
    auto it = std::ranges::find(state.gpus, uuid, [](const Gpu& g) { return g.facts.uuid; });
    if (it == state.gpus.end()) {
      // Restored from disk before the first look at the machine.
      Gpu unseen;
      unseen.facts.uuid = uuid;
      unseen.facts.trouble = "not seen since the restart";
      it = state.gpus.insert(state.gpus.end(), std::move(unseen));
    }
    it->claims.push_back({attempt.id, attempt.job, attempt.gpu_memory, std::nullopt, made});
  }
}

}  // namespace state_ops

State restore(const Snapshot& snapshot, Rules rules, HostCapacity host) {
  State state;
  state.rules = std::move(rules);
  state.rules.resources = snapshot.resources;
  state.host = host;
  state.last_job = snapshot.last_job;
  state.last_attempt = snapshot.last_attempt;
  state.last_batch = snapshot.last_batch;
  state.last_queue = snapshot.last_queue;
  for (const auto& [id, spec] : snapshot.queues) {
    state.queues.emplace(id,
                         Queue{id, spec.name, spec.limit, 0, snapshot.paused_queues.contains(id)});
    state.queue_names.emplace(spec.name, id);
    state.ready.set_serial(id, spec.limit == 1);
  }
  for (const Snapshot::Batch& batch : snapshot.batches) {
    state.batches.emplace(batch.id, Batch{batch.id, batch.name, batch.max_concurrent, 0, 0, false,
                                          batch.max_concurrent != 0 || batch.in_parts});
  }
  std::unordered_map<JobId, Millis> kill_graces;
  for (const Snapshot::LiveJob& live : snapshot.jobs) {
    Job job;
    job.id = live.id;
    job.batch = live.batch;
    job.queue = live.queue;
    job.shape = state_ops::intern(state, live.request);
    job.owner = live.owner;
    job.priority = live.priority;
    job.retries = live.retries;
    job.retries_used = live.retries_used;
    job.attempts = live.attempts;
    job.waiting_for = static_cast<std::uint32_t>(live.after.size());
    job.state = live.state;
    job.kill_requested = live.kill_requested;
    job.expedited = live.expedited;
    if (live.kill_grace) {
      kill_graces.emplace(live.id, *live.kill_grace);
    }
    if (live.rank != 0) {
      state_ops::set_rank(state, job, live.rank);
    }
    const Job& stored = state.jobs.emplace(job.id, job).first->second;
    if (const auto batch = state.batches.find(job.batch); batch != state.batches.end()) {
      ++batch->second.live;
    }
    for (const JobId dependency : live.after) {
      state.dependents[dependency].push_back(job.id);
    }
    if (!live.after.empty()) {
      state.pending.emplace(job.id, live.after);
    }
    if (job.state == JobState::queued && job.waiting_for == 0) {
      state_ops::enqueue(state, stored);
    }
  }
  for (const Snapshot::OpenAttempt& open : snapshot.attempts) {
    const auto job = state.jobs.find(open.job);
    BERTH_ASSERT(job != state.jobs.end());
    job->second.attempt = open.id;
    Attempt attempt{open.id, open.job, open.number, open.gpus, open.gpu_memory, {}};
    if (const auto grace = kill_graces.find(open.job); grace != kill_graces.end()) {
      attempt.kill_grace = grace->second;
    }
    state_ops::claim(state, attempt, Millis{0});
    state_ops::occupy(state, job->second);
    state.attempts.emplace(open.id, std::move(attempt));
  }
  for (const auto& [id, ended_as] : snapshot.failed_dependencies) {
    if (auto followers = state.dependents.extract(id); !followers.empty()) {
      state.settling.push_back({id, ended_as, std::move(followers.mapped()), 0});
    }
  }
  for (const Snapshot::OpenBatch& open : snapshot.open_batches) {
    state.batches.emplace(open.id, Batch{open.id, {}, 0, 0, 0, true, true});
    state.dropping.push_back({open.id, open.first, open.last});
  }
  state.recheck_all = true;
  return state;
}

std::string fingerprint(const State& state) {
  std::string out = fmt::format("jobs={} attempts={} running={} low_space={} last={}/{}/{}/{}\n",
                                state.jobs.size(), state.attempts.size(), state.running,
                                state.low_space, state.last_job.value, state.last_attempt.value,
                                state.last_batch.value, state.last_queue.value);
  const auto counts = [](const std::map<std::string, std::uint64_t>& named) {
    std::string text;
    for (const auto& [name, count] : named) {
      text += count == 0 ? "" : fmt::format(" {}={}", name, count);
    }
    return text;
  };
  out += fmt::format("use cpus={} memory={}{} of{}\n", state.use.cpus, state.use.memory,
                     counts(state.use.resources), counts(state.rules.resources));
  for (const auto& [id, queue] : state.queues) {
    out += fmt::format("queue {} '{}' {}/{}{}\n", id.value, queue.name, queue.running, queue.limit,
                       queue.paused ? " paused" : "");
  }
  std::map<BatchId, const Batch*> batches;
  for (const auto& [id, batch] : state.batches) {
    batches.emplace(id, &batch);
  }
  for (const auto& [id, batch] : batches) {
    out += fmt::format("batch {} '{}' {}/{} live={}\n", id.value, batch->name, batch->running,
                       batch->max_concurrent, batch->live);
  }
  std::map<JobId, const Job*> ordered;
  for (const auto& [id, job] : state.jobs) {
    ordered.emplace(id, &job);
  }
  // How shapes are numbered depends on jobs long gone; which jobs share one does not.
  std::map<ShapeId, std::size_t> shapes;
  for (const auto& [id, job] : ordered) {
    const std::size_t shape = shapes.try_emplace(job->shape, shapes.size() + 1).first->second;
    std::vector<std::uint64_t> after;
    if (const auto it = state.pending.find(id); it != state.pending.end()) {
      for (const JobId dependency : it->second) {
        after.push_back(dependency.value);
      }
    }
    out += fmt::format(
        "job {} {} batch={} queue={} owner={} priority={} shape={} attempt={} tries={}/{}/{} "
        "wait={}[{}] kill={} rank={}{}\n",
        id.value, to_string(job->state), job->batch.value, job->queue.value, job->owner,
        job->priority, shape, job->attempt.value, job->attempts, job->retries_used, job->retries,
        job->waiting_for, fmt::join(after, ","), job->kill_requested, state.rank(*job),
        job->expedited ? " expedited" : "");
  }
  for (const Gpu& gpu : state.gpus) {
    out += fmt::format("gpu {}", gpu.facts.uuid);
    for (const Claim& claim : gpu.claims) {
      out += fmt::format(" claim={}:{}{}", claim.attempt.value, claim.memory,
                         claim.ended ? ":ended" : "");
    }
    out += '\n';
  }
  std::set<JobId> ready;
  for (const auto& [shape, heads] : state.ready.heads()) {
    for (const ReadyIndex::Head& head : heads) {
      ready.insert(head.key.job);
    }
  }
  for (const JobId id : ready) {
    out += fmt::format("ready {}\n", id.value);
  }
  return out;
}

}  // namespace berth
