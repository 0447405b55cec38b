#include "gpu/cpu_affinity.hpp"

#include <dlfcn.h>
#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <memory>
#include <set>

#include "gpu/host_facts.hpp"

namespace berth {
namespace {

constexpr unsigned kCpusMax = 8192;  // as many as Linux can be built for

/// The functions of hwloc 2 that are used here. Only its types come from the header.
class Hwloc {
 public:
  explicit Hwloc(const std::string& name)
      : handle_(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL), [](void* handle) {
          if (handle != nullptr) {
            ::dlclose(handle);
          }
        }) {
    complete_ = find(version_, "hwloc_get_api_version") && find(init_, "hwloc_topology_init") &&
                find(filter_, "hwloc_topology_set_io_types_filter") &&
                find(leave_out_, "hwloc_topology_set_components") &&
                find(load_, "hwloc_topology_load") && find(destroy_, "hwloc_topology_destroy") &&
                find(object_, "hwloc_get_obj_by_depth") && find(next_, "hwloc_bitmap_next") &&
                version_() >> 16U == HWLOC_API_VERSION >> 16U;
  }

  /// The CPUs near to each PCI device; none when the library is missing or fails.
  [[nodiscard]] std::map<PciAddress, CpuList> devices() const {
    std::map<PciAddress, CpuList> found;
    hwloc_topology_t topology = nullptr;
    if (!complete_ || init_(&topology) != 0) {
      return found;
    }
    // These would call drivers, which may hang.
    for (const char* component : {"nvml", "cuda", "opencl", "rsmi", "levelzero", "gl"}) {
      leave_out_(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
    }
    if (filter_(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) == 0 && load_(topology) == 0) {
      for (unsigned i = 0;; ++i) {
        const hwloc_obj* device = object_(topology, HWLOC_TYPE_DEPTH_PCI_DEVICE, i);
        if (device == nullptr) {
          break;
        }
        const auto& pci = device->attr->pcidev;
        found[{pci.domain, pci.bus, pci.dev, pci.func}] = cpus_of(device);
      }
    }
    destroy_(topology);
    return found;
  }

 private:
  template <class Function>
  bool find(Function& function, const char* name) {
    void* symbol = handle_ == nullptr ? nullptr : ::dlsym(handle_.get(), name);
    function = reinterpret_cast<Function>(symbol);
    return symbol != nullptr;
  }

  /// Devices have no CPUs; what they are attached to has.
  [[nodiscard]] CpuList cpus_of(const hwloc_obj* object) const {
    while (object != nullptr && object->cpuset == nullptr) {
      object = object->parent;
    }
    CpuList cpus;
    if (object != nullptr) {
      for (int cpu = next_(object->cpuset, -1); cpu >= 0 && cpu < static_cast<int>(kCpusMax);
           cpu = next_(object->cpuset, cpu)) {
        cpus.push_back(static_cast<unsigned>(cpu));
      }
    }
    return cpus;
  }

  std::unique_ptr<void, void (*)(void*)> handle_;
  bool complete_ = false;
  decltype(&::hwloc_get_api_version) version_ = nullptr;
  decltype(&::hwloc_topology_init) init_ = nullptr;
  decltype(&::hwloc_topology_set_io_types_filter) filter_ = nullptr;
  decltype(&::hwloc_topology_set_components) leave_out_ = nullptr;
  decltype(&::hwloc_topology_load) load_ = nullptr;
  decltype(&::hwloc_topology_destroy) destroy_ = nullptr;
  decltype(&::hwloc_get_obj_by_depth) object_ = nullptr;
  decltype(&::hwloc_bitmap_next) next_ = nullptr;
};

CpuList own_cpus() {
  CpuList cpus;
  std::vector<unsigned char> bits(kCpusMax / 8);
  if (::sched_getaffinity(0, bits.size(), reinterpret_cast<cpu_set_t*>(bits.data())) == 0) {
    for (unsigned cpu = 0; cpu < kCpusMax; ++cpu) {
      if ((bits[cpu / 8] >> (cpu % 8) & 1U) != 0) {
        cpus.push_back(cpu);
      }
    }
  }
  return cpus;
}

std::optional<unsigned> parse_cpu(std::string_view text) {
  unsigned cpu = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), cpu);
  const bool whole = error == std::errc{} && rest == text.data() + text.size() && cpu < kCpusMax;
  return whole ? std::optional(cpu) : std::nullopt;
}

}  // namespace

std::optional<CpuList> parse_cpu_list(std::string_view text) {
  if (text.ends_with('\n')) {
    text.remove_suffix(1);
  }
  std::set<unsigned> cpus;
  for (bool more = !text.empty(); more;) {
    const std::size_t comma = text.find(',');
    const std::string_view range = text.substr(0, comma);
    const std::size_t dash = range.find('-');
    const auto first = parse_cpu(range.substr(0, dash));
    const auto last = dash == range.npos ? first : parse_cpu(range.substr(dash + 1));
    if (!first || !last || *last < *first) {
      return std::nullopt;
    }
    for (unsigned cpu = *first; cpu <= *last; ++cpu) {
      cpus.insert(cpu);
    }
    more = comma != text.npos;
    text.remove_prefix(more ? comma + 1 : text.size());
  }
  return CpuList(cpus.begin(), cpus.end());
}

const CpuList& CpuAffinity::near(const PciAddress& address) {
  if (!known_) {
    known_ = Hwloc(sources_.hwloc).devices();
  }
  const auto [entry, is_new] = known_->try_emplace(address);
  if (is_new) {
    const auto text =
        read_text_file(sources_.devices + "/" + sysfs_name(address) + "/local_cpulist");
    entry->second = (text ? parse_cpu_list(*text) : std::nullopt).value_or(CpuList{});
  }
  return entry->second;
}

CpuList CpuAffinity::near(const std::vector<std::string>& pci_bus_ids) {
  std::set<unsigned> wanted;
  for (const std::string& id : pci_bus_ids) {
    const auto address = parse_pci_address(id);
    const CpuList cpus = address ? near(*address) : CpuList{};
    if (cpus.empty()) {
      return {};
    }
    wanted.insert(cpus.begin(), cpus.end());
  }
  CpuList allowed;
  std::ranges::set_intersection(wanted, own_cpus(), std::back_inserter(allowed));
  return allowed;
}

}  // namespace berth
