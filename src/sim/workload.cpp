#include "sim/workload.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/rule_table.hpp"
#include "sim/gpus.hpp"

namespace berth::sim {

using Of = Timeline::Of;

namespace {
constexpr std::array kQueues = {"default", "default", "default", "serial", "pair", "moody"};
}  // namespace

Workload::Workload(Timeline& timeline, Random random, Observer& observer, SimDaemon& daemon,
                   std::uint64_t actions, Millis duration, std::size_t cards)
    : timeline_(timeline),
      random_(random),
      observer_(observer),
      daemon_(daemon),
      left_(actions),
      duration_(duration),
      cards_(cards) {}

void Workload::begin() {
  const auto duration = static_cast<std::uint64_t>(duration_.count());
  for (std::uint64_t i = 0; i < left_; ++i) {
    timeline_.after(random_.millis(1, duration), Of::world, [this] {
      --left_;
      act();
    });
  }
}

void Workload::act() {
  const std::uint64_t dice = random_.below(100);
  if (dice < 55 || known_.empty()) {
    send(std::make_shared<Request>(Request{a_submission()}));
  } else if (dice < 75) {
    send(std::make_shared<Request>(Request{a_control()}));
  } else if (dice < 83) {
    send(std::make_shared<Request>(Request{a_kill()}));
  } else if (dice < 88) {
    send(std::make_shared<Request>(Request{event::Remove{a_kill().jobs}}));
  } else {
    look();
  }
}

void Workload::kill_all(const std::vector<JobId>& jobs) {
  event::Kill kill;
  kill.jobs = jobs;
  send(std::make_shared<Request>(Request{std::move(kill)}));
}

void Workload::release(const std::vector<JobId>& jobs) {
  for (const char* queue : kQueues) {
    send(std::make_shared<Request>(Request{event::PauseQueue{queue, false}}));
  }
  // A card that was lost stays out of use until somebody has looked at it.
  for (std::size_t card = 0; card < cards_; ++card) {
    send(std::make_shared<Request>(Request{event::DrainGpu{Gpus::uuid(card), false, {}}}));
  }
  send(std::make_shared<Request>(Request{event::Resume{jobs}}));
}

void Workload::send(const std::shared_ptr<Request>& request) {
  ++waiting_;
  if (!daemon_.up()) {
    timeline_.after(random_.millis(20, 400), Of::world, [this, request] {
      --waiting_;
      send(request);
    });
    return;
  }
  // A client that hears nothing asks again: after a crash it must, and an impatient one does so
  // while the first request is still being worked on. Without a key only a fool would.
  const auto* submit = std::get_if<event::Submit>(&request->event);
  const bool repeatable = !submit || !submit->client_key.empty();
  const bool impatient = repeatable && random_.percent(5);
  const Millis patience = impatient ? random_.millis(1, 30) : random_.millis(200, 1'500);
  timeline_.after(patience, Of::world,
                  [this, request, repeatable, impatient, life = daemon_.life()] {
                    --waiting_;
                    if (request->answered || !repeatable) {
                      return;
                    }
                    if (impatient || !daemon_.up() || daemon_.life() != life) {
                      send(request);
                      return;
                    }
                    ++waiting_;
                    const auto check = [this, request, life](const auto& self) -> void {
                      if (!request->answered && daemon_.up() && daemon_.life() == life) {
                        timeline_.after(Millis{500}, Of::world, [self] { self(self); });
                        return;
                      }
                      --waiting_;
                      if (!request->answered) {
                        send(request);
                      }
                    };
                    check(check);
                  });
  daemon_.handle(request->event,
                 [this, request](const Result<Answer>& answer) { answered(request, answer); });
}

void Workload::answered(const std::shared_ptr<Request>& request, const Result<Answer>& answer) {
  const auto* submit = std::get_if<event::Submit>(&request->event);
  if (submit) {
    observer_.submit_answered(*submit, answer);
  } else if (const auto* kill = std::get_if<event::Kill>(&request->event)) {
    observer_.kill_answered(*kill, answer);
  } else {
    observer_.control_answered(request->event, answer);
  }
  const bool again =
      !answer && (answer.error().retryable() || answer.error().code == ErrorCode::io);
  if (again) {
    if (!std::exchange(request->answered, true)) {
      auto copy = std::make_shared<Request>(Request{request->event});
      ++waiting_;
      timeline_.after(random_.millis(300, 2'000), Of::world, [this, copy] {
        --waiting_;
        send(copy);
      });
    }
    return;
  }
  if (std::exchange(request->answered, true) || !submit || !answer) {
    return;
  }
  const auto& submitted = std::get<Submitted>(*answer);
  for (std::uint64_t i = 0; i < submitted.count; ++i) {
    known_.push_back(JobId{submitted.first.value + i});
  }
  if (random_.percent(5)) {
    // The answer was lost on the way: the same again, much later.
    auto copy = std::make_shared<Request>(Request{request->event});
    ++waiting_;
    timeline_.after(random_.skewed(50, 5'000), Of::world, [this, copy] {
      --waiting_;
      send(copy);
    });
  }
  // A pipelining client has its next requests ready when the answer comes.
  for (std::uint64_t i = random_.percent(10) ? random_.between(1, 3) : 0; i > 0 && left_ > 0; --i) {
    if (random_.percent(50)) {
      look();
    } else {
      send(std::make_shared<Request>(Request{a_kill()}));
    }
  }
}

void Workload::look() {
  std::vector<JobId> wanted;
  for (int i = 0; i < 3 && !known_.empty(); ++i) {
    wanted.push_back(random_.pick(std::span<const JobId>(known_)));
  }
  daemon_.read(
      [wanted](const State& state) {
        std::vector<Seen> seen;
        for (const JobId id : wanted) {
          if (const Job* job = state.job(id)) {
            seen.push_back({id, job->state, job->attempt});
          }
        }
        return seen;
      },
      [this](const std::vector<Seen>& seen) { observer_.read_answered(seen); });
}

std::vector<JobId> Workload::some_jobs() {
  std::vector<JobId> jobs;
  for (std::uint64_t i = random_.between(1, 3); i > 0 && !known_.empty(); --i) {
    jobs.push_back(random_.pick(std::span<const JobId>(known_)));
  }
  if (random_.percent(5)) {
    jobs.push_back(JobId{1'000'000});
  }
  std::ranges::sort(jobs);
  jobs.erase(std::ranges::unique(jobs).begin(), jobs.end());
  return jobs;
}

Event Workload::a_control() {
  const std::uint64_t dice = random_.below(100);
  if (dice < 25) {
    return event::Pause{some_jobs()};
  }
  if (dice < 45) {
    return event::Resume{some_jobs()};
  }
  if (dice < 55) {
    return event::PauseQueue{random_.pick(kQueues), random_.percent(40)};
  }
  if (dice < 70) {
    return event::Expedite{some_jobs()};
  }
  if (dice < 78 && cards_ > 0) {
    return a_drain();
  }
  if (dice < 88) {
    event::Move move;
    move.jobs = some_jobs();
    move.to = static_cast<event::Move::To>(random_.below(5));
    move.before = random_.pick(std::span<const JobId>(known_));
    move.queue = random_.pick(kQueues);
    move.priority = static_cast<std::int32_t>(random_.between(1, 9));
    return move;
  }
  return event::SetJobs{some_jobs(), a_patch()};
}

event::DrainGpu Workload::a_drain() {
  return {Gpus::uuid(random_.below(cards_)), random_.percent(30), "to be looked at"};
}

event::JobPatch Workload::a_patch() {
  event::JobPatch patch;
  if (random_.percent(40)) {
    patch.retries = static_cast<std::uint32_t>(random_.below(3));
    patch.name = "renamed";
    return patch;
  }
  const auto gpus = static_cast<std::uint32_t>(random_.below(3));
  patch.gpus = GpuCount{gpus, gpus};
  patch.cpus = static_cast<std::uint32_t>(random_.below(3));
  if (random_.percent(50)) {
    patch.gpu_memory = random_.percent(50) ? std::optional(2 * kGiB) : std::nullopt;
  }
  if (random_.percent(30)) {
    patch.queue = random_.pick(kQueues);
    patch.priority = static_cast<std::int32_t>(random_.between(1, 9));
  }
  return patch;
}

event::Kill Workload::a_kill() {
  event::Kill kill;
  kill.jobs = some_jobs();
  if (random_.percent(40)) {
    kill.grace = random_.percent(50) ? Millis{0} : random_.millis(10, 800);
  }
  return kill;
}

event::Submit Workload::a_submission() {
  event::Submit submit;
  if (random_.percent(95)) {
    submit.client_key = fmt::format("key-{}", ++last_key_);
  }
  submit.owner = static_cast<std::uint32_t>(random_.percent(80) ? 1'000 : 1'001);
  const std::uint64_t dice = random_.below(100);
  const std::uint64_t count = dice < 55   ? 1
                              : dice < 92 ? random_.between(2, 6)
                                          : random_.between(8, 20);
  if (random_.percent(20)) {
    submit.batch_name = "sweep";
  }
  if (random_.percent(20)) {
    submit.batch_max_concurrent = static_cast<std::uint32_t>(random_.between(1, 3));
  }
  if (random_.percent(30)) {
    submit.queues.push_back({"serial", 1});
  }
  if (random_.percent(20)) {
    submit.queues.push_back({"pair", 2});
  }
  if (random_.percent(4)) {
    submit.queues.push_back({"moody", static_cast<std::uint32_t>(random_.below(4))});
  }
  if (random_.percent(10)) {
    submit.resources["licence"] = random_.between(1, 3);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    // A sweep repeats one shape; other submissions are mixed.
    JobSpec job = count >= 8 && i > 0 ? submit.jobs.front() : a_job(submit);
    job.name = fmt::format("job-{}", i);
    if (i > 0 && random_.percent(12)) {
      job.after_index = {static_cast<std::uint32_t>(random_.below(i))};
    }
    submit.jobs.push_back(std::move(job));
  }
  if (count > 1 && random_.percent(1)) {
    submit.jobs[0].after_index = {1};
    submit.jobs[1].after_index = {0};
  }
  return submit;
}

JobSpec Workload::a_job(event::Submit& submit) {
  JobSpec job;
  job.queue = random_.pick(kQueues);
  if (random_.percent(25)) {
    job.priority = static_cast<std::int32_t>(random_.between(1, 9));
  }
  job.request = a_request(submit);
  if (random_.percent(12)) {
    for (std::uint64_t i = random_.between(1, 2); i > 0 && !known_.empty(); --i) {
      // Mostly something recent, which may be ending this very moment.
      const std::uint64_t back = std::min<std::uint64_t>(known_.size(), 8);
      job.after.push_back(random_.percent(80) ? known_[known_.size() - 1 - random_.below(back)]
                                              : known_[random_.below(known_.size())]);
    }
  }
  job.retries = static_cast<std::uint32_t>(random_.percent(70) ? 0 : random_.between(1, 3));
  job.payload.commands = {Command{false, {"train"}}};
  job.payload.environment = environment_;
  job.payload.grace = random_.millis(100, 3'000);
  if (random_.percent(10)) {
    job.payload.time_limit = random_.millis(200, 5'000);
  }
  return job;
}

Request Workload::a_request(event::Submit& submit) {
  berth::Request request;
  const std::uint64_t dice = random_.below(100);
  const auto n = static_cast<std::uint32_t>(1 + random_.below(std::max<std::size_t>(cards_, 1)));
  request.gpus = dice < 35   ? GpuCount{0, 0}
                 : dice < 75 ? GpuCount{1, 1}
                 : dice < 85 ? GpuCount{n, n}
                 : dice < 98 ? GpuCount{static_cast<std::uint32_t>(random_.below(2)), n}
                             : GpuCount{n + 4, n + 4};
  if (request.gpus.max > 0) {
    constexpr std::array<Bytes, 6> kSizes = {1 * kGiB, 2 * kGiB,  4 * kGiB,
                                             7 * kGiB, 11 * kGiB, 20 * kGiB};
    if (random_.percent(60)) {
      request.gpu_memory = random_.percent(1) ? Bytes{0} : random_.pick(kSizes);
    }
    if (random_.percent(10)) {
      request.rules["min_free_memory"] = exact_size(random_.pick(kSizes));
    }
    if (random_.percent(10)) {
      request.rules["max_utilization"] = fmt::format("{}", random_.below(101));
    }
  }
  if (random_.percent(25)) {
    request.cpus = static_cast<std::uint32_t>(random_.percent(3) ? 64 : random_.between(1, 4));
  }
  if (random_.percent(15)) {
    request.memory = random_.between(1, 24) * kGiB;
  }
  if (random_.percent(8)) {
    request.resources["licence"] = random_.between(1, 2);
    if (random_.percent(70)) {
      submit.resources.try_emplace("licence", 2);
    }
  }
  return request;
}

}  // namespace berth::sim
