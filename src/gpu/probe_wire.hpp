#pragma once
// What the daemon and its probe process say to each other: one line each way.
//
//   daemon: sample 7\n
//   probe:  {"id":7,"driver":"NVML 550.54.15","begun_mono":123456,"gpus":[…],"ancestors":{…}}\n
//   or      {"id":7,"error":{"code":"unavailable","message":"the NVIDIA driver is not loaded;
//   …"}}\n
//
// Of a card: "uuid", "index", "name", "pci_bus_id", "trouble", "lost", and what is known of
// "memory_total", "memory_used", "memory_free", "utilization", "busy", "temperature", "power_mw",
// "ecc_uncorrected", "numa_node", "xids":[79], "links":{"nvlink":["GPU-…"],"system":[…]} and
// "processes":[{"pid","start_time","name","uid","memory","utilization","age"}]; beside "gpus"
// stands "host_available". Sizes are bytes, times milliseconds.
//
// An unknown value is left out. The lines need not be trusted: a process may have any name, and a
// driver may write to the standard output of whoever loads it.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "gpu/probe.hpp"

namespace berth {

/// "sample 7\n".
[[nodiscard]] std::string encode_probe_request(std::uint64_t id);
/// The id; the line comes without its newline.
[[nodiscard]] Result<std::uint64_t> decode_probe_request(std::string_view line);

struct ProbeAnswer {
  std::uint64_t id = 0;  ///< of the request
  Result<ProbeReply> reply;
};

/// One line with its newline. Bytes that are not UTF-8 become '?'.
[[nodiscard]] std::string encode_probe_answer(const ProbeAnswer& answer);
/// An error (`corrupt`) for anything but a whole answer; unknown keys are ignored.
[[nodiscard]] Result<ProbeAnswer> decode_probe_answer(std::string_view line);
/// The same, for one who has a single request under way: the probe's error is the error.
[[nodiscard]] Result<ProbeReply> decode_probe_reply(std::string_view line);

/// The probe process: answers requests on stdin, on stdout, until stdin ends. Takes
/// `--nvml-library PATH` (default: the driver's own); ignores `--probe`. Returns the exit code.
int probe_main(int argc, char** argv);

}  // namespace berth
