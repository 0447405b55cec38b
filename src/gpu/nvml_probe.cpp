#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <utility>

#include "base/time.hpp"
#include "gpu/nvml_library.hpp"
#include "gpu/probe.hpp"
#include "gpu/process_facts.hpp"

namespace berth {
namespace {

using nvml::Device;
using nvml::Library;

/// What never changes about a card, kept so that a lost one can still be named.
struct KnownCard {
  unsigned index = 0;
  std::string uuid;
  std::string name;
  std::string pci_bus_id;
};

std::string text_of(int (*read)(Device, char*, unsigned), Device device) {
  std::array<char, nvml::kStringMax> buffer{};
  const bool done = read != nullptr && read(device, buffer.data(), buffer.size()) == nvml::success;
  buffer.back() = '\0';
  return done ? buffer.data() : "";
}

/// Readings of one card. A code that means the card itself is gone ends in `trouble`.
class CardReader {
 public:
  CardReader(const Library& library, Device device, bool avoid_v3)
      : library_(library), device_(device), avoid_v3_(avoid_v3) {}

  void read(GpuFacts& facts, ProcessReader& processes, ProbeReply& reply) {
    read_memory(facts);
    if (nvml::Utilization rates{}; ask(library_.utilization, &rates) && rates.gpu <= 100) {
      facts.utilization = rates.gpu;
    }
    constexpr int kGpuSensor = 0;
    if (unsigned celsius = 0; ask(library_.temperature, kGpuSensor, &celsius)) {
      facts.temperature = celsius;
    }
    if (unsigned milliwatts = 0; ask(library_.power, &milliwatts)) {
      facts.power_mw = milliwatts;
    }
    read_processes(facts, processes, reply);
    if (!trouble_.empty()) {
      // Half of a reading from a dying card is worth nothing.
      facts.memory_total = facts.memory_used = facts.memory_free = std::nullopt;
      facts.utilization = facts.temperature = facts.power_mw = std::nullopt;
      facts.processes.reset();
      facts.trouble = trouble_;
    }
  }

 private:
  template <class... Parameters, class... Arguments>
  bool ask(int (*function)(Device, Parameters...), Arguments... arguments) {
    if (function == nullptr) {
      return false;
    }
    return note(function(device_, arguments...)) == nvml::success;
  }

  int note(int code) {
    if ((code == nvml::gpu_is_lost || code == nvml::reset_required) && trouble_.empty()) {
      trouble_ = library_.describe(code);
    }
    return code;
  }

  void read_memory(GpuFacts& facts) {
    // The first form counts the driver's reserve as used, so `free` is the figure to rely on in
    // both.
    nvml::MemoryV2 v2{};
    v2.version = nvml::kMemoryV2Version;
    nvml::Memory v1{};
    if (ask(library_.memory_v2, &v2)) {
      v1 = {v2.total, v2.free, v2.used};
    } else if (library_.memory_v1 == nullptr) {
      return;
    } else if (const int code = note(library_.memory_v1(device_, &v1)); code != nvml::success) {
      // Not supported is a healthy card with shared memory; anything else is a card in trouble.
      if (code != nvml::not_supported && trouble_.empty()) {
        trouble_ = fmt::format("memory cannot be read: {}", library_.describe(code));
      }
      return;
    }
    facts.memory_total = v1.total;
    facts.memory_free = v1.free;
    facts.memory_used = v1.used;
  }

  void read_processes(GpuFacts& facts, ProcessReader& reader, ProbeReply& reply) {
    const auto compute = nvml::read_processes(library_.compute, device_, avoid_v3_);
    if (!compute) {
      note(compute.error());
      return;  // unknown, not empty
    }
    // One process may be in several lists, with the same memory or with none.
    std::map<std::uint32_t, std::optional<Bytes>> memory_by_pid;
    const auto merge = [&](const std::vector<nvml::Process>& list) {
      for (const nvml::Process& record : list) {
        auto& memory = memory_by_pid[record.pid];
        if (record.used_memory != nvml::kMemoryNotAvailable) {
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

  void read_process_utilization(const GpuFacts& facts, std::vector<GpuProcess>& processes) {
    if (library_.process_utilization == nullptr) {
      return;
    }
    // The driver keeps some seconds of samples; the newest of each process is of interest.
    constexpr std::chrono::microseconds kWindow = std::chrono::seconds(2);
    const auto since =
        std::chrono::duration_cast<std::chrono::microseconds>(read_clock().wall) - kWindow;
    std::vector<nvml::ProcessSample> samples(256);
    auto count = static_cast<unsigned>(samples.size());
    const auto call = [&] {
      return note(library_.process_utilization(device_, samples.data(), &count,
                                               static_cast<unsigned long long>(since.count())));
    };
    int code = call();
    if (constexpr unsigned kSamplesMax = 1U << 16U;
        code == nvml::insufficient_size && count <= kSamplesMax) {
      count += 64;
      samples.resize(count);
      code = call();
    }
    if (code == nvml::not_found) {
      // No samples: nobody computes, if the card as a whole is idle too; else nothing is known.
      for (GpuProcess& process : processes) {
        process.utilization = facts.utilization == 0U ? facts.utilization : std::nullopt;
      }
      return;
    }
    if (code != nvml::success) {
      return;
    }
    samples.resize(std::min<std::size_t>(count, samples.size()));
    std::ranges::sort(samples, {}, &nvml::ProcessSample::time_stamp_us);
    std::map<std::uint32_t, unsigned> newest;
    for (const nvml::ProcessSample& sample : samples) {
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

  const Library& library_;
  Device device_;
  bool avoid_v3_;
  std::string trouble_;
};

class NvmlProbe final : public Probe {
 public:
  explicit NvmlProbe(Library library) : library_(std::move(library)) {}
  NvmlProbe(const NvmlProbe&) = delete;
  NvmlProbe& operator=(const NvmlProbe&) = delete;
  ~NvmlProbe() override { stop(); }

  Status start() {
    if (const int code = library_.init(); code != nvml::success) {
      return std::unexpected(nvml::init_error(code, library_.describe(code)));
    }
    started_ = true;
    std::array<char, nvml::kStringMax> version{};
    if (library_.driver_version != nullptr &&
        library_.driver_version(version.data(), version.size()) == nvml::success) {
      driver_version_ = version.data();
    }
    avoid_v3_ = nvml::has_wide_process_records(driver_version_);
    return {};
  }

  Result<ProbeReply> sample() override {
    ProbeReply reply;
    reply.sample.begun_mono = read_clock().mono;  // before the first look at anything
    if (failures_ >= restart_at_) {
      // A library that has lost a card, or its driver, never finds it again by itself. Restarting
      // may disturb the driver, so each further try waits twice as long.
      constexpr unsigned kRestartMax = 64;
      restart_at_ = std::min(restart_at_ * 2, kRestartMax);
      failures_ = 0;
      stop();
    }
    if (!started_) {
      TRY(start());
    }
    unsigned count = 0;
    if (const int code = library_.count(&count); code != nvml::success) {
      ++failures_;
      return std::unexpected(nvml::init_error(code, library_.describe(code)));
    }
    reply.sample.driver = "NVML " + driver_version_;
    ProcessReader processes;
    for (unsigned index = 0; index < count; ++index) {
      Device device = nullptr;
      GpuFacts facts = identify(index, device);
      if (facts.trouble.empty()) {
        known_[facts.uuid] = {index, facts.uuid, facts.name, facts.pci_bus_id};
        CardReader(library_, device, avoid_v3_).read(facts, processes, reply);
      }
      reply.sample.gpus.push_back(std::move(facts));
    }
    name_absent(reply.sample.gpus);
    const bool troubled = std::ranges::any_of(
        reply.sample.gpus, [](const GpuFacts& facts) { return !facts.trouble.empty(); });
    if (troubled) {
      ++failures_;
    } else {
      failures_ = 0;
      restart_at_ = kRestartFirst;
    }
    return reply;
  }

 private:
  static constexpr unsigned kRestartFirst = 3;

  void stop() {
    if (std::exchange(started_, false)) {
      library_.shutdown();
    }
  }

  /// Opens a card and reads what never changes. `uuid` stays empty when that fails, with `trouble`.
  GpuFacts identify(unsigned index, Device& device) const {
    GpuFacts facts;
    facts.index = index;
    if (const int code = library_.handle_by_index(index, &device); code != nvml::success) {
      facts.trouble = library_.describe(code);
      return facts;
    }
    facts.uuid = text_of(library_.uuid, device);
    if (facts.uuid.empty()) {
      facts.trouble = "its UUID cannot be read";
      return facts;
    }
    facts.name = text_of(library_.name, device);
    if (nvml::PciInfo pci{};
        library_.pci_info != nullptr && library_.pci_info(device, &pci) == nvml::success) {
      pci.bus_id[sizeof pci.bus_id - 1] = '\0';
      facts.pci_bus_id = &pci.bus_id[0];
    }
    return facts;
  }

  /// Gives cards that could not be opened their names back, and adds those that are not reported
  /// any more. After a restart of the library an index may mean another card, so only the uuid
  /// counts, and an index merely tells which of the absent cards is meant.
  void name_absent(std::vector<GpuFacts>& gpus) {
    std::map<unsigned, KnownCard> absent;
    for (const auto& [uuid, card] : known_) {
      if (std::ranges::find(gpus, uuid, &GpuFacts::uuid) == gpus.end()) {
        absent.emplace(card.index, card);
      }
    }
    const auto fill = [](GpuFacts& facts, const KnownCard& card) {
      facts.uuid = card.uuid;
      facts.name = card.name;
      facts.pci_bus_id = card.pci_bus_id;
    };
    for (GpuFacts& facts : gpus) {
      if (facts.uuid.empty()) {
        if (const auto node = absent.extract(facts.index)) {
          fill(facts, node.mapped());
        } else {
          facts.uuid = fmt::format("unknown-{}", facts.index);
        }
      }
    }
    for (const auto& [index, card] : absent) {
      GpuFacts facts;
      facts.index = index;
      facts.trouble = "the driver no longer reports it";
      fill(facts, card);
      gpus.push_back(std::move(facts));
    }
  }

  Library library_;
  bool started_ = false;
  bool avoid_v3_ = false;
  std::string driver_version_;
  unsigned failures_ = 0;  ///< samples in a row with trouble
  unsigned restart_at_ = kRestartFirst;
  std::map<std::string, KnownCard> known_;  ///< by uuid
};

}  // namespace

Result<std::unique_ptr<Probe>> open_nvml_probe(const std::string& library_path) {
  TRY_ASSIGN(Library library, Library::load(library_path));
  auto probe = std::make_unique<NvmlProbe>(std::move(library));
  TRY(probe->start());
  return probe;
}

}  // namespace berth
