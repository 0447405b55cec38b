// What a supervisor is told: the launch spec it is born with and the words of its signals. The
// first byte: "r", the rest is the spec as it is; anything else, it gets the right magic, version
// and size here; "c": the version with CPUs. A spec that is accepted is written the same, and reads
// in place as it does copied.

#include <cstring>

#include "proc/control.hpp"
#include "proc/launch_spec.hpp"
#include "proc/launch_spec_view.hpp"
#include "support.hpp"

namespace {

using namespace berth;

std::string framed(std::string_view body, std::uint32_t version) {
  std::string bytes(kLaunchMagic);
  const auto size = static_cast<std::uint32_t>(kLaunchMagic.size() + 8 + body.size());
  bytes.append(reinterpret_cast<const char*>(&version), sizeof version);
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  return bytes.append(body);
}

void check_spec(std::string_view bytes) {
  LaunchSpecView view;
  const bool ok = view_launch_spec(bytes, view);
  const auto spec = decode_launch_spec(bytes);
  BERTH_ASSERT(ok == spec.has_value());
  if (!spec) {
    return fuzz::check_error(spec.error());
  }
  BERTH_ASSERT(spec->commands.size() == view.command_count);
  BERTH_ASSERT(spec->environment.size() == view.variable_count);
  BERTH_ASSERT(spec->cpus.size() == view.cpu_count);
  BERTH_ASSERT(spec->cwd == view.cwd && spec->log == view.log);
  BERTH_ASSERT(view.cwd.data()[view.cwd.size()] == '\0');  // as system calls will read it
  const auto written = encode_launch_spec(*spec);
  BERTH_ASSERT(written.has_value());
  if (view.flags <= (kFlagUserLog | kFlagLinger)) {
    BERTH_ASSERT(*written == bytes);
  }
  const auto again = decode_launch_spec(*written);
  BERTH_ASSERT(again && *again == *spec);
  // None that is a byte short or long passes.
  BERTH_ASSERT(!decode_launch_spec(bytes.substr(0, bytes.size() - 1)));
  BERTH_ASSERT(!decode_launch_spec(std::string(bytes) + '\0'));
}

void check_control(std::string_view bytes) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, bytes.data(), std::min(bytes.size(), sizeof bits));
  const ControlWord word = decode_control(bits);
  BERTH_ASSERT(word.value <= kOwnGrace);
  BERTH_ASSERT(encode_control(word) == bits);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const auto rest = fuzz::text_of(data + 1, size - 1);
  check_spec(data[0] == 'r'
                 ? std::string(rest)
                 : framed(rest, data[0] == 'c' ? kLaunchVersionWithCpus : kLaunchVersion));
  check_control(rest);
  return 0;
}
