#include "sim/simulation.hpp"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "sim/check_durability.hpp"
#include "sim/check_placement.hpp"
#include "sim/check_progress.hpp"
#include "sim/check_runs.hpp"
#include "sim/faults.hpp"
#include "sim/gpus.hpp"
#include "sim/machine.hpp"
#include "sim/sim_daemon.hpp"
#include "sim/sim_store.hpp"
#include "sim/workload.hpp"

namespace berth::sim {
namespace {

constexpr Millis kBusyFor{20'000};     ///< about how long clients and faults go on
constexpr Millis kStillFor{15'000};    ///< nothing moves for so long: it has settled
constexpr Millis kLongest{7'200'000};  ///< by then it must have

std::array<char, 160> abort_note{};

extern "C" void print_abort_note(int) {
  // Only what a signal handler may do.
  [[maybe_unused]] const auto written =
      ::write(STDERR_FILENO, abort_note.data(), std::strlen(abort_note.data()));
}

Setup a_machine(Random& random) {
  constexpr std::array<Bytes, 5> kCards = {8 * kGiB, 12 * kGiB, 16 * kGiB, 24 * kGiB, 48 * kGiB};
  Setup setup;
  for (std::uint64_t i = random.percent(5) ? 0 : random.between(1, 5); i > 0; --i) {
    setup.cards.push_back(random.pick(kCards));
  }
  setup.host = {random.percent(80) ? 8U : 0U, random.percent(80) ? 64 * kGiB : 0};
  if (random.percent(30)) {
    setup.rules.max_concurrent = static_cast<std::uint32_t>(random.between(1, 6));
  }
  if (random.percent(20)) {
    setup.rules.memory_margin = 500 * kMiB;
  }
  // When, and with how much memory, a job is tried again is not for the checkers to foretell.
  setup.rules.retry.raise_memory = false;
  setup.rules.retry.max_retry_before_backoff = 0;
  if (random.percent(20)) {
    setup.rules.min_free_memory = random.between(1, 10) * kGiB;
  }
  return setup;
}

/// Everything of one run, in the order in which it depends on each other.
class World {
 public:
  explicit World(const Options& options)
      : random_(options.seed),
        trace_(options.keep),
        setup_(a_machine(random_)),
        machine_(timeline_, random_.fork(), observers_, options.plant),
        store_(timeline_, random_.fork(), observers_,
               [this](AttemptId attempt) { return machine_.prepare(attempt); }),
        gpus_(timeline_, random_.fork(), machine_, setup_.cards),
        daemon_(timeline_, random_.fork(), observers_, store_, machine_, gpus_, setup_.rules,
                setup_.host, options.plant),
        workload_(timeline_, random_.fork(), observers_, daemon_, options.actions, kBusyFor,
                  setup_.cards.size()),
        faults_(timeline_, random_.fork(), daemon_, machine_, store_, gpus_, kBusyFor),
        durability_(findings_),
        runs_(findings_),
        placement_(findings_, setup_),
        progress_(findings_, setup_, [this] { return store_.snapshot(); }) {
    observers_.add(trace_);
    observers_.add(durability_);
    observers_.add(runs_);
    observers_.add(placement_);
    observers_.add(progress_);
    timeline_.on_moment = [this](Now now) { observers_.moment(now); };
  }

  void run() {
    timeline_.after(Millis{0}, Timeline::Of::world, [this] { daemon_.start(); });
    workload_.begin();
    faults_.begin();
    while (timeline_.elapsed() < kBusyFor && step()) {
    }
    faults_.end();
    if (!settle()) {
      return;
    }
    workload_.release(progress_.alive());
    if (!settle()) {
      return;
    }
    progress_.check_settled(*daemon_.engine(), timeline_.now());
    if (const auto left = progress_.alive(); !left.empty() && !findings_.first()) {
      workload_.kill_all(left);
      if (!settle()) {
        return;
      }
    }
    progress_.check_empty(*daemon_.engine());
  }

  [[nodiscard]] Outcome outcome() const {
    return {findings_.first(),
            trace_.hash(),
            trace_.text(),
            timeline_.steps(),
            progress_.jobs(),
            daemon_.life(),
            machine_.struck() + daemon_.struck()};
  }

 private:
  /// False once there is a finding.
  bool step() {
    faults_.between_moments();
    timeline_.step();
    observers_.stepped(daemon_.engine(), timeline_.now(), daemon_.up() && !store_.busy());
    return !findings_.first();
  }

  /// Runs until nothing moves any more.
  bool settle() {
    const Millis begun = timeline_.elapsed();
    Millis still = begun;
    while (timeline_.elapsed() - still < kStillFor) {
      if (!step()) {
        return false;
      }
      if (!workload_.done() || !daemon_.up() || store_.busy() || !machine_.quiet()) {
        still = timeline_.elapsed();
      }
      if (timeline_.elapsed() - begun > kLongest) {
        findings_.report("it does not come to rest within two hours of peace");
        return false;
      }
    }
    return true;
  }

  Random random_;
  Findings findings_;
  Observers observers_;
  Trace trace_;
  Timeline timeline_;
  Setup setup_;
  Machine machine_;
  SimStore store_;
  Gpus gpus_;
  SimDaemon daemon_;
  Workload workload_;
  Faults faults_;
  DurabilityChecker durability_;
  RunChecker runs_;
  PlacementChecker placement_;
  ProgressChecker progress_;
};

}  // namespace

Outcome simulate(const Options& options) {
  const std::string note =
      fmt::format("\nin simulation seed {}; replay: {}\n", options.seed, how_to_replay(options));
  note.copy(abort_note.data(), abort_note.size() - 1);
  abort_note[std::min(note.size(), abort_note.size() - 1)] = '\0';
  World world(options);
  world.run();
  return world.outcome();
}

void name_seed_on_abort() {
  std::signal(SIGABRT, print_abort_note);
}

std::string how_to_replay(const Options& options) {
  return fmt::format(
      "berth-sim --seed {} --steps {}{} --trace sim.trace", options.seed, options.actions,
      options.plant == Plant::none ? std::string{}
                                   : fmt::format(" --plant {}", to_string(options.plant)));
}

}  // namespace berth::sim
