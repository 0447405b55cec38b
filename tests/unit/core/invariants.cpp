#include "unit/core/invariants.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace berth::testing {
namespace {

std::string differs(const std::string& what, std::uint64_t is, std::uint64_t should) {
  return is == should ? std::string{} : fmt::format("{} is {}, should be {}", what, is, should);
}

std::string first_of(std::initializer_list<std::string> texts) {
  const auto* found = std::ranges::find_if(texts, [](const std::string& t) { return !t.empty(); });
  return found == texts.end() ? std::string{} : *found;
}

std::string describe_heads(const std::map<ShapeId, ReadyIndex::Heads>& heads) {
  std::string out;
  for (const auto& [shape, set] : heads) {
    out += fmt::format("[shape {}:", shape.value);
    for (const ReadyIndex::Head& head : set) {
      out += fmt::format(" {}@{}/{}", head.key.job.value, head.lane.queue.value,
                         head.lane.batch.value);
    }
    out += "]";
  }
  return out;
}

}  // namespace

std::string broken_counter(const State& state) {
  std::uint64_t running = 0;
  HostUse use;
  std::map<QueueId, std::uint64_t> by_queue;
  std::map<BatchId, std::uint64_t> by_batch;
  std::map<BatchId, std::uint64_t> live;
  for (const auto& [id, batch] : state.batches) {
    if (batch.open) {
      live[id];  // may have none yet
    }
  }
  for (const auto& [id, job] : state.jobs) {
    if (is_terminal(job.state)) {
      return fmt::format("job {} has ended and is still here", id.value);
    }
    if (job.batch) {
      ++live[job.batch];
    }
    const auto pending = state.pending.find(id);
    const std::size_t waits = pending == state.pending.end() ? 0 : pending->second.size();
    if (waits != job.waiting_for) {
      return fmt::format("job {} waits for {}, pending has {}", id.value, job.waiting_for, waits);
    }
    if (job.state != JobState::paused &&
        (job.state == JobState::running) != static_cast<bool>(job.attempt)) {
      return fmt::format("job {} is {} with attempt {}", id.value, to_string(job.state),
                         job.attempt.value);
    }
    if (job.held() != state.held.contains(id)) {
      return fmt::format("job {} is {} and {} among the held", id.value, to_string(job.state),
                         job.held() ? "not" : "is");
    }
    if (!job.attempt) {
      continue;
    }
    if (!state.attempts.contains(job.attempt) || state.attempts.at(job.attempt).job != id) {
      return fmt::format("job {} runs attempt {}, which is not its own", id.value,
                         job.attempt.value);
    }
    ++running;
    ++by_queue[job.queue];
    ++by_batch[job.batch];
    const Request& request = state.request(job);
    use.cpus += request.cpus;
    use.memory += request.memory;
    for (const auto& [name, count] : request.resources) {
      use.resources[name] += count;
    }
  }
  for (const JobId id : state.held) {
    if (!state.jobs.contains(id)) {
      return fmt::format("job {} is gone and still among the held", id.value);
    }
  }
  for (const auto& [id, after] : state.pending) {
    if (!state.jobs.contains(id)) {
      return fmt::format("job {} is gone and still waits for others", id.value);
    }
  }
  std::string found = first_of({differs("running", state.running, running),
                                differs("open attempts", state.attempts.size(), running),
                                differs("use.cpus", state.use.cpus, use.cpus),
                                differs("use.memory", state.use.memory, use.memory),
                                differs("number of batches", state.batches.size(), live.size())});
  for (const auto& [name, count] : state.use.resources) {
    found = first_of({found, differs("use of " + name, count, use.resources[name])});
  }
  for (const auto& [id, queue] : state.queues) {
    found = first_of({found, differs("running of " + queue.name, queue.running, by_queue[id])});
  }
  for (const auto& [id, batch] : state.batches) {
    const std::string name = fmt::format("batch {}", id.value);
    if (batch.open && !state.submissions.contains(id)) {
      continue;  // on its way out
    }
    found = first_of({found, differs("running of " + name, batch.running, by_batch[id]),
                      differs("live of " + name, batch.live, live[id])});
  }
  return found;
}

std::string broken_index(const State& state) {
  std::map<std::pair<LaneKey, ShapeId>, OrderKey> first_of_lane;
  std::map<QueueId, OrderKey> first_of_queue;
  for (const auto& [id, job] : state.jobs) {
    if (!job.ready()) {
      continue;
    }
    const OrderKey order = state.order(job);
    const auto keep_least = [&order](OrderKey& least) { least = std::min(least, order); };
    keep_least(first_of_lane.try_emplace({state.lane(job), job.shape}, order).first->second);
    const BatchId batch = state.lane(job).batch;
    if (!job.expedited && (!batch || !state.batches.at(batch).open)) {
      keep_least(first_of_queue.try_emplace(job.queue, order).first->second);
    }
  }
  std::map<ShapeId, ReadyIndex::Heads> expected;
  for (const auto& [where, key] : first_of_lane) {
    const auto& [lane, shape] = where;
    if (!key.ordinary) {
      expected[shape].insert({key, lane});
      continue;
    }
    const Queue& queue = state.queues.at(lane.queue);
    const Batch* batch = lane.batch ? &state.batches.at(lane.batch) : nullptr;
    const bool open = queue.open() && (batch == nullptr || (batch->has_room() && !batch->open));
    if (open && (queue.limit != 1 || first_of_queue.at(lane.queue) == key)) {
      expected[shape].insert({key, lane});
    }
  }
  return expected == state.ready.heads()
             ? std::string{}
             : fmt::format("the index exposes {}, should be {}",
                           describe_heads(state.ready.heads()), describe_heads(expected));
}

std::string broken_rank(const State& state) {
  std::multiset<std::int64_t> ranks;
  for (const auto& [id, rank] : state.ranks) {
    if (!state.jobs.contains(id) || rank == 0) {
      return fmt::format("job {} has the rank {}", id.value, rank);
    }
    ranks.insert(rank);
  }
  return ranks == state.ranks_in_order ? std::string{} : "ranks and their order do not match";
}

std::string broken_claim(const State& state) {
  std::multiset<std::pair<AttemptId, std::string>> held;
  for (const Gpu& gpu : state.gpus) {
    std::size_t whole = 0;
    std::size_t open = 0;
    Bytes promised = 0;
    for (const Claim& claim : gpu.claims) {
      if (claim.ended) {
        continue;
      }
      ++open;
      whole += claim.memory == 0 ? 1 : 0;
      promised += claim.shrunk ? std::min(claim.peak, claim.memory) : claim.memory;
      held.emplace(claim.attempt, gpu.facts.uuid);
    }
    if (whole > 1 || (whole == 1 && open > 1)) {
      return fmt::format("{} is promised as a whole and once more", gpu.facts.uuid);
    }
    if (gpu.facts.memory_total && promised > *gpu.facts.memory_total) {
      return fmt::format("{} has {} bytes, {} are promised", gpu.facts.uuid,
                         *gpu.facts.memory_total, promised);
    }
  }
  std::multiset<std::pair<AttemptId, std::string>> due;
  for (const auto& [id, attempt] : state.attempts) {
    for (const std::string& uuid : attempt.gpus) {
      due.emplace(id, uuid);
    }
  }
  return held == due ? std::string{} : "open claims and open attempts do not match";
}

std::string broken_limit(const State& state) {
  // Those started by hand know no limit.
  const auto ordinary = std::ranges::count_if(state.attempts, [&state](const auto& entry) {
    return !state.jobs.at(entry.second.job).expedited;
  });
  if (state.rules.max_concurrent != 0 && ordinary > std::ptrdiff_t{state.rules.max_concurrent}) {
    return "more jobs run than max_concurrent";
  }
  // Those that were started out of turn are on top of what a queue or batch may run.
  std::map<QueueId, std::uint32_t> in_queue;
  std::map<BatchId, std::uint32_t> in_batch;
  for (const auto& [id, job] : state.jobs) {
    if (job.attempt && job.expedited) {
      ++in_queue[job.queue];
      ++in_batch[job.batch];
    }
  }
  for (const auto& [id, queue] : state.queues) {
    if (queue.limit != 0 && queue.running > queue.limit + in_queue[id]) {
      return fmt::format("queue {} runs {} of {}", queue.name, queue.running, queue.limit);
    }
  }
  for (const auto& [id, batch] : state.batches) {
    if (batch.max_concurrent != 0 && batch.running > batch.max_concurrent + in_batch[id]) {
      return fmt::format("batch {} runs {} of {}", id.value, batch.running, batch.max_concurrent);
    }
  }
  if ((state.host.cpus != 0 && state.use.cpus > state.host.cpus) ||
      (state.host.memory != 0 && state.use.memory > state.host.memory)) {
    return "more is used of the host than it has";
  }
  for (const auto& [name, count] : state.use.resources) {
    const auto total = state.rules.resources.find(name);
    if (count > (total == state.rules.resources.end() ? 0 : total->second)) {
      return fmt::format("{} '{}' are used", count, name);
    }
  }
  return {};
}

std::string broken_invariant(const State& state) {
  return first_of(
      {broken_counter(state), broken_index(state), broken_rank(state), broken_claim(state)});
}

}  // namespace berth::testing
