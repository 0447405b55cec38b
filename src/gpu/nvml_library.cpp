#include "gpu/nvml_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdio>

namespace berth::nvml {
namespace {

// The unversioned names are kept by the library for old programs, with the semantics of the first
// version; so each version is asked for by its own name, newest first.
template <class Function>
bool find(void* handle, Function& function, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (void* symbol = ::dlsym(handle, name); symbol != nullptr) {
      function = reinterpret_cast<Function>(symbol);
      return true;
    }
  }
  return false;
}

void find_lists(void* handle, Library::ProcessList& list, const std::string& kind) {
  const std::string name = "nvmlDeviceGet" + kind + "RunningProcesses";
  find(handle, list.v3, {(name + "_v3").c_str()});
  find(handle, list.v2, {(name + "_v2").c_str()});
  find(handle, list.v1, {name.c_str()});
}

/// The protocol of the lists: a buffer that is too small gives the needed count, which may grow
/// again before the next call.
template <class Record>
std::expected<std::vector<Record>, int> read_list(int (*list)(Device, unsigned*, Record*),
                                                  Device device) {
  constexpr int kTries = 8;
  constexpr unsigned kSlack = 16;
  std::vector<Record> records(2 * kSlack);
  for (int attempt = 0; attempt < kTries; ++attempt) {
    auto count = static_cast<unsigned>(records.size());
    const int code = list(device, &count, records.data());
    if (code == success) {
      records.resize(std::min<std::size_t>(count, records.size()));
      return records;
    }
    constexpr unsigned kProcessesMax = 1U << 20U;
    if (code != insufficient_size || count > kProcessesMax) {
      return std::unexpected(code);
    }
    records.resize(std::max<std::size_t>(count + kSlack, records.size() * 2));
  }
  return std::unexpected(static_cast<int>(insufficient_size));
}

}  // namespace

void Library::Close::operator()(void* handle) const {
  ::dlclose(handle);
}

Result<Library> Library::load(const std::string& path) {
  const std::string name = path.empty() ? "libnvidia-ml.so.1" : path;
  Library library;
  library.handle_.reset(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!library.handle_) {
    const char* reason = ::dlerror();
    return fail(
        ErrorCode::not_found,
        fmt::format("no NVIDIA driver: cannot load {} ({}); install the driver and check that "
                    "nvidia-smi works",
                    name, reason == nullptr ? "no reason given" : reason));
  }
  void* handle = library.handle_.get();
  const bool complete =
      find(handle, library.init, {"nvmlInit_v2", "nvmlInit"}) &&
      find(handle, library.shutdown, {"nvmlShutdown"}) &&
      find(handle, library.count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}) &&
      find(handle, library.handle_by_index,
           {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}) &&
      find(handle, library.uuid, {"nvmlDeviceGetUUID"});
  if (!complete) {
    return fail(ErrorCode::invalid,
                fmt::format("{} is not a usable NVIDIA management library: functions are missing; "
                            "update the NVIDIA driver",
                            name));
  }
  find(handle, library.error_string, {"nvmlErrorString"});
  find(handle, library.driver_version, {"nvmlSystemGetDriverVersion"});
  find(handle, library.cuda_version,
       {"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"});
  find(handle, library.name, {"nvmlDeviceGetName"});
  find(handle, library.pci_info, {"nvmlDeviceGetPciInfo_v3"});
  find(handle, library.memory_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  find(handle, library.memory_v1, {"nvmlDeviceGetMemoryInfo"});
  find(handle, library.utilization, {"nvmlDeviceGetUtilizationRates"});
  find(handle, library.temperature, {"nvmlDeviceGetTemperature"});
  find(handle, library.power, {"nvmlDeviceGetPowerUsage"});
  find(handle, library.process_utilization, {"nvmlDeviceGetProcessUtilization"});
  find(handle, library.samples, {"nvmlDeviceGetSamples"});
  find(handle, library.ecc_errors, {"nvmlDeviceGetTotalEccErrors"});
  find(handle, library.event_set_create, {"nvmlEventSetCreate"});
  find(handle, library.event_set_free, {"nvmlEventSetFree"});
  find(handle, library.register_events, {"nvmlDeviceRegisterEvents"});
  find(handle, library.event_wait, {"nvmlEventSetWait_v2"});
  find(handle, library.nvlink_state, {"nvmlDeviceGetNvLinkState"});
  find(handle, library.nvlink_remote, {"nvmlDeviceGetNvLinkRemotePciInfo_v2"});
  find(handle, library.common_ancestor, {"nvmlDeviceGetTopologyCommonAncestor"});
  find(handle, library.memory_affinity, {"nvmlDeviceGetMemoryAffinity"});
  find(handle, library.simulated_host_available, {"berthSimulatedHostAvailable"});
  find_lists(handle, library.compute, "Compute");
  find_lists(handle, library.graphics, "Graphics");
  find_lists(handle, library.mps, "MPSCompute");
  return library;
}

std::string Library::describe(int code) const {
  const char* text = error_string == nullptr ? nullptr : error_string(code);
  return text == nullptr ? fmt::format("NVML error {}", code) : text;
}

bool has_wide_process_records(const std::string& driver_version) {
  unsigned major = 0;
  unsigned minor = 0;
  return std::sscanf(driver_version.c_str(), "%u.%u", &major, &minor) == 2 && major == 535 &&
         minor >= 43 && minor < 86;
}

Error init_error(int code, const std::string& description) {
  switch (code) {
    case driver_not_loaded:
      return {ErrorCode::unavailable,
              "the NVIDIA driver is not loaded; load it with 'modprobe nvidia' or reboot, and see "
              "'dmesg | grep NVRM' if that fails"};
    case version_mismatch:
      return {ErrorCode::refused,
              "the NVIDIA driver was upgraded while the old kernel module is loaded "
              "(Driver/library version mismatch); reboot, or unload and load the nvidia modules"};
    case no_permission:
      return {ErrorCode::refused,
              "no permission to use the NVIDIA driver; check the access rights of /dev/nvidia*"};
    default:
      return {ErrorCode::unavailable,
              fmt::format("cannot initialise NVML: {} (code {}); does nvidia-smi work?",
                          description, code)};
  }
}

std::expected<std::vector<Process>, int> read_processes(const Library::ProcessList& list,
                                                        Device device, bool avoid_v3) {
  if (list.v3 != nullptr && !avoid_v3) {
    return read_list(list.v3, device);
  }
  if (list.v2 != nullptr) {
    return read_list(list.v2, device);
  }
  if (list.v1 == nullptr) {
    return std::unexpected(static_cast<int>(function_not_found));
  }
  const auto old = read_list(list.v1, device);
  if (!old) {
    return std::unexpected(old.error());
  }
  std::vector<Process> records;
  for (const ProcessV1& record : *old) {
    records.push_back({record.pid, record.used_memory, ~0U, ~0U});
  }
  return records;
}

}  // namespace berth::nvml
