#include "sim/check_placement.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "core/rule_table.hpp"

namespace berth::sim {

void PlacementChecker::moment(Now now) {
  moments_.push_back({now, samples_.size() - 1});
}

void PlacementChecker::handling(const Event& event) {
  if (const auto* sampled = std::get_if<event::Sampled>(&event)) {
    samples_.emplace_back(
        Seen{sampled->sample, moments_.empty() ? Millis(0) : moments_.back().now.mono});
  } else if (std::holds_alternative<event::ProbeFailed>(event)) {
    samples_.emplace_back(std::nullopt);
  }
  if (!moments_.empty()) {
    moments_.back().sample = samples_.size() - 1;
  }
}

void PlacementChecker::handed(const Transaction& transaction) {
  bool ended = false;
  for (const Change& change : transaction.changes) {
    if (const auto* put = std::get_if<change::AttemptPut>(&change)) {
      check_start(*put);
    } else if (const auto* end = std::get_if<change::AttemptEnd>(&change)) {
      for (const Moment& moment : moments_) {
        if (moment.now.wall == end->wall) {
          ended_.try_emplace(end->id, moment.now.mono);
        }
      }
    }
    head_.put(change);
    ended = ended || std::holds_alternative<change::JobUpdate>(change) ||
            std::holds_alternative<change::JobPut>(change);
  }
  if (ended) {
    check_followers();
  }
  // All that was decided before this moment is in this transaction or an earlier one.
  moments_.erase(moments_.begin(), moments_.end() - 1);
}

void PlacementChecker::durable(const Changes& changes) {
  for (const Change& change : changes) {
    disk_.put(change);
  }
}

void PlacementChecker::crashed(bool /*machine*/) {
  samples_.assign(1, std::nullopt);
  moments_.clear();
  ended_.clear();
}

void PlacementChecker::restarted(const Snapshot& /*snapshot*/) {
  // By now it is known what became of the commit that was under way.
  head_ = disk_;
}

void PlacementChecker::check_start(const change::AttemptPut& put) {
  const Ledger::JobEntry* job = head_.job(put.job);
  if (!job) {
    findings_.report(
        fmt::format("attempt {} is of job {}, which is not there", put.id.value, put.job.value));
    return;
  }
  for (const AttemptId other : head_.open) {
    if (head_.attempts.at(other).job == put.job) {
      findings_.report(fmt::format("job {} has two open attempts, {} and {}", put.job.value,
                                   other.value, put.id.value));
    }
  }
  if (job->state != JobState::running || job->kill_requested) {
    findings_.report(fmt::format("job {} was started while {}{}", put.job.value,
                                 to_string(job->state), job->kill_requested ? ", killed" : ""));
  }
  if (!head_.dependencies_met(*job)) {
    findings_.report(
        fmt::format("job {} was started before all it follows had succeeded", put.job.value));
  }
  check_limits(put.job, *job);
  check_order(put.job, *job);
  check_cards(put, *job);
}

std::uint64_t PlacementChecker::running_where(
    const std::function<bool(const Ledger::JobEntry&)>& counts) const {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      head_.open, [&](AttemptId id) { return counts(*head_.job(head_.attempts.at(id).job)); }));
}

void PlacementChecker::check_limits(JobId id, const Ledger::JobEntry& job) {
  const auto over = [&](std::string_view what, std::uint64_t used, std::uint64_t limit) {
    if (used > limit) {
      findings_.report(
          fmt::format("with job {} {} are used of {}, which has {}", id.value, used, what, limit));
    }
  };
  const QueueSpec& queue = head_.queues.at(job.queue);
  if (head_.paused_queues.contains(job.queue) && !job.expedited) {
    findings_.report(
        fmt::format("job {} was started by the paused queue '{}'", id.value, queue.name));
  }
  if (queue.limit != 0 && !job.expedited) {
    over("queue " + queue.name,
         1 + running_where([&](const auto& other) { return other.queue == job.queue; }),
         queue.limit);
  }
  if (const auto batch = head_.batch_limits.find(job.batch);
      batch != head_.batch_limits.end() && batch->second != 0 && !job.expedited) {
    over("its batch",
         1 + running_where([&](const auto& other) { return other.batch == job.batch; }),
         batch->second);
  }
  if (setup_.rules.max_concurrent != 0 && !job.expedited) {
    over("max_concurrent", 1 + head_.open.size(), setup_.rules.max_concurrent);
  }
  std::uint64_t cpus = job.spec->request.cpus;
  Bytes memory = job.spec->request.memory;
  std::map<std::string, std::uint64_t> resources = job.spec->request.resources;
  for (const AttemptId other : head_.open) {
    const Request& request = head_.job(head_.attempts.at(other).job)->spec->request;
    cpus += request.cpus;
    memory += request.memory;
    for (auto& [name, used] : resources) {
      const auto it = request.resources.find(name);
      used += it == request.resources.end() ? 0 : it->second;
    }
  }
  if (setup_.host.cpus != 0 && job.spec->request.cpus != 0) {
    over("CPUs", cpus, setup_.host.cpus);
  }
  if (setup_.host.memory != 0 && job.spec->request.memory != 0) {
    over("host memory", memory, setup_.host.memory);
  }
  for (const auto& [name, used] : resources) {
    const auto total = head_.resources.find(name);
    over(name, used, total == head_.resources.end() ? 0 : total->second);
  }
}

void PlacementChecker::check_order(JobId id, const Ledger::JobEntry& job) {
  const bool serial = head_.queues.at(job.queue).limit == 1 && !job.expedited;
  const auto place = [](JobId of, const Ledger::JobEntry& entry) {
    const std::int64_t usual = static_cast<std::int64_t>(of.value) << 20;
    return std::tuple{!entry.expedited, entry.spec->priority, entry.rank == 0 ? usual : entry.rank,
                      of};
  };
  for (const auto& [other_id, other] : head_.jobs) {
    if (other.state != JobState::queued || place(other_id, other) > place(id, job) ||
        !head_.dependencies_met(other) || head_.open_batches.contains(other.batch)) {
      continue;
    }
    if (other.expedited) {
      if (other.spec->request == job.spec->request) {
        findings_.report(fmt::format("job {} was started before job {}, which was to be the next",
                                     id.value, other_id.value));
        return;
      }
      continue;
    }
    if (other.queue != job.queue) {
      continue;
    }
    if (serial) {
      findings_.report(fmt::format("job {} was started before job {} of the serial queue '{}'",
                                   id.value, other_id.value, head_.queues.at(job.queue).name));
      return;
    }
    const auto limit = head_.batch_limits.find(other.batch);
    const bool held = limit != head_.batch_limits.end() && limit->second != 0 &&
                      running_where([&](const auto& third) {
                        return third.batch == other.batch;
                      }) >= limit->second;
    // Between users and between batches it is who has used less. One that has lost its card or its
    // memory waits for a look of its own.
    if (!held && !other.avoids && !lost_since(other_id, first_look()) && other.owner == job.owner &&
        other.batch == job.batch && other.spec->request == job.spec->request) {
      findings_.report(
          fmt::format("job {} was started before its like, job {}", id.value, other_id.value));
      return;
    }
  }
}

void PlacementChecker::check_cards(const change::AttemptPut& put, const Ledger::JobEntry& job) {
  const Request& request = job.spec->request;
  const std::set<std::string> distinct(put.gpus.begin(), put.gpus.end());
  if (distinct.size() != put.gpus.size() || put.gpus.size() < request.gpus.min ||
      put.gpus.size() > request.gpus.max) {
    findings_.report(fmt::format("job {} asks for {}..{} GPUs and got {}, {} of them distinct",
                                 put.job.value, request.gpus.min, request.gpus.max, put.gpus.size(),
                                 distinct.size()));
  }
  if (put.gpu_memory != request.gpu_memory.value_or(0)) {
    findings_.report(
        fmt::format("job {} was promised other memory than it asked for", put.job.value));
  }
  for (const std::string& uuid : put.gpus) {
    std::string problem = "its decision belongs to no moment";
    for (const Moment& moment : moments_) {
      // After a jump of the wall clock two moments can look alike; one of them must be right.
      if (moment.now.wall == put.wall) {
        problem = card_problem(put, job, uuid, moment);
        if (problem.empty()) {
          break;
        }
      }
    }
    if (!problem.empty()) {
      findings_.report(fmt::format("job {} was put on {}, but {}", put.job.value, uuid, problem));
      return;
    }
  }
}

std::string PlacementChecker::card_problem(const change::AttemptPut& put,
                                           const Ledger::JobEntry& job, const std::string& uuid,
                                           const Moment& moment) const {
  const std::optional<Seen>& seen = samples_[moment.sample];
  if (!seen || moment.now.mono - seen->arrived > setup_.rules.sample_age_max) {
    return "nobody had looked at it lately";
  }
  if (lost_since(put.job, seen->sample.begun_mono)) {
    return "nobody had looked at it since the job lost a card or its memory";
  }
  const auto facts = std::ranges::find(seen->sample.gpus, uuid, &GpuFacts::uuid);
  if (facts == seen->sample.gpus.end() || !facts->trouble.empty()) {
    return "it was not usable";
  }
  if (head_.drained.contains(uuid)) {
    return "it was out of use";
  }
  if (!facts->memory_total || !facts->memory_free) {
    return "how much of it is free was not known";
  }
  const auto used_by = [&](AttemptId attempt) {
    Bytes used = 0;
    for (const GpuProcess& process : facts->processes.value_or(std::vector<GpuProcess>{})) {
      used += process.attempt == attempt ? process.memory.value_or(0) : 0;
    }
    return used;
  };
  const bool whole = put.gpu_memory == 0;
  Bytes claims = put.gpu_memory;
  Bytes growth = setup_.rules.memory_margin;  ///< what is promised and not yet used
  for (const AttemptId id : head_.open) {
    const Ledger::AttemptEntry& other = head_.attempts.at(id);
    if (std::ranges::find(other.gpus, uuid) == other.gpus.end()) {
      continue;
    }
    if (whole || other.memory == 0) {
      return fmt::format("attempt {} has it, and one of them wants all of it", id.value);
    }
    claims += other.memory;
    const Bytes used = used_by(id);
    growth += other.memory > used ? other.memory - used : 0;
  }
  if (claims > *facts->memory_total) {
    return fmt::format("{} of its {} bytes are promised", claims, *facts->memory_total);
  }
  const Bytes needed = memory_needed(job.spec->request, setup_.rules, *facts->memory_total);
  if (*facts->memory_free < growth + needed) {
    return fmt::format("{} bytes were free and {} are needed beside {} promised",
                       *facts->memory_free, needed, growth);
  }
  std::uint32_t strangers = 0;
  for (const GpuProcess& process : facts->processes.value_or(std::vector<GpuProcess>{})) {
    strangers += process.attempt ? 0 : process.utilization.value_or(0);
  }
  Rules rules = setup_.rules;
  overlay(rules, job.spec->request.rules);
  if (!job.expedited && std::min<std::uint32_t>(strangers, 100) > rules.max_utilization) {
    return fmt::format("strangers kept it {} % busy", strangers);
  }
  for (const auto& [id, ended] : ended_) {
    const auto attempt = head_.attempts.find(id);
    const bool here = attempt != head_.attempts.end() &&
                      std::ranges::find(attempt->second.gpus, uuid) != attempt->second.gpus.end();
    if (here && (whole || attempt->second.memory == 0) && !seen_leaving(id, uuid, ended, moment)) {
      return fmt::format("attempt {} had only just left it", id.value);
    }
  }
  return {};
}

bool PlacementChecker::lost_since(JobId job, Millis begun) const {
  return std::ranges::any_of(ended_, [&](const auto& end) {
    const auto attempt = head_.attempts.find(end.first);
    if (attempt == head_.attempts.end() || attempt->second.job != job || attempt->second.revoked ||
        attempt->second.gpus.empty() || end.second <= begun) {
      return false;
    }
    const auto how = attempt->second.verdict.failure;
    return how == FailureClass::gpu_oom || how == FailureClass::gpu_lost;
  });
}

Millis PlacementChecker::first_look() const {
  const std::optional<Seen>& seen = samples_[moments_.empty() ? 0 : moments_.front().sample];
  return seen ? seen->sample.begun_mono : Millis{0};
}

bool PlacementChecker::seen_leaving(AttemptId attempt, const std::string& uuid, Millis ended,
                                    const Moment& moment) const {
  for (std::size_t i = 0; i <= moment.sample; ++i) {
    if (!samples_[i] || samples_[i]->sample.begun_mono < ended) {
      continue;
    }
    const auto facts = std::ranges::find(samples_[i]->sample.gpus, uuid, &GpuFacts::uuid);
    // Where the driver does not name processes, a look that began after the end has to do.
    if (facts != samples_[i]->sample.gpus.end() && facts->trouble.empty() &&
        (!facts->processes || std::ranges::find(*facts->processes, attempt, &GpuProcess::attempt) ==
                                  facts->processes->end())) {
      return true;
    }
  }
  return false;
}

void PlacementChecker::check_followers() {
  for (const auto& [id, job] : head_.jobs) {
    if (job.state == JobState::queued && head_.dependency_failed(job)) {
      findings_.report(
          fmt::format("job {} waits for something that has ended without success", id.value));
    }
  }
}

}  // namespace berth::sim
