#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "gpu/host_facts.hpp"
#include "gpu/nvml_card.hpp"
#include "gpu/nvml_library.hpp"
#include "gpu/nvml_topology.hpp"
#include "gpu/nvml_xids.hpp"
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
    xids_.emplace(library_);
    std::array<char, nvml::kStringMax> version{};
    if (library_.driver_version != nullptr &&
        library_.driver_version(version.data(), version.size()) == nvml::success) {
      driver_version_ = version.data();
    }
    int cuda = 0;
    if (library_.cuda_version != nullptr && library_.cuda_version(&cuda) == nvml::success &&
        cuda > 0) {
      cuda_version_ = fmt::format(", CUDA {}.{}", cuda / 1000, cuda % 1000 / 10);
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
    reply.sample.driver = "NVML " + driver_version_ + cuda_version_;
    reply.sample.host_available = host_available();
    ProcessReader processes;
    std::vector<nvml::OpenCard> open;
    for (unsigned index = 0; index < count; ++index) {
      Device device = nullptr;
      GpuFacts facts = identify(index, device);
      if (facts.trouble.empty()) {
        known_[facts.uuid] = {index, facts.uuid, facts.name, facts.pci_bus_id};
        xids_->listen(device, facts.uuid);
        nvml::CardReader(library_, device, avoid_v3_).read(facts, processes, reply);
      }
      if (facts.trouble.empty()) {
        open.push_back({device, facts.uuid, facts.pci_bus_id});
      }
      reply.sample.gpus.push_back(std::move(facts));
    }
    name_absent(reply.sample.gpus);
    place(open, reply.sample.gpus);
    add_xids(reply.sample.gpus);
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
      keep_xids();  // what has come since the last sample would go with the listener
      xids_.reset();
      open_.clear();
      library_.shutdown();
    }
  }

  [[nodiscard]] std::optional<Bytes> host_available() const {
    unsigned long long bytes = 0;
    if (library_.simulated_host_available != nullptr &&
        library_.simulated_host_available(&bytes) == nvml::success) {
      return bytes;
    }
    return read_host_available();
  }

  /// Cards stay where they are, lost ones too: only with a new one all are looked at again.
  void place(const std::vector<nvml::OpenCard>& open, std::vector<GpuFacts>& gpus) {
    const bool has_new = std::ranges::any_of(open, [&](const nvml::OpenCard& card) {
      return std::ranges::find(open_, card) == open_.end();
    });
    if (has_new) {
      open_ = open;
      for (auto& [uuid, place] : nvml::read_topology(library_, open)) {
        nvml::Place& known = places_[uuid];
        known.numa_node = place.numa_node;
        place.links.merge(known.links);  // what is new goes before what was known
        known.links = std::move(place.links);
      }
    }
    for (GpuFacts& facts : gpus) {
      if (const auto found = places_.find(facts.uuid); found != places_.end()) {
        facts.numa_node = found->second.numa_node;
        facts.links = found->second.links;
      }
    }
  }

  void keep_xids() {
    for (const auto& [uuid, codes] : xids_->drain()) {
      std::vector<std::uint32_t>& heard = heard_[uuid];
      std::ranges::copy_if(codes, std::back_inserter(heard), [&](std::uint32_t code) {
        return std::ranges::find(heard, code) == heard.end();
      });
    }
  }

  void add_xids(std::vector<GpuFacts>& gpus) {
    keep_xids();
    for (GpuFacts& facts : gpus) {
      facts.xids = std::move(heard_[facts.uuid]);
    }
    heard_.clear();
  }

  /// Opens a card and reads what never changes. `uuid` stays empty when that fails, with `trouble`.
  GpuFacts identify(unsigned index, Device& device) const {
    GpuFacts facts;
    facts.index = index;
    if (const int code = library_.handle_by_index(index, &device); code != nvml::success) {
      facts.trouble = library_.describe(code);
      facts.lost = code == nvml::gpu_is_lost || code == nvml::reset_required;
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
          facts.uuid = stand_in_uuid(facts.index);
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
  std::string
      cuda_version_;       ///< ", CUDA 12.4", the newest that the driver can do; empty: not known
  unsigned failures_ = 0;  ///< samples in a row with trouble
  unsigned restart_at_ = kRestartFirst;
  std::map<std::string, KnownCard> known_;                   ///< by uuid
  std::optional<nvml::XidListener> xids_;                    ///< while started
  std::map<std::string, std::vector<std::uint32_t>> heard_;  ///< by uuid, not yet reported
  std::vector<nvml::OpenCard> open_;                         ///< when `places_` was read
  std::map<std::string, nvml::Place> places_;
};

}  // namespace

Result<std::unique_ptr<Probe>> open_nvml_probe(const std::string& library_path) {
  TRY_ASSIGN(Library library, Library::load(library_path));
  auto probe = std::make_unique<NvmlProbe>(std::move(library));
  TRY(probe->start());
  return probe;
}

}  // namespace berth
