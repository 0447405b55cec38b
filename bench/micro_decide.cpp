// The cost of one event must not depend on how many jobs are queued. Each benchmark runs at three
// lengths of the backlog; the times of one benchmark should be equal but for cache misses.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include <benchmark/benchmark.h>

#include "core/apply.hpp"
#include "core/reason.hpp"

namespace berth {
namespace {

constexpr std::uint32_t kCards = 8;

JobSpec a_job(std::uint64_t number) {
  static const auto kEnvironment = std::make_shared<const Environment>();
  JobSpec job;
  job.payload.commands.push_back({false, {"true"}});
  job.payload.environment = kEnvironment;
  job.priority = static_cast<std::int32_t>(number % 3);
  job.queue = number % 4 == 0 ? "other" : "default";
  // Four shapes: whole card, two cards, and two that stay queued for lack of memory.
  switch (number % 4) {
    case 0:
      break;
    case 1:
      job.request.gpus = {2, 2};
      break;
    case 2:
      job.request.gpu_memory = 30 * kGiB;
      break;
    default:
      job.request.gpu_memory = 40 * kGiB;
  }
  return job;
}

/// Eight cards and a backlog. Every card is busy, so that a submission has to wait.
class Bench {
 public:
  explicit Bench(std::uint64_t backlog) {
    sample();
    // In pieces, as a daemon would get them; and so that no piece is as large as the backlog.
    for (std::uint64_t done = 0; done < backlog;) {
      event::Submit submit;
      for (; submit.jobs.size() < 1000 && done < backlog; ++done) {
        submit.jobs.push_back(a_job(done));
      }
      step(std::move(submit));
    }
  }

  void step(Event event) {
    now_.mono += Millis{1};
    Step step;
    if (!apply(state, std::move(event), now_, step)) {
      std::abort();  // a benchmark of refusals would measure nothing
    }
    apply(state, decide(state, now_), now_, step);
    benchmark::DoNotOptimize(step);
  }

  void submit_one(std::uint64_t number) {
    event::Submit submit;
    submit.jobs.push_back(a_job(number));
    step(std::move(submit));
  }

  void sample() {
    GpuSample sample;
    sample.begun_mono = now_.mono + Millis{1};
    for (std::uint32_t i = 0; i < kCards; ++i) {
      GpuFacts gpu;
      gpu.uuid = "GPU-" + std::to_string(i);
      gpu.index = i;
      gpu.memory_total = 24 * kGiB;
      gpu.memory_free = 24 * kGiB;
      gpu.utilization = 0;
      gpu.processes.emplace();
      sample.gpus.push_back(std::move(gpu));
    }
    step(event::Sampled{std::move(sample)});
  }

  /// One running job ends, the sample that shows its cards free starts others, and each of those
  /// is replaced by one of its kind, so that the backlog stays as it is. Returns how many started.
  std::uint64_t turn_over() {
    const AttemptId last = state.last_attempt;
    step(event::AttemptExited{state.attempts.begin()->first, {}});
    sample();
    const AttemptId now_last = state.last_attempt;
    for (AttemptId id{last.value + 1}; id <= now_last; ++id.value) {
      submit_one(state.attempts.at(id).gpus.size() == 2 ? 1 : 0);
    }
    return now_last.value - last.value;
  }

  State state;
  [[nodiscard]] Now now() const { return now_; }

 private:
  Now now_{Millis{1'000'000}, Millis{0}};
};

/// A job comes and is cancelled, so that the backlog keeps its length: two events, two decisions.
void submit_and_cancel(benchmark::State& run) {
  Bench bench(static_cast<std::uint64_t>(run.range(0)));
  std::uint64_t number = 0;
  while (run.KeepRunning()) {
    bench.submit_one(number++);
    bench.step(event::Kill{{bench.state.last_job}, 0, {}});
  }
}

void exit_and_start_next(benchmark::State& run) {
  Bench bench(static_cast<std::uint64_t>(run.range(0)));
  std::uint64_t started = 0;
  while (run.KeepRunning()) {
    started += bench.turn_over();
  }
  run.counters["started"] =
      benchmark::Counter(static_cast<double>(started), benchmark::Counter::kAvgIterations);
}

void explain_one(benchmark::State& run) {
  Bench bench(static_cast<std::uint64_t>(run.range(0)));
  const Job* waiting = bench.state.job(bench.state.last_job);
  while (run.KeepRunning()) {
    benchmark::DoNotOptimize(explain(bench.state, *waiting, bench.now()));
  }
}

BENCHMARK(submit_and_cancel)->Arg(1'000)->Arg(100'000)->Arg(1'000'000);
BENCHMARK(exit_and_start_next)->Arg(1'000)->Arg(100'000)->Arg(1'000'000);
BENCHMARK(explain_one)->Arg(1'000)->Arg(100'000)->Arg(1'000'000);

}  // namespace
}  // namespace berth

BENCHMARK_MAIN();
