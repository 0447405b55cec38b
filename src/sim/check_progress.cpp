#include "sim/check_progress.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "core/decide.hpp"
#include "core/reason.hpp"

namespace berth::sim {
namespace {

/// How often the costlier looks are taken.
constexpr std::uint64_t kRestoreEvery = 32;

std::vector<JobId> waiting_jobs(const State& state) {
  std::vector<JobId> ids;
  for (const auto& [id, job] : state.jobs) {
    if (job.waits()) {
      ids.push_back(id);
    }
  }
  std::ranges::sort(ids);
  return ids;
}

/// All of State that must survive a restart, as text; without what is only an internal number.
std::string essence(const State& state) {
  std::string out =
      fmt::format("running={} cpus={} memory={} last={}/{}/{}/{}\n", state.running, state.use.cpus,
                  state.use.memory, state.last_job.value, state.last_attempt.value,
                  state.last_batch.value, state.last_queue.value);
  for (const auto& [name, used] : state.use.resources) {
    out += used == 0 ? "" : fmt::format("resource {} {}\n", name, used);
  }
  for (const auto& [id, queue] : state.queues) {
    out += fmt::format("queue {} {} {}/{} paused={}\n", id.value, queue.name, queue.running,
                       queue.limit, queue.paused);
  }
  std::map<BatchId, const Batch*> batches;
  for (const auto& [id, batch] : state.batches) {
    batches.emplace(id, &batch);
  }
  for (const auto& [id, batch] : batches) {
    out += fmt::format("batch {} {}/{} live={}\n", id.value, batch->running, batch->max_concurrent,
                       batch->live);
  }
  std::map<JobId, const Job*> jobs;
  for (const auto& [id, job] : state.jobs) {
    jobs.emplace(id, &job);
  }
  for (const auto& [id, job] : jobs) {
    out += fmt::format("job {} {} q={} b={} p={} a={} {}/{}/{} wait={} kill={} rank={} first={}\n",
                       id.value, to_string(job->state), job->queue.value, job->batch.value,
                       job->priority, job->attempt.value, job->attempts, job->retries_used,
                       job->retries, job->waiting_for, job->kill_requested, state.rank(*job),
                       job->expedited);
  }
  std::set<std::pair<OrderKey, LaneKey>> heads;
  for (const auto& [shape, exposed] : state.ready.heads()) {
    for (const ReadyIndex::Head& head : exposed) {
      heads.emplace(head.key, head.lane);
    }
  }
  for (const auto& [key, lane] : heads) {
    out += fmt::format("head {} of {}/{}\n", key.job.value, lane.queue.value, lane.batch.value);
  }
  return out;
}

std::string first_difference(const std::string& a, const std::string& b) {
  const auto [in_a, in_b] = std::ranges::mismatch(a, b);
  const auto line = [](const std::string& text, std::size_t at) {
    const std::size_t from = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    return text.substr(from, text.find('\n', at) - from);
  };
  return fmt::format("'{}' in memory, '{}' on disk",
                     line(a, static_cast<std::size_t>(in_a - a.begin())),
                     line(b, static_cast<std::size_t>(in_b - b.begin())));
}

bool has(const std::vector<Reason>& reasons, Reason::Kind kind) {
  return std::ranges::any_of(reasons, [kind](const Reason& r) { return r.kind == kind; });
}

/// Shares change as time goes by, and with them who goes first, before the next look decides.
bool would_start(State state, JobId id, Now now) {
  state.recheck_all = true;
  const Decision decision = decide(state, now);
  return std::ranges::find(decision.start, id, &Placement::job) != decision.start.end();
}

}  // namespace

void ProgressChecker::durable(const Changes& changes) {
  for (const Change& change : changes) {
    disk_.put(change);
  }
}

void ProgressChecker::stepped(const Engine* engine, Now now, bool idle) {
  ++steps_;
  if (!engine || engine->broken()) {
    return;
  }
  const State& state = engine->state();
  check_claims(state);
  if (const std::vector<JobId> waiting = waiting_jobs(state); !waiting.empty()) {
    check_reasons(state, waiting[steps_ % waiting.size()], now);
  }
  if (idle && steps_ % kRestoreEvery == 0) {
    // A restart takes back what has not arrived completely, and that is as it should be.
    if (state.submissions.empty() && state.dropping.empty() && state.settling.empty()) {
      check_restores(state);
    }
    for (const JobId id : waiting_jobs(state)) {
      check_reasons(state, id, now);
    }
  }
}

void ProgressChecker::check_reasons(const State& state, JobId id, Now now) {
  const std::vector<Reason> reasons = explain(state, *state.job(id), now);
  if (reasons.empty()) {
    findings_.report(fmt::format("job {} waits and nothing says why", id.value));
  }
  for (const Reason& reason : reasons) {
    if (reason.kind == Reason::Kind::due && !would_start(state, id, now)) {
      findings_.report(fmt::format("job {} waits though nothing stands in its way", id.value));
    }
    if (reason.text.empty()) {
      findings_.report(fmt::format("job {} has a reason without a sentence", id.value));
    }
  }
}

void ProgressChecker::check_claims(const State& state) {
  std::map<AttemptId, std::size_t> held;
  for (const Gpu& gpu : state.gpus) {
    for (const Claim& claim : gpu.claims) {
      if (claim.ended) {
        continue;
      }
      ++held[claim.attempt];
      if (!state.attempts.contains(claim.attempt)) {
        findings_.report(fmt::format("{} is still promised to attempt {} of job {}, which is over",
                                     gpu.facts.uuid, claim.attempt.value, claim.job.value));
      }
    }
  }
  for (const auto& [id, attempt] : state.attempts) {
    if (const auto it = held.find(id); (it == held.end() ? 0 : it->second) != attempt.gpus.size()) {
      findings_.report(
          fmt::format("attempt {} is open and has lost what it was promised", id.value));
    }
  }
}

void ProgressChecker::check_restores(const State& state) {
  const std::string memory = essence(state);
  const std::string disk = essence(restore(snapshot_(), setup_.rules, setup_.host));
  if (memory != disk) {
    findings_.report("a restart would change what is known: " + first_difference(memory, disk));
  }
}

bool ProgressChecker::can_never_run(const Request& request) const {
  if ((setup_.host.cpus != 0 && request.cpus > setup_.host.cpus) ||
      (setup_.host.memory != 0 && request.memory > setup_.host.memory)) {
    return true;
  }
  for (const auto& [name, count] : request.resources) {
    if (const auto total = disk_.resources.find(name);
        total == disk_.resources.end() || count > total->second) {
      return true;
    }
  }
  const auto large_enough = std::ranges::count_if(setup_.cards, [&](Bytes total) {
    return memory_needed(request, setup_.rules, total) + setup_.rules.memory_margin <= total;
  });
  return request.gpus.min > static_cast<std::uint64_t>(large_enough);
}

void ProgressChecker::check_settled(const Engine& engine, Now now) {
  const State& state = engine.state();
  check_restores(state);
  for (const JobId id : alive()) {
    const Ledger::JobEntry& entry = disk_.jobs.at(id);
    const Job* job = state.job(id);
    if (!job || entry.state != JobState::queued) {
      findings_.report(fmt::format("job {} is {} for ever", id.value, to_string(entry.state)));
      continue;
    }
    const std::vector<Reason> reasons = explain(state, *job, now);
    // Behind something that cannot run, by dependency or in a serial queue, nothing can; and that
    // one is judged by itself.
    const bool behind = (has(reasons, Reason::Kind::dependency) && !entry.after.empty()) ||
                        has(reasons, Reason::Kind::queue_order);
    if (!behind && !can_never_run(entry.spec->request)) {
      findings_.report(fmt::format("job {} could run and waits for ever: {}", id.value,
                                   reasons.empty() ? "no reason given" : reasons.front().text));
    }
  }
  for (const Gpu& gpu : state.gpus) {
    if (!gpu.claims.empty()) {
      findings_.report(fmt::format("{} is promised to attempt {} for ever", gpu.facts.uuid,
                                   gpu.claims.front().attempt.value));
    }
  }
  if (state.running != 0 || !state.attempts.empty()) {
    findings_.report(fmt::format("{} jobs count as running, nothing runs", state.running));
  }
}

void ProgressChecker::check_empty(const Engine& engine) {
  const State& state = engine.state();
  for (const JobId id : alive()) {
    findings_.report(fmt::format("job {} was to end with all others and is {}", id.value,
                                 to_string(disk_.jobs.at(id).state)));
  }
  for (const auto& [what, left] :
       {std::pair("jobs", state.jobs.size()), std::pair("batches", state.batches.size()),
        std::pair("jobs that wait for others", state.pending.size()),
        std::pair("jobs others wait for", state.dependents.size()),
        std::pair("lines", state.ready.heads().size())}) {
    if (left > 0) {
      findings_.report(fmt::format("all jobs have ended and memory still holds {} {}", left, what));
    }
  }
}

std::vector<JobId> ProgressChecker::alive() const {
  std::vector<JobId> ids;
  for (const auto& [id, job] : disk_.jobs) {
    if (!is_terminal(job.state)) {
      ids.push_back(id);
    }
  }
  return ids;
}

}  // namespace berth::sim
