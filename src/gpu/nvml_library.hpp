#pragma once
// libnvidia-ml.so.1, loaded at run time so that one binary runs on machines with and without it.

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/nvml_abi.hpp"

namespace berth::nvml {

/// The functions of a loaded library. Every one but those marked may be null in an old driver.
class Library {
 public:
  /// The error says what to do when there is no driver, or it is too old.
  [[nodiscard]] static Result<Library> load(const std::string& path);

  int (*init)() = nullptr;                              // never null
  int (*shutdown)() = nullptr;                          // never null
  int (*count)(unsigned*) = nullptr;                    // never null
  int (*handle_by_index)(unsigned, Device*) = nullptr;  // never null
  int (*uuid)(Device, char*, unsigned) = nullptr;       // never null
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*cuda_version)(int*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*pci_info)(Device, PciInfo*) = nullptr;
  int (*memory_v2)(Device, MemoryV2*) = nullptr;
  int (*memory_v1)(Device, Memory*) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  int (*process_utilization)(Device, ProcessSample*, unsigned*, unsigned long long) = nullptr;

  int (*samples)(Device, int, unsigned long long, int*, unsigned*, Sample*) = nullptr;
  int (*ecc_errors)(Device, int, int, unsigned long long*) = nullptr;
  int (*event_set_create)(EventSet*) = nullptr;
  int (*event_set_free)(EventSet) = nullptr;
  int (*register_events)(Device, unsigned long long, EventSet) = nullptr;
  int (*event_wait)(EventSet, EventData*, unsigned) = nullptr;
  int (*nvlink_state)(Device, unsigned, int*) = nullptr;
  int (*nvlink_remote)(Device, unsigned, PciInfo*) = nullptr;
  int (*common_ancestor)(Device, Device, int*) = nullptr;
  int (*memory_affinity)(Device, unsigned, unsigned long*, unsigned) = nullptr;
  /// Only the simulated library has it.
  int (*simulated_host_available)(unsigned long long*) = nullptr;

  /// One of the process lists, in whichever version the library has.
  struct ProcessList {
    int (*v3)(Device, unsigned*, Process*) = nullptr;
    int (*v2)(Device, unsigned*, Process*) = nullptr;
    int (*v1)(Device, unsigned*, ProcessV1*) = nullptr;
  };
  ProcessList compute, graphics, mps;

  /// What the library calls a code: "GPU is lost".
  [[nodiscard]] std::string describe(int code) const;

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  std::unique_ptr<void, Close> handle_;
};

/// Drivers 535.43 up to, but not including, 535.86 fill the _v3 process lists with records of 32
/// bytes instead of 24; their _v2 lists are right.
[[nodiscard]] bool has_wide_process_records(const std::string& driver_version);

/// What to tell people when nvmlInit fails, with the next step.
[[nodiscard]] Error init_error(int code, const std::string& description);

/// Asks one list of a card; records of version 1 come back in the newer form.
[[nodiscard]] std::expected<std::vector<Process>, int> read_processes(
    const Library::ProcessList& list, Device device, bool avoid_v3);

}  // namespace berth::nvml
