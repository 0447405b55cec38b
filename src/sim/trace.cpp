#include "sim/trace.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace berth::sim {
namespace {

std::string ids(const std::vector<JobId>& jobs) {
  std::string out;
  for (const JobId id : jobs) {
    out += fmt::format("{}{}", out.empty() ? "" : ",", id.value);
  }
  return out.empty() ? "-" : out;
}

std::string text_of(const Verdict& v) {
  return fmt::format("{}{}{}{}", v.failure ? to_string(*v.failure) : "success",
                     v.exit_code ? fmt::format(" code={}", *v.exit_code) : "",
                     v.signal ? fmt::format(" signal={}", *v.signal) : "",
                     v.killed ? " killed" : "");
}

std::string text_of(const Request& r) {
  std::string out = fmt::format("gpus={}..{}", r.gpus.min, r.gpus.max);
  out += r.gpu_memory ? fmt::format(" gpu_memory={}", *r.gpu_memory / kMiB) : "";
  for (const auto& [key, text] : r.rules) {
    out += fmt::format(" {}={}", key, text);
  }
  out += r.cpus ? fmt::format(" cpus={}", r.cpus) : "";
  out += r.memory ? fmt::format(" memory={}", r.memory / kMiB) : "";
  for (const auto& [name, count] : r.resources) {
    out += fmt::format(" {}={}", name, count);
  }
  return out;
}

struct EventText {
  std::string operator()(const event::Submit& e) const {
    return fmt::format("submit '{}' of {} jobs, batch limit {}", e.client_key, e.jobs.size(),
                       e.batch_max_concurrent);
  }
  std::string operator()(const event::SubmitBegin& e) const {
    return fmt::format("begin '{}' of {} jobs, batch limit {}", e.client_key, e.count,
                       e.batch_max_concurrent);
  }
  std::string operator()(const event::SubmitPart& e) const {
    return fmt::format("{} jobs of batch {}", e.jobs.size(), e.batch.value);
  }
  std::string operator()(const event::SubmitEnd& e) const {
    return fmt::format("end of batch {}", e.batch.value);
  }
  std::string operator()(const event::SubmitAbort& e) const {
    return fmt::format("abort of batch {}", e.batch.value);
  }
  std::string operator()(const event::Kill& e) const { return "kill " + ids(e.jobs); }
  std::string operator()(const event::Pause& e) const { return "pause " + ids(e.jobs); }
  std::string operator()(const event::Resume& e) const { return "resume " + ids(e.jobs); }
  std::string operator()(const event::PauseQueue& e) const {
    return fmt::format("{} queue {}", e.paused ? "pause" : "resume", e.queue);
  }
  std::string operator()(const event::PauseInstance& e) const {
    return e.paused ? "pause all" : "resume all";
  }
  std::string operator()(const event::DrainGpu& e) const {
    return fmt::format("{} {}", e.drained ? "drain" : "undrain", e.gpu);
  }
  std::string operator()(const event::BoardRead& e) const {
    return fmt::format("board {}", e.held);
  }
  std::string operator()(const event::Move& e) const {
    return fmt::format("move {} to {} before={} queue={} priority={}", ids(e.jobs),
                       static_cast<int>(e.to), e.before.value, e.queue, e.priority);
  }
  std::string operator()(const event::Revive& e) const { return "revive " + ids(e.jobs); }
  std::string operator()(const event::Expedite& e) const { return "expedite " + ids(e.jobs); }
  std::string operator()(const event::SetJobs& e) const { return "set " + ids(e.jobs); }
  std::string operator()(const event::SetRules&) const { return "rules"; }
  std::string operator()(const event::Remove& e) const { return "remove " + ids(e.jobs); }
  std::string operator()(const event::AttemptExited& e) const {
    return fmt::format("attempt {} exited: {}", e.attempt.value, text_of(e.verdict));
  }
  std::string operator()(const event::AttemptRevoked& e) const {
    return fmt::format("attempt {} revoked", e.attempt.value);
  }
  std::string operator()(const event::Sampled& e) const {
    std::string out = fmt::format("sampled begun={}", e.sample.begun_mono.count());
    for (const GpuFacts& gpu : e.sample.gpus) {
      out += fmt::format(" {}:", gpu.uuid);
      out += !gpu.trouble.empty() ? "trouble"
             : gpu.memory_free    ? fmt::format("{}", *gpu.memory_free / kMiB)
                                  : "unknown";
      if (gpu.processes) {
        for (const GpuProcess& process : *gpu.processes) {
          out += fmt::format(
              "{}{}", process.attempt ? "+" : "~",
              process.attempt ? process.attempt.value : process.utilization.value_or(999));
        }
      }
    }
    return out;
  }
  std::string operator()(const event::ProbeFailed&) const { return "probe failed"; }
  std::string operator()(const event::SpaceChanged& e) const {
    return e.low ? "space low" : "space again";
  }
  std::string operator()(const event::SetHost&) const { return "host"; }
  std::string operator()(const event::Continue&) const { return "continue"; }
  std::string operator()(const event::Tick&) const { return "tick"; }
};

struct ChangeText {
  std::string operator()(const change::QueuePut& c) const {
    return fmt::format("queue {} '{}' limit={}{}", c.id.value, c.spec.name, c.spec.limit,
                       c.paused ? " paused" : "");
  }
  std::string operator()(const change::ResourcePut& c) const {
    return fmt::format("resource {}={}", c.name, c.total);
  }
  std::string operator()(const change::BatchPut& c) const {
    return fmt::format("batch {} limit={} jobs={}{}", c.id.value, c.max_concurrent, c.jobs,
                       c.open ? " open" : "");
  }
  std::string operator()(const change::BatchRules& c) const {
    return fmt::format("batch {} limit={} {}", c.id.value, c.max_concurrent, c.rules);
  }
  std::string operator()(const change::InstancePut& c) const {
    return c.paused ? "paused" : "not paused";
  }
  std::string operator()(const change::DrainPut& c) const {
    return fmt::format("gpu {} {} {}", c.gpu, c.drained ? "drained" : "in use", c.why);
  }
  std::string operator()(const change::EccPut& c) const {
    return fmt::format("gpu {} errors {}", c.gpu, c.errors);
  }
  std::string operator()(const change::UsagePut& c) const {
    return fmt::format("usage {} {} {:.0f}", c.batch ? "batch" : "owner", c.id, c.gpu_ms);
  }
  std::string operator()(const change::AttemptGivesWay& c) const {
    return fmt::format("attempt {} gives way: {}", c.id.value,
                       c.why ? to_string(*c.why) : "no longer");
  }
  std::string operator()(const change::BatchRemove& c) const {
    return fmt::format("batch {} removed", c.id.value);
  }
  std::string operator()(const change::JobPut& c) const {
    return fmt::format("job {} queue={} batch={} priority={} retries={} after={} {}", c.id.value,
                       c.queue.value, c.batch.value, c.spec->priority, c.spec->retries,
                       ids(c.after), text_of(c.spec->request));
  }
  std::string operator()(const change::JobsRemove& c) const { return "remove " + ids(c.ids); }
  std::string operator()(const change::JobUpdate& c) const {
    return fmt::format("job {} is {} attempts={} retries={}{} {}", c.id.value, to_string(c.state),
                       c.attempts, c.retries_used, c.kill_requested ? " kill" : "", c.message);
  }
  std::string operator()(const change::JobSet& c) const {
    std::string out = fmt::format("job {} set", c.id.value);
    out += c.queue ? fmt::format(" queue={}", c.queue->value) : "";
    out += c.priority ? fmt::format(" priority={}", *c.priority) : "";
    out += c.rank ? fmt::format(" rank={}", *c.rank) : "";
    out += c.expedited ? fmt::format(" expedited={}", *c.expedited) : "";
    out += c.retries ? fmt::format(" retries={}", *c.retries) : "";
    out += c.request ? " " + text_of(*c.request) : "";
    return out;
  }
  std::string operator()(const change::AttemptPut& c) const {
    return fmt::format("attempt {} of job {} number={} on [{}] memory={}", c.id.value, c.job.value,
                       c.number, fmt::join(c.gpus, ","), c.gpu_memory / kMiB);
  }
  std::string operator()(const change::AttemptEnd& c) const {
    return fmt::format("attempt {} ended{}: {}", c.id.value, c.revoked ? " (revoked)" : "",
                       text_of(c.verdict));
  }
  std::string operator()(const change::ClientKey& c) const {
    return fmt::format("key '{}' first={} count={}", c.key, c.first.value, c.count);
  }
  std::string operator()(const change::History& c) const {
    return fmt::format("history {} job={} attempt={}", c.kind, c.job.value, c.attempt.value);
  }
};

struct EffectText {
  std::string operator()(const effect::Start& e) const {
    return fmt::format("start attempt {} of job {}", e.attempt.value, e.job.value);
  }
  std::string operator()(const effect::Kill& e) const {
    return fmt::format("kill attempt {}", e.attempt.value);
  }
  std::string operator()(const effect::Pause& e) const {
    return fmt::format("pause attempt {}", e.attempt.value);
  }
  std::string operator()(const effect::Resume& e) const {
    return fmt::format("resume attempt {}", e.attempt.value);
  }
  std::string operator()(const effect::Forget& e) const {
    return fmt::format("forget attempt {}", e.attempt.value);
  }
  std::string operator()(const effect::Sample&) const { return "sample"; }
  std::string operator()(const effect::Wake& e) const {
    return fmt::format("wake at {}", e.at.count());
  }
  std::string operator()(const effect::Continue&) const { return "continue"; }
};

}  // namespace

void Trace::line(const std::string& what) {
  const std::string full = fmt::format("{} {} {}\n", now_.mono.count(), now_.wall.count(), what);
  for (const char c : full) {
    hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  }
  if (keep_ == Keep::text) {
    text_ += full;
  }
}

void Trace::moment(Now now) {
  now_ = now;
}
void Trace::handling(const Event& event) {
  line("event: " + std::visit(EventText{}, event));
}
void Trace::handed(const Transaction& transaction) {
  line(fmt::format("commit of {} changes, {} records", transaction.changes.size(),
                   transaction.prepare.size()));
  for (const Change& change : transaction.changes) {
    line("  " + std::visit(ChangeText{}, change));
  }
}
void Trace::unprepared(AttemptId attempt, const Error& error) {
  line(fmt::format("no record for attempt {}: {}", attempt.value, error.message));
}
void Trace::durable(const Changes& changes) {
  line(fmt::format("durable: {} changes", changes.size()));
}
void Trace::commit_failed(const Error& error) {
  line("commit failed: " + error.message);
}
void Trace::effect(const Effect& effect) {
  line("effect: " + std::visit(EffectText{}, effect));
}
void Trace::submit_answered(const event::Submit& submit, const Result<Answer>& answer) {
  line(answer ? fmt::format("answer to '{}': from {}", submit.client_key,
                            std::get<Submitted>(*answer).first.value)
              : fmt::format("answer to '{}': {}", submit.client_key, answer.error().message));
}
void Trace::kill_answered(const event::Kill& kill, const Result<Answer>& answer) {
  if (!answer) {
    line("answer to kill " + ids(kill.jobs) + ": " + answer.error().message);
    return;
  }
  const auto& killed = std::get<Killed>(*answer);
  line(fmt::format("answer to kill: killed {} cancelled {} unknown {}", ids(killed.killed),
                   ids(killed.cancelled), ids(killed.unknown)));
}
void Trace::control_answered(const Event& event, const Result<Answer>& answer) {
  std::string out = "answer to " + std::visit(EventText{}, event) + ":";
  if (!answer) {
    line(out + " " + answer.error().message);
    return;
  }
  if (const auto* controlled = std::get_if<Controlled>(&*answer)) {
    for (const auto& [what, jobs] : controlled->jobs) {
      out += fmt::format(" {} {}", to_string(what), ids(jobs));
    }
    for (const auto& [why, jobs] : controlled->refused) {
      out += fmt::format(" refused {} ({})", ids(jobs), why);
    }
    out += controlled->absent.empty() ? "" : " absent " + ids(controlled->absent);
  }
  line(out);
}
void Trace::read_answered(const std::vector<Seen>& seen) {
  std::string out = "answer to read:";
  for (const Seen& one : seen) {
    out += fmt::format(" {}={}/{}", one.job.value, to_string(one.state), one.attempt.value);
  }
  line(out);
}
void Trace::run_started(AttemptId attempt, JobId job) {
  line(fmt::format("run: attempt {} of job {} runs", attempt.value, job.value));
}
void Trace::run_ended(AttemptId attempt, const Verdict& verdict) {
  line(fmt::format("run: attempt {} is over: {}", attempt.value, text_of(verdict)));
}
void Trace::run_vanished(AttemptId attempt) {
  line(fmt::format("run: attempt {} is over, unseen", attempt.value));
}
void Trace::exit_forgotten(AttemptId attempt) {
  line(fmt::format("the record of attempt {} lost its end", attempt.value));
}
void Trace::crashed(bool machine) {
  line(machine ? "POWER CUT" : "CRASH");
}
void Trace::restarted(const Snapshot& snapshot) {
  line(fmt::format("START with {} jobs, {} open attempts", snapshot.jobs.size(),
                   snapshot.attempts.size()));
}

}  // namespace berth::sim
