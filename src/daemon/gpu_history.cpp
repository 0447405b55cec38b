#include "daemon/gpu_history.hpp"

#include <map>
#include <memory>
#include <utility>

namespace berth {
namespace {

/// A disk that does not keep up loses samples, not memory.
constexpr std::size_t kWritesWaiting = 10;

/// What an attempt uses of all its cards together.
struct Use {
  std::optional<Bytes> memory;
  std::uint64_t utilization = 0;
  std::uint32_t cards = 0;  ///< that tell their utilisation
};

void add_use(std::map<AttemptId, Use>& uses, const Gpu& gpu) {
  for (const Claim& claim : gpu.claims) {
    if (claim.ended) {
      continue;
    }
    Use& use = uses[claim.attempt];
    if (gpu.facts.utilization) {
      use.utilization += *gpu.facts.utilization;
      ++use.cards;
    }
    if (!gpu.facts.processes) {
      continue;
    }
    use.memory = use.memory.value_or(0);
    for (const GpuProcess& process : *gpu.facts.processes) {
      if (process.attempt == claim.attempt) {
        *use.memory += process.memory.value_or(0);
      }
    }
  }
}

}  // namespace

HistoryLook history_look(const State& state, Millis wall) {
  HistoryLook look;
  std::map<AttemptId, Use> uses;
  for (const Gpu& gpu : state.gpus) {
    if (!gpu.known) {
      continue;
    }
    RingSample& sample = look.gpus.emplace_back();
    sample.time = wall;
    sample.key = ring_key(gpu.facts.uuid);
    sample.memory = gpu.facts.memory_used;
    sample.utilization = gpu.facts.utilization;
    sample.temperature = gpu.facts.temperature;
    sample.power_mw = gpu.facts.power_mw;
    add_use(uses, gpu);
  }
  for (const auto& [attempt, use] : uses) {
    RingSample& sample = look.attempts.emplace_back();
    sample.time = wall;
    sample.key = attempt.value;
    sample.memory = use.memory;
    if (use.cards > 0) {
      sample.utilization = static_cast<std::uint32_t>(use.utilization / use.cards);
    }
  }
  return look;
}

GpuHistory::GpuHistory(Loop& loop, const std::string& dir)
    : loop_(loop),
      gpus_{dir + "/gpus.ring", {}},
      attempts_{dir + "/attempts.ring", {}},
      worker_("history") {}

Status GpuHistory::open(File& file) {
  if (!file.ring) {
    TRY_ASSIGN(file.ring, RingFile::open(file.path));
  }
  return {};
}

void GpuHistory::sampled(const State& state, Millis wall) {
  if (state.gpus.empty() || worker_.backlog() > kWritesWaiting) {
    return;
  }
  worker_.post([this, look = history_look(state, wall)] {
    for (const auto& [file, samples] :
         {std::pair{&gpus_, &look.gpus}, std::pair{&attempts_, &look.attempts}}) {
      if (samples->empty() || !open(*file)) {
        continue;
      }
      for (const RingSample& sample : *samples) {
        // A full disk must not stop anybody: these are pictures, not promises.
        [[maybe_unused]] const Status written = file->ring->add(sample);
      }
    }
  });
}

void GpuHistory::read(Of of, std::uint64_t key, Millis from, Millis to, std::size_t points,
                      Then then) {
  worker_.post([this, of, key, from, to, points, then = std::move(then)] {
    const auto find = [&]() -> Result<std::vector<RingSample>> {
      File& wanted = file(of);
      TRY(open(wanted));
      TRY_ASSIGN(const auto samples, wanted.ring->read(key, from, to));
      return thin_out(samples, from, to, points);
    };
    auto found = std::make_shared<Result<std::vector<RingSample>>>(find());
    loop_.post([found, then] { then(std::move(*found)); });
  });
}

}  // namespace berth
