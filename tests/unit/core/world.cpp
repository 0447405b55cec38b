#include "unit/core/world.hpp"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "unit/core/invariants.hpp"

namespace berth::testing {
namespace {

std::string text_of(const Reason& reason) {
  std::string out(to_string(reason.kind));
  if (!reason.gpus.empty()) {
    std::vector<std::string_view> kinds;
    for (const GpuObstacle& obstacle : reason.gpus) {
      kinds.push_back(to_string(obstacle.kind));
    }
    out += fmt::format("({})", fmt::join(kinds, ","));
  }
  return out;
}

std::vector<const Job*> by_id(const State& state) {
  std::map<JobId, const Job*> jobs;
  for (const auto& [id, job] : state.jobs) {
    jobs.emplace(id, &job);
  }
  std::vector<const Job*> out;
  for (const auto& [id, job] : jobs) {
    out.push_back(job);
  }
  return out;
}

}  // namespace

void World::record() {
  for (const Change& change : last.changes) {
    ledger.write(change);
  }
  EXPECT_EQ(broken_invariant(state), "");
}

Result<Answer> World::apply(Event event) {
  last = {};
  auto answer = berth::apply(state, std::move(event), now, last);
  record();
  return answer;
}

Result<Answer> World::try_submit(std::vector<JobSpec> jobs) {
  event::Submit submission;
  submission.jobs = std::move(jobs);
  for (const auto& [name, limit] : limits_) {
    submission.queues.push_back({name, limit});
  }
  submission.resources = resources_;
  return apply(std::move(submission));
}

Submitted World::submit(std::vector<JobSpec> jobs) {
  auto answer = try_submit(std::move(jobs));
  EXPECT_TRUE(answer) << answer.error().message;
  return answer ? std::get<Submitted>(*answer) : Submitted{};
}

Submitted World::submit(event::Submit submission) {
  auto answer = apply(std::move(submission));
  EXPECT_TRUE(answer) << answer.error().message;
  return answer ? std::get<Submitted>(*answer) : Submitted{};
}

void World::see(std::vector<GpuFacts> gpus) {
  seen_ = gpus;
  EXPECT_TRUE(apply(event::Sampled{{now.mono, std::move(gpus), "test driver", host_available}}));
}

void World::see_idle(std::uint32_t count) {
  std::vector<GpuFacts> gpus;
  for (std::uint32_t i = 0; i < count; ++i) {
    gpus.push_back(a_gpu(i));
  }
  see(std::move(gpus));
}

void World::end(std::uint64_t job, Verdict verdict) {
  EXPECT_TRUE(apply(event::AttemptExited{attempt_of(job), std::move(verdict)}));
}

void World::succeed(std::uint64_t job) {
  Verdict verdict;
  verdict.exit_code = 0;
  end(job, verdict);
}

void World::fail(std::uint64_t job, FailureClass failure) {
  Verdict verdict;
  verdict.failure = failure;
  verdict.exit_code = 1;
  verdict.message = "exit code 1";
  end(job, verdict);
}

void World::revoke(std::uint64_t job) {
  EXPECT_TRUE(apply(event::AttemptRevoked{attempt_of(job), "never began"}));
}

Killed World::kill(std::initializer_list<std::uint64_t> jobs) {
  event::Kill kill;
  for (const std::uint64_t id : jobs) {
    kill.jobs.push_back(JobId{id});
  }
  auto answer = apply(std::move(kill));
  EXPECT_TRUE(answer);
  return answer ? std::get<Killed>(*answer) : Killed{};
}

void World::wait(Millis duration) {
  now.mono += duration;
  now.wall += duration;
}

void World::pass(Millis duration) {
  wait(duration);
  EXPECT_TRUE(apply(event::Tick{}));
}

void World::rule(const std::string& key, const std::string& value) {
  const auto answer = apply(event::SetRules{{{key, value}}});
  EXPECT_TRUE(answer) << answer.error().message;
}

void World::queue_rule(const std::string& queue, const std::string& key, const std::string& value) {
  event::SetRules set{{{key, value}}, event::SetRules::Layer::queue};
  set.queue = queue;
  const auto answer = apply(std::move(set));
  EXPECT_TRUE(answer) << answer.error().message;
}

void World::batch_rule(std::uint64_t batch, const std::string& key, const std::string& value) {
  event::SetRules set{{{key, value}}, event::SetRules::Layer::batch};
  set.batch = BatchId{batch};
  const auto answer = apply(std::move(set));
  EXPECT_TRUE(answer) << answer.error().message;
}

void World::force(std::uint64_t job) {
  EXPECT_TRUE(apply(event::Expedite{{JobId{job}}}));
}

void World::fill_disk(bool low) {
  EXPECT_TRUE(apply(event::SpaceChanged{low, low ? "/var has 0 B left" : ""}));
}

std::string World::decide() {
  const Decision decision = berth::decide(state, now);
  std::vector<std::string> starts;
  for (const Placement& placement : decision.start) {
    std::vector<std::uint32_t> indices;
    for (const std::size_t gpu : placement.gpus) {
      indices.push_back(state.gpus[gpu].facts.index);
    }
    starts.push_back(
        fmt::format("{}:{}", placement.job.value,
                    indices.empty() ? "-" : fmt::format("{}", fmt::join(indices, "+"))));
  }
  std::vector<std::string> displaced;
  for (const Preemption& preemption : decision.preempt) {
    displaced.push_back(
        fmt::format("{}<{}", state.attempts.at(preemption.attempt).job.value, preemption.by.value));
  }
  displaced_ = fmt::format("{}", fmt::join(displaced, " "));
  last = {};
  berth::apply(state, decision, now, last);
  record();
  return fmt::format("{}{}", fmt::join(starts, " "), decision.want_sample ? " ?" : "");
}

int World::go_on() {
  int rounds = 0;
  for (; state.continuing; ++rounds) {
    EXPECT_TRUE(apply(event::Continue{}));
  }
  return rounds;
}

std::string World::said(std::uint64_t job) const {
  const auto reasons = explain(state, *state.job(JobId{job}), now);
  return reasons.empty() ? "" : reasons.front().text;
}

std::string World::why(std::uint64_t job) const {
  const Job* found = state.job(JobId{job});
  if (found == nullptr) {
    return "gone";
  }
  std::vector<std::string> texts;
  for (const Reason& reason : explain(state, *found, now)) {
    EXPECT_FALSE(reason.text.empty());
    texts.push_back(text_of(reason));
  }
  return fmt::format("{}", fmt::join(texts, "+"));
}

std::string World::waits() const {
  std::vector<std::string> out;
  for (const Job* job : by_id(state)) {
    if (job->waits()) {
      out.push_back(fmt::format("{}:{}", job->id.value, why(job->id.value)));
    }
  }
  return fmt::format("{}", fmt::join(out, " "));
}

std::string World::alive() const {
  std::vector<std::string> out;
  for (const Job* job : by_id(state)) {
    out.push_back(fmt::format("{}:{}", job->id.value, to_string(job->state)));
  }
  return fmt::format("{}", fmt::join(out, " "));
}

AttemptId World::attempt_of(std::uint64_t job) const {
  const Job* found = state.job(JobId{job});
  EXPECT_TRUE(found != nullptr && found->attempt) << "job " << job << " does not run";
  return found == nullptr ? AttemptId{} : found->attempt;
}

std::string World::stored(std::uint64_t job) const {
  return std::string(to_string(ledger.job(JobId{job}).state));
}

std::string World::told() const {
  std::vector<std::string> kinds;
  for (const Change& change : last.changes) {
    if (const auto* history = std::get_if<change::History>(&change)) {
      kinds.push_back(history->kind);
    }
  }
  return fmt::format("{}", fmt::join(kinds, " "));
}

std::string World::effects() const {
  struct Name {
    std::string operator()(const effect::Start&) const { return "start"; }
    std::string operator()(const effect::Kill&) const { return "kill"; }
    std::string operator()(const effect::Pause&) const { return "pause"; }
    std::string operator()(const effect::Resume&) const { return "resume"; }
    std::string operator()(const effect::Forget&) const { return "forget"; }
    std::string operator()(const effect::Sample&) const { return "sample"; }
    std::string operator()(const effect::Wake&) const { return "wake"; }
    std::string operator()(const effect::Continue&) const { return "continue"; }
  };
  std::vector<std::string> names;
  for (const Effect& effect : last.effects) {
    // Somebody waits most of the time, and then there is a moment to be woken at.
    if (!std::holds_alternative<effect::Wake>(effect)) {
      names.push_back(std::visit(Name{}, effect));
    }
  }
  return fmt::format("{}", fmt::join(names, " "));
}

std::vector<JobSpec> copies(std::size_t count, const JobSpec& job) {
  return std::vector<JobSpec>(count, job);
}

}  // namespace berth::testing
