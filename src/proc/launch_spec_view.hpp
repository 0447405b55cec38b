#pragma once
// The bytes of a launch spec, read in place. The supervisor includes only this: no heap, no
// exceptions, nothing copied; every string is NUL-terminated where it lies.
//
// Layout (host byte order: writer and reader are on one machine):
//   "BERTHLS\n"  u32 version  u32 total size
//   u64 attempt  u64 job  u64 time limit ms  u64 grace ms  u64 log limit
//   u32 umask  i32 nice  u32 flags
//   string cwd, log, cgroup parent, daemon lock
//   u32 commands { u32 shell  u32 arguments { string } }  u32 variables { string }
//   since version 2, which is written only if there are any: u32 CPUs { u32 }, ascending
//   since version 3, which is written only if there is a warning, with or without CPUs before it:
//   u32 signal  u64 ms before the limit
// where string = u32 length, bytes without NUL, NUL.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace berth {

inline constexpr std::string_view kLaunchMagic = "BERTHLS\n";
inline constexpr std::uint32_t kLaunchVersion = 1;
inline constexpr std::uint32_t kLaunchVersionWithCpus = 2;
inline constexpr std::uint32_t kLaunchVersionWithWarning = 3;
inline constexpr std::uint32_t kLaunchSignalMax = 64;
inline constexpr std::uint32_t kLaunchCpusMax = 8192;  ///< as many as Linux can be built for
inline constexpr std::size_t kLaunchSizeMax = 64U << 20U;
inline constexpr std::uint32_t kFlagUserLog = 1;
inline constexpr std::uint32_t kFlagLinger = 2;

/// Descriptors the supervisor is born with.
inline constexpr int kRecordFd = 3;
inline constexpr int kLaunchFd = 4;

/// Reads forward through bytes nobody vouches for; after the first failure everything is empty.
class SpecReader {
 public:
  explicit SpecReader(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::string_view rest() const { return rest_; }

  template <class T>
  T number() {
    T value{};
    if (rest_.size() < sizeof value) {
      ok_ = false;
      rest_ = {};
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }

  std::string_view string() {
    const auto size = number<std::uint32_t>();
    if (!ok_ || rest_.size() <= size || rest_[size] != '\0' ||
        rest_.substr(0, size).find('\0') != std::string_view::npos) {
      ok_ = false;
      rest_ = {};
      return "";
    }
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(std::size_t{size} + 1);
    return text;
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

struct LaunchSpecView {
  std::uint64_t attempt = 0;
  std::uint64_t job = 0;
  std::uint64_t time_limit_ms = 0;
  std::uint64_t grace_ms = 0;
  std::uint64_t log_limit = 0;
  std::uint32_t umask = 0;
  std::int32_t nice = 0;
  std::uint32_t flags = 0;
  std::string_view cwd;
  std::string_view log;
  std::string_view cgroup_parent;
  std::string_view daemon_lock;
  std::uint32_t command_count = 0;
  std::uint32_t variable_count = 0;
  std::string_view commands;   ///< from the first command on; read with SpecReader
  std::string_view variables;  ///< from the first variable on
  std::uint32_t cpu_count = 0;
  std::string_view cpus;          ///< from the first CPU on
  std::uint32_t warn_signal = 0;  ///< 0: none
  std::uint64_t warn_before_ms = 0;

  [[nodiscard]] bool user_log() const { return (flags & kFlagUserLog) != 0; }
  [[nodiscard]] bool linger() const { return (flags & kFlagLinger) != 0; }
};

/// The CPUs near the end of the spec: ascending, none beyond the last.
[[nodiscard]] inline bool view_cpus(SpecReader& in, LaunchSpecView& out) {
  out.cpu_count = in.number<std::uint32_t>();
  out.cpus = in.rest();
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < out.cpu_count && in.ok(); ++i) {
    const auto cpu = in.number<std::uint32_t>();
    if (cpu < next || cpu >= kLaunchCpusMax) {
      return false;
    }
    next = cpu + 1;
  }
  return true;
}

[[nodiscard]] inline bool view_warning(SpecReader& in, LaunchSpecView& out) {
  out.warn_signal = in.number<std::uint32_t>();
  out.warn_before_ms = in.number<std::uint64_t>();
  return out.warn_signal > 0 && out.warn_signal <= kLaunchSignalMax;
}

/// Checks every length, so that later reads of `commands`, `variables` and `cpus` cannot fail.
/// False: not a launch spec of a version known here.
[[nodiscard]] inline bool view_launch_spec(std::string_view bytes, LaunchSpecView& out) {
  if (bytes.size() < kLaunchMagic.size() || bytes.size() > kLaunchSizeMax ||
      bytes.substr(0, kLaunchMagic.size()) != kLaunchMagic) {
    return false;
  }
  SpecReader in(bytes.substr(kLaunchMagic.size()));
  const auto version = in.number<std::uint32_t>();
  if (version < kLaunchVersion || version > kLaunchVersionWithWarning ||
      in.number<std::uint32_t>() != bytes.size()) {
    return false;
  }
  out.attempt = in.number<std::uint64_t>();
  out.job = in.number<std::uint64_t>();
  out.time_limit_ms = in.number<std::uint64_t>();
  out.grace_ms = in.number<std::uint64_t>();
  out.log_limit = in.number<std::uint64_t>();
  out.umask = in.number<std::uint32_t>();
  out.nice = in.number<std::int32_t>();
  out.flags = in.number<std::uint32_t>();
  out.cwd = in.string();
  out.log = in.string();
  out.cgroup_parent = in.string();
  out.daemon_lock = in.string();
  out.command_count = in.number<std::uint32_t>();
  out.commands = in.rest();
  for (std::uint32_t i = 0; i < out.command_count && in.ok(); ++i) {
    const auto shell = in.number<std::uint32_t>();
    const auto arguments = in.number<std::uint32_t>();
    if (!in.ok() || arguments == 0 || shell > 1 || (shell == 1 && arguments != 1)) {
      return false;
    }
    for (std::uint32_t a = 0; a < arguments && in.ok(); ++a) {
      (void)in.string();
    }
  }
  out.variable_count = in.number<std::uint32_t>();
  out.variables = in.rest();
  for (std::uint32_t i = 0; i < out.variable_count && in.ok(); ++i) {
    (void)in.string();
  }
  if (version >= kLaunchVersionWithCpus && !view_cpus(in, out)) {
    return false;
  }
  if (version == kLaunchVersionWithCpus && out.cpu_count == 0) {
    return false;
  }
  if (version >= kLaunchVersionWithWarning && !view_warning(in, out)) {
    return false;
  }
  constexpr auto kTimeMax = ~std::uint64_t{0} >> 1U;  // times are signed everywhere else
  return in.ok() && in.rest().empty() && out.command_count > 0 && out.time_limit_ms <= kTimeMax &&
         out.grace_ms <= kTimeMax && out.warn_before_ms <= kTimeMax;
}

}  // namespace berth
