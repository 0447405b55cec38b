#pragma once
// The readings of one card for one sample.

#include <string>
#include <vector>

#include "gpu/nvml_library.hpp"
#include "gpu/probe.hpp"
#include "gpu/process_facts.hpp"

namespace berth::nvml {

/// A code that means the card itself is gone ends in `trouble`.
class CardReader {
 public:
  CardReader(const Library& library, Device device, bool avoid_v3)
      : library_(library), device_(device), avoid_v3_(avoid_v3) {}

  void read(GpuFacts& facts, ProcessReader& processes, ProbeReply& reply);

 private:
  template <class... Parameters, class... Arguments>
  bool ask(int (*function)(Device, Parameters...), Arguments... arguments) {
    if (function == nullptr) {
      return false;
    }
    return note(function(device_, arguments...)) == success;
  }

  int note(int code);
  void read_memory(GpuFacts& facts);
  void read_memory_again(GpuFacts& facts);
  void read_busy(GpuFacts& facts);
  void read_processes(GpuFacts& facts, ProcessReader& reader, ProbeReply& reply);
  void read_process_utilization(const GpuFacts& facts, std::vector<GpuProcess>& processes);

  const Library& library_;
  Device device_;
  bool avoid_v3_;
  std::string trouble_;
  bool lost_ = false;
};

}  // namespace berth::nvml
