#include "gpu/nvml_card.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "base/time.hpp"

namespace berth::nvml {
namespace {

constexpr std::chrono::seconds kBusyWindow{3};

/// The driver stamps its samples with microseconds since 1970.
unsigned long long wall_us_before(std::chrono::microseconds window) {
  const auto wall = std::chrono::duration_cast<std::chrono::microseconds>(read_clock().wall);
  return static_cast<unsigned long long>((wall - window).count());
}

std::optional<unsigned> percent_of(const Sample& sample, int kind) {
  const bool wide = kind == kValueUlong || kind == kValueU64;
  // The value is a union, whose narrow members are its first bytes.
  const unsigned long long value = wide ? sample.value : sample.value & 0xffffffffU;
  if ((!wide && kind != kValueU32) || value > 100) {
    return std::nullopt;
  }
  return static_cast<unsigned>(value);
}

}  // namespace

void CardReader::read(GpuFacts& facts, ProcessReader& processes, ProbeReply& reply) {
  read_memory(facts);
  if (Utilization rates{}; ask(library_.utilization, &rates) && rates.gpu <= 100) {
    facts.utilization = rates.gpu;
  }
  read_busy(facts);
  constexpr int kGpuSensor = 0;
  if (unsigned celsius = 0; ask(library_.temperature, kGpuSensor, &celsius)) {
    facts.temperature = celsius;
  }
  if (unsigned milliwatts = 0; ask(library_.power, &milliwatts)) {
    facts.power_mw = milliwatts;
  }
  if (unsigned long long errors = 0;
      ask(library_.ecc_errors, kEccUncorrected, kEccVolatile, &errors)) {
    facts.ecc_uncorrected = errors;
  }
  read_processes(facts, processes, reply);
  read_memory_again(facts);
  if (!trouble_.empty()) {
    // Half of a reading from a dying card is worth nothing.
    facts.memory_total = facts.memory_used = facts.memory_free = std::nullopt;
    facts.utilization = facts.busy = facts.temperature = facts.power_mw = std::nullopt;
    facts.ecc_uncorrected.reset();
    facts.processes.reset();
    facts.trouble = trouble_;
    facts.lost = lost_;
  }
}

int CardReader::note(int code) {
  if ((code == gpu_is_lost || code == reset_required) && trouble_.empty()) {
    trouble_ = library_.describe(code);
    lost_ = true;
  }
  return code;
}

void CardReader::read_memory(GpuFacts& facts) {
  // The first form counts the driver's reserve as used, so `free` is the figure to rely on in
  // both.
  MemoryV2 v2{};
  v2.version = kMemoryV2Version;
  Memory v1{};
  if (ask(library_.memory_v2, &v2)) {
    v1 = {v2.total, v2.free, v2.used};
  } else if (library_.memory_v1 == nullptr) {
    return;
  } else if (const int code = note(library_.memory_v1(device_, &v1)); code != success) {
    // Not supported is a healthy card with shared memory; anything else is a card in trouble.
    if (code != not_supported && trouble_.empty()) {
      trouble_ = fmt::format("memory cannot be read: {}", library_.describe(code));
    }
    return;
  }
  facts.memory_total = v1.total;
  facts.memory_free = v1.free;
  facts.memory_used = v1.used;
}

void CardReader::read_memory_again(GpuFacts& facts) {
  // Whoever came or went while the processes were listed is in one of the two and not in the other.
  // Of two moments the fuller one counts: room that is not there must not be given away.
  GpuFacts later;
  read_memory(later);
  if (later.memory_free && later.memory_free < facts.memory_free) {
    facts.memory_total = later.memory_total;
    facts.memory_free = later.memory_free;
    facts.memory_used = later.memory_used;
  }
}

void CardReader::read_busy(GpuFacts& facts) {
  // The driver keeps some seconds of samples, taken by itself: nothing has to be waited for.
  const unsigned long long since = wall_us_before(kBusyWindow);
  int kind = 0;
  unsigned room = 0;
  Sample* const only_count = nullptr;
  constexpr unsigned kSamplesMax = 1U << 16U;
  if (!ask(library_.samples, kSamplesOfUtilization, since, &kind, &room, only_count) || room == 0 ||
      room > kSamplesMax) {
    return;
  }
  std::vector<Sample> samples(room);
  if (!ask(library_.samples, kSamplesOfUtilization, since, &kind, &room, samples.data())) {
    return;
  }
  samples.resize(std::min<std::size_t>(room, samples.size()));
  unsigned long long sum = 0;
  unsigned count = 0;
  for (const Sample& sample : samples) {
    const auto percent = percent_of(sample, kind);
    if (percent && sample.time_stamp_us >= since) {
      sum += *percent;
      ++count;
    }
  }
  if (count > 0) {
    facts.busy = static_cast<std::uint32_t>((sum + count / 2) / count);
  }
}

void CardReader::read_processes(GpuFacts& facts, ProcessReader& reader, ProbeReply& reply) {
  const auto compute = nvml::read_processes(library_.compute, device_, avoid_v3_);
  if (!compute) {
    note(compute.error());
    return;  // unknown, not empty
  }
  // One process may be in several lists, with the same memory or with none.
  std::map<std::uint32_t, std::optional<Bytes>> memory_by_pid;
  const auto merge = [&](const std::vector<Process>& list) {
    for (const Process& record : list) {
      auto& memory = memory_by_pid[record.pid];
      if (record.used_memory != kMemoryNotAvailable) {
        memory = std::max<Bytes>(memory.value_or(0), record.used_memory);
      }
    }
  };
  merge(*compute);
  for (const auto* list : {&library_.graphics, &library_.mps}) {
    if (const auto more = nvml::read_processes(*list, device_, avoid_v3_)) {
      merge(*more);
    }
  }
  std::vector<GpuProcess> found;
  for (const auto& [pid, memory] : memory_by_pid) {
    GpuProcess process;
    process.pid = pid;
    process.memory = memory;
    if (auto seen = reader.read(pid)) {
      process.start_time = seen->stat.start_time;
      process.age = age_of(seen->stat.start_time, reply.sample.begun_mono);
      process.uid = seen->uid;
      process.name = std::move(seen->name);
      reply.ancestors[pid] = reader.ancestors(pid);
    }
    found.push_back(std::move(process));
  }
  if (!found.empty()) {
    read_process_utilization(facts, found);
  }
  facts.processes = std::move(found);
}

void CardReader::read_process_utilization(const GpuFacts& facts,
                                          std::vector<GpuProcess>& processes) {
  if (library_.process_utilization == nullptr) {
    return;
  }
  // The driver keeps some seconds of samples; the newest of each process is of interest.
  const unsigned long long since = wall_us_before(std::chrono::seconds(2));
  std::vector<ProcessSample> samples(256);
  auto count = static_cast<unsigned>(samples.size());
  const auto call = [&] {
    return note(library_.process_utilization(device_, samples.data(), &count, since));
  };
  int code = call();
  if (constexpr unsigned kSamplesMax = 1U << 16U;
      code == insufficient_size && count <= kSamplesMax) {
    count += 64;
    samples.resize(count);
    code = call();
  }
  if (code == not_found) {
    // No samples: nobody computes, if the card as a whole is idle too; else nothing is known.
    for (GpuProcess& process : processes) {
      process.utilization = facts.utilization == 0U ? facts.utilization : std::nullopt;
    }
    return;
  }
  if (code != success) {
    return;
  }
  samples.resize(std::min<std::size_t>(count, samples.size()));
  std::ranges::sort(samples, {}, &ProcessSample::time_stamp_us);
  std::map<std::uint32_t, unsigned> newest;
  for (const ProcessSample& sample : samples) {
    newest[sample.pid] = sample.sm;
  }
  for (GpuProcess& process : processes) {
    const auto sample = newest.find(process.pid);
    if (sample == newest.end()) {
      process.utilization = 0;  // only processes that computed have samples
    } else if (sample->second <= 100) {
      process.utilization = sample->second;
    }
  }
}

}  // namespace berth::nvml
