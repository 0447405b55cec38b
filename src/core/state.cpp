#include "core/state.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.hpp"
#include "core/rule_table.hpp"
#include "core/state_ops.hpp"

namespace berth {

std::int64_t random_turn(std::uint64_t seed, JobId job) {
  std::uint64_t x = seed * 0x9E3779B97F4A7C15U + job.value;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return static_cast<std::int64_t>((x ^ (x >> 31U)) >> 1U);
}

const Job* State::job(JobId id) const {
  const auto it = jobs.find(id);
  return it == jobs.end() ? nullptr : &it->second;
}

const Request& State::request(const Job& job) const {
  return shapes.at(job.shape).key.request;
}

const Rules& State::rules_of(const Job& job) const {
  return shapes.at(job.shape).rules;
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
  std::int64_t turn = 0;
  std::int64_t since = job.aged ? job.since.count() : 0;
  if (const auto moved = ranks.find(job.id);
      moved != ranks.end() && (job.order != Order::fifo || job.aged)) {
    // Whoever moved it knows better than any rule: to the front, or to the end.
    turn = moved->second < usual_rank(job.id) ? std::numeric_limits<std::int64_t>::min()
                                              : std::numeric_limits<std::int64_t>::max();
    since = job.aged ? turn : 0;
  } else if (job.order == Order::random) {
    turn = random_turn(rules_of(job).seed, job.id);
  } else if (job.order == Order::largest_first) {
    turn = -std::int64_t{request(job).gpus.max};
  }
  return {!job.expedited, !job.aged, since, job.priority, turn, rank(job), job.id};
}

LaneKey State::lane(const Job& job) const {
  if (job.expedited) {
    return {};
  }
  return {job.queue, batches.contains(job.batch) ? job.batch : BatchId{}, job.owner};
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
    if (shapes.at(shape).key.request.gpus.max > 0 || shapes.at(shape).rules.keep_host_memory > 0) {
      return true;
    }
  }
  return false;
}

namespace state_ops {

namespace {

void resolve(const State& state, Shape& shape) {
  shape.rules = state.rules;
  if (const auto queue = state.queues.find(shape.key.queue); queue != state.queues.end()) {
    overlay(shape.rules, queue->second.rules);
  }
  if (const auto batch = state.batches.find(shape.key.batch); batch != state.batches.end()) {
    overlay(shape.rules, batch->second.rules);
  }
  const Request& request = shape.key.request;
  overlay(shape.rules, request.rules);
}

}  // namespace

void set_shape(State& state, Job& job, const Request& request) {
  bool fresh = false;
  const ShapeId id = state.shapes.add({request, job.queue, job.batch}, fresh);
  if (fresh) {
    resolve(state, state.shapes.at(id));
  }
  forget_shape(state, job);
  job.shape = id;
}

void forget_shape(State& state, Job& job) {
  if (job.shape) {
    state.shapes.release(job.shape);
    job.shape = {};
  }
}

void resolve_instance(State& state) {
  Rules rules = state.base_rules;
  rules.resources = state.rules.resources;  // they are of the store, not of a layer
  overlay(rules, state.file_rules);
  overlay(rules, state.set_rules);
  state.rules = std::move(rules);
  resolve_shapes(state);
}

void resolve_shapes(State& state) {
  state.shapes.for_each([&state](ShapeId, Shape& shape) { resolve(state, shape); });
  state.recheck_all = true;
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

namespace {

/// Forgets clocks of jobs that have had their turn. Two for each that is added keep them short.
void drop_stale_clocks(State& state) {
  for (int i = 0; i < 2 && !state.wait_clocks.empty(); ++i) {
    const auto [since, id] = state.wait_clocks.front();
    if (const Job* job = state.job(id); job != nullptr && job->clocked && job->since == since) {
      return;
    }
    state.wait_clocks.pop_front();
  }
}

}  // namespace

void enqueue(State& state, Job& job, Now now) {
  BERTH_ASSERT(job.ready());
  const Rules& rules = state.rules_of(job);
  // Inside a serial queue the order is that of the file; `random` is for what stands side by side.
  const bool serial = state.queues.at(job.queue).limit == 1;
  job.order = serial ? Order::fifo : rules.order;
  if (!job.clocked) {
    job.clocked = true;
    job.since = now.mono;
    drop_stale_clocks(state);
    state.wait_clocks.emplace_back(now.mono, job.id);
  }
  const LaneKey lane = state.lane(job);
  // In a serial queue a job waits for GPUs only from its turn on.
  if (rules.max_wait > Millis{0} && (!serial || job.expedited)) {
    GpuWait& wait = state.gpu_waits[{lane, job.shape}];
    const auto waited = state.waited.find(job.id);
    const Millis came =
        wait.now(now.mono) - (waited == state.waited.end() ? Millis{0} : waited->second);
    wait.jobs.emplace(came, job.id);
    wait.came.emplace(job.id, came);
  }
  state.ready.add(lane, gate_of(state, lane), job.shape, state.order(job));
  state.recheck_shapes.push_back(job.shape);
}

void dequeue(State& state, const Job& job, Now now) {
  const LaneKey lane = state.lane(job);
  state.ready.remove(lane, job.shape, state.order(job));
  if (std::erase(state.expected, job.id) > 0) {
    state.recheck_all = true;  // others may have its place
  }
  const auto it = state.gpu_waits.find({lane, job.shape});
  if (it == state.gpu_waits.end()) {
    return;
  }
  GpuWait& wait = it->second;
  if (const auto came = wait.came.extract(job.id)) {
    state.waited[job.id] = wait.now(now.mono) - came.mapped();
    wait.jobs.erase({came.mapped(), job.id});
  }
  if (wait.jobs.empty()) {
    state.gpu_waits.erase(it);
  }
}

void delay(State& state, Job& job, Delay delay) {
  job.delayed = true;
  state.delays_in_order.emplace(delay.due, job.id);
  if (delay.backing_off) {
    state.queues.at(job.queue).backing_off.insert(job.id);
    refresh_queue(state, job.queue);
  }
  state.delays.emplace(job.id, delay);
}

void end_delay(State& state, Job& job) {
  const auto node = state.delays.extract(job.id);
  if (!node) {
    return;
  }
  state.delays_in_order.erase({node.mapped().due, job.id});
  job.delayed = false;
  if (node.mapped().backing_off) {
    state.queues.at(job.queue).backing_off.erase(job.id);
    refresh_queue(state, job.queue);
    state.recheck_all = true;
  }
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

void note_held(State& state, const Job& job) {
  if (job.held()) {
    state.held.insert(job.id);
  } else {
    state.held.erase(job.id);
  }
}

void forget_rank(State& state, JobId id) {
  if (const auto moved = state.ranks.extract(id)) {
    state.ranks_in_order.erase(state.ranks_in_order.find(moved.mapped()));
  }
}

namespace {

/// Changes by how many cards use grows, of the owner and of the batch. What is known for a later
/// moment, because it was written down when another attempt ended, has all before it.
template <class ChangeGpus>
void change_usage(State& state, const Job& job, Millis now, const ChangeGpus& change) {
  const auto settle = [&](Usage& usage) {
    usage.settle(std::max(now, usage.at), state.rules.half_life);
    change(usage.gpus);
  };
  settle(state.used_by_owner[job.owner]);
  if (job.batch) {
    settle(state.used_by_batch[job.batch]);
  }
}

}  // namespace

void occupy(State& state, const Job& job, const Attempt& attempt, Now now) {
  const Request& request = state.request(job);
  ++state.running;
  if (const auto gpus = static_cast<std::uint32_t>(attempt.gpus.size()); gpus > 0) {
    change_usage(state, job, now.mono, [gpus](std::uint32_t& in_use) { in_use += gpus; });
  }
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

void vacate(State& state, const Job& job, const Attempt& attempt, Now now) {
  const Request& request = state.request(job);
  --state.running;
  if (const auto gpus = static_cast<std::uint32_t>(attempt.gpus.size()); gpus > 0) {
    change_usage(state, job, now.mono, [gpus](std::uint32_t& in_use) { in_use -= gpus; });
  }
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
    Claim claim;
    claim.attempt = attempt.id;
    claim.job = attempt.job;
    claim.memory = attempt.gpu_memory;
    claim.made = made;
    it->claims.push_back(claim);
  }
}

}  // namespace state_ops

namespace {

/// A moment of the wall clock by the monotonic one, as far as the two can be compared.
Millis as_mono(Millis wall, Now now) {
  return now.mono + (wall - now.wall);
}

void restore_usage(State& state, const Snapshot& snapshot, Now now) {
  for (const change::UsagePut& put : snapshot.usage) {
    // A clock that was set back must not make use out of nothing.
    const Usage usage{put.gpu_ms, std::min(as_mono(put.wall, now), now.mono), 0};
    if (put.batch) {
      state.used_by_batch.emplace(BatchId{put.id}, usage);
    } else {
      state.used_by_owner.emplace(static_cast<std::uint32_t>(put.id), usage);
    }
  }
}

}  // namespace

State restore(const Snapshot& snapshot, Rules rules, HostCapacity host, Now now) {
  State state;
  state.base_rules = std::move(rules);
  state.rules = state.base_rules;
  state.rules.resources = snapshot.resources;
  state.paused = snapshot.paused;
  state.drains = snapshot.drains;
  state.ecc_seen = snapshot.ecc;
  restore_usage(state, snapshot, now);
  state.host = host;
  state.last_job = snapshot.last_job;
  state.last_attempt = snapshot.last_attempt;
  state.last_batch = snapshot.last_batch;
  state.last_queue = snapshot.last_queue;
  for (const auto& [id, spec] : snapshot.queues) {
    state.queues.emplace(
        id, Queue{id, spec.name, spec.limit, 0, snapshot.paused_queues.contains(id), spec.rules});
    state.queue_names.emplace(spec.name, id);
    state.ready.set_serial(id, spec.limit == 1);
  }
  for (const Snapshot::Batch& batch : snapshot.batches) {
    Batch known;
    known.id = batch.id;
    known.name = batch.name;
    known.max_concurrent = batch.max_concurrent;
    known.rules = batch.rules;
    state.batches.emplace(batch.id, std::move(known));
  }
  std::unordered_set<JobId> started;
  for (const Snapshot::OpenAttempt& open : snapshot.attempts) {
    started.insert(open.job);
  }
  std::unordered_map<JobId, Millis> kill_graces;
  for (const Snapshot::LiveJob& live : snapshot.jobs) {
    Job job;
    job.id = live.id;
    job.batch = live.batch;
    job.queue = live.queue;
    job.after_kind = live.after_kind;
    state_ops::set_shape(state, job, live.request);
    job.owner = live.owner;
    job.priority = live.priority;
    job.retries = live.retries;
    job.retries_used = live.retries_used;
    job.excused = live.excused;
    job.attempts = live.attempts;
    // What runs has had its turn, though what it followed may have been revived since.
    const std::vector<JobId> after = started.contains(live.id) ? std::vector<JobId>() : live.after;
    job.waiting_for = static_cast<std::uint32_t>(after.size());
    job.state = live.state;
    job.kill_requested = live.kill_requested;
    job.expedited = live.expedited;
    if (live.kill_grace) {
      kill_graces.emplace(live.id, *live.kill_grace);
    }
    if (live.rank != 0) {
      state_ops::set_rank(state, job, live.rank);
    }
    Job& stored = state.jobs.emplace(job.id, job).first->second;
    if (!started.contains(job.id)) {
      state_ops::note_held(state, stored);
    }
    if (const auto batch = state.batches.find(job.batch); batch != state.batches.end()) {
      ++batch->second.live;
      batch->second.owner = job.owner;
    }
    for (const JobId dependency : after) {
      state.dependents[dependency].push_back(job.id);
    }
    if (!after.empty()) {
      state.pending.emplace(job.id, after);
    }
    if (stored.waits() && live.not_before > now.wall) {
      state_ops::delay(state, stored,
                       {as_mono(live.not_before, now), live.not_before, live.backing_off});
    }
    if (stored.ready()) {
      // Its wait began when the last thing that it had to wait for was over. Where the store has
      // forgotten what it followed, or somebody has given it another life since, it began earlier.
      const Millis began = std::max({live.submitted, live.not_before, live.last_end});
      stored.clocked = true;
      stored.since = std::min(as_mono(began, now), now.mono);
      state.wait_clocks.emplace_back(stored.since, stored.id);
      state_ops::enqueue(state, stored, now);
    }
  }
  for (const Snapshot::OpenAttempt& open : snapshot.attempts) {
    const auto job = state.jobs.find(open.job);
    BERTH_ASSERT(job != state.jobs.end());
    job->second.attempt = open.id;
    Attempt attempt;
    attempt.id = open.id;
    attempt.job = open.job;
    attempt.number = open.number;
    attempt.gpus = open.gpus;
    attempt.gpu_memory = open.gpu_memory;
    attempt.gives_way = open.gives_way;
    attempt.started = std::min(as_mono(open.started, now), now.mono);
    if (const auto grace = kill_graces.find(open.job); grace != kill_graces.end()) {
      attempt.kill_grace = grace->second;
    }
    state_ops::claim(state, attempt, Millis{0});
    // Its use counts from its start on, or from when use was last written down.
    state_ops::occupy(state, job->second, attempt, {attempt.started, now.wall});
    state.attempts.emplace(open.id, std::move(attempt));
  }
  for (const auto& [id, ended_as] : snapshot.failed_dependencies) {
    if (auto followers = state.dependents.extract(id); !followers.empty()) {
      state.settling.push_back({id, ended_as, std::move(followers.mapped()), 0});
    }
  }
  std::ranges::sort(state.wait_clocks);
  for (const Snapshot::OpenBatch& open : snapshot.open_batches) {
    Batch cut_off;
    cut_off.id = open.id;
    cut_off.open = true;
    state.batches.emplace(open.id, std::move(cut_off));
    state.dropping.push_back({open.id, open.first, open.last});
  }
  state.recheck_all = true;
  return state;
}

std::optional<Millis> next_wake(const State& state, Now now) {
  std::optional<Millis> wake;
  const auto at = [&wake](Millis moment) { wake = std::min(wake.value_or(moment), moment); };
  if (!state.delays_in_order.empty()) {
    at(state.delays_in_order.begin()->first);
  }
  if (state.rules.aging > Millis{0} && !state.wait_clocks.empty()) {
    at(state.wait_clocks.front().first + state.rules.aging);
  }
  for (const auto& [key, wait] : state.gpu_waits) {
    if (wait.running_since && !wait.jobs.empty()) {
      at(now.mono + wait.jobs.begin()->first + state.shapes.at(key.second).rules.max_wait -
         wait.now(now.mono));
    }
  }
  return wake;
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
  out += state.paused ? "paused\n" : "";
  for (const auto& [uuid, why] : state.drains) {
    out += fmt::format("drained {} {}\n", uuid, why);
  }
  for (const auto& [uuid, errors] : state.ecc_seen) {
    out += errors == 0 ? "" : fmt::format("errors {} {}\n", uuid, errors);
  }
  for (const auto& [id, queue] : state.queues) {
    out += fmt::format("queue {} '{}' {}/{}{} {}\n", id.value, queue.name, queue.running,
                       queue.limit, queue.paused ? " paused" : "", queue.rules);
  }
  std::map<BatchId, const Batch*> batches;
  for (const auto& [id, batch] : state.batches) {
    batches.emplace(id, &batch);
  }
  for (const auto& [id, batch] : batches) {
    out += fmt::format("batch {} '{}' {}/{} live={} {}\n", id.value, batch->name, batch->running,
                       batch->max_concurrent, batch->live, batch->rules);
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
        "job {} {} batch={} queue={} owner={} priority={} shape={} attempt={} tries={}/{}+{}/{} "
        "wait={}[{}] kill={} rank={}{}{}\n",
        id.value, to_string(job->state), job->batch.value, job->queue.value, job->owner,
        job->priority, shape, job->attempt.value, job->attempts, job->retries_used, job->excused,
        job->retries, job->waiting_for, fmt::join(after, ","), job->kill_requested,
        state.rank(*job), job->expedited ? " expedited" : "", job->delayed ? " delayed" : "");
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
