#include "proc/launch_spec.hpp"

#include <fmt/format.h>

#include <set>

#include "proc/launch_spec_view.hpp"

namespace berth {
namespace {

class SpecWriter {
 public:
  template <class T>
  void number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void string(std::string_view text) {
    clean_ = clean_ && text.find('\0') == std::string_view::npos;
    number(static_cast<std::uint32_t>(text.size()));
    bytes_.append(text);
    bytes_.push_back('\0');
  }

  std::string bytes_;
  bool clean_ = true;
};

bool write_cpus(SpecWriter& out, const std::vector<std::uint32_t>& cpus) {
  const std::set<std::uint32_t> ascending(cpus.begin(), cpus.end());
  out.number(static_cast<std::uint32_t>(ascending.size()));
  for (const std::uint32_t cpu : ascending) {
    out.number(cpu);
  }
  return ascending.empty() || *ascending.rbegin() < kLaunchCpusMax;
}

/// The lowest that can say it, so that a supervisor of an earlier version understands it where that
/// is possible.
std::uint32_t version_for(const LaunchSpec& spec) {
  if (spec.warning.signal > 0) {
    return kLaunchVersionWithWarning;
  }
  return spec.cpus.empty() ? kLaunchVersion : kLaunchVersionWithCpus;
}

}  // namespace

Result<std::string> encode_launch_spec(const LaunchSpec& spec) {
  if (spec.commands.empty()) {
    return fail(ErrorCode::invalid, fmt::format("job {} has no command", spec.job.value));
  }
  SpecWriter out;
  out.bytes_ = kLaunchMagic;
  const std::uint32_t version = version_for(spec);
  out.number(version);
  const std::size_t size_at = out.bytes_.size();
  out.number(std::uint32_t{0});
  out.number(spec.attempt.value);
  out.number(spec.job.value);
  out.number(static_cast<std::uint64_t>(std::max<std::int64_t>(spec.time_limit.count(), 0)));
  out.number(static_cast<std::uint64_t>(std::max<std::int64_t>(spec.grace.count(), 0)));
  out.number(std::uint64_t{spec.log_limit});
  out.number(spec.umask);
  out.number(spec.nice);
  out.number((spec.log_named_by_user ? kFlagUserLog : 0U) | (spec.linger ? kFlagLinger : 0U));
  for (const std::string* text : {&spec.cwd, &spec.log, &spec.cgroup_parent, &spec.daemon_lock}) {
    out.string(*text);
  }
  out.number(static_cast<std::uint32_t>(spec.commands.size()));
  for (const Command& command : spec.commands) {
    if (command.argv.empty() || (command.shell && command.argv.size() != 1)) {
      return fail(ErrorCode::invalid, fmt::format("job {} has an empty command", spec.job.value));
    }
    out.number(std::uint32_t{command.shell});
    out.number(static_cast<std::uint32_t>(command.argv.size()));
    for (const std::string& argument : command.argv) {
      out.string(argument);
    }
  }
  out.number(static_cast<std::uint32_t>(spec.environment.size()));
  for (const std::string& variable : spec.environment) {
    out.string(variable);
  }
  if (version >= kLaunchVersionWithCpus && !write_cpus(out, spec.cpus)) {
    return fail(ErrorCode::invalid,
                fmt::format("job {} is to run on a CPU beyond number {}, which no machine has",
                            spec.job.value, kLaunchCpusMax - 1));
  }
  if (version >= kLaunchVersionWithWarning) {
    out.number(static_cast<std::uint32_t>(spec.warning.signal));
    out.number(static_cast<std::uint64_t>(std::max<std::int64_t>(spec.warning.before.count(), 0)));
  }
  if (!out.clean_) {
    return fail(ErrorCode::invalid,
                fmt::format("job {} has a NUL byte in a command, path or environment variable; no "
                            "process can be given that",
                            spec.job.value));
  }
  if (out.bytes_.size() > kLaunchSizeMax) {
    return fail(ErrorCode::invalid,
                fmt::format("commands and environment of job {} take {} bytes; at most {} work",
                            spec.job.value, out.bytes_.size(), kLaunchSizeMax));
  }
  const auto size = static_cast<std::uint32_t>(out.bytes_.size());
  std::memcpy(out.bytes_.data() + size_at, &size, sizeof size);
  return std::move(out.bytes_);
}

Result<LaunchSpec> decode_launch_spec(std::string_view bytes) {
  LaunchSpecView view;
  if (!view_launch_spec(bytes, view)) {
    return fail(ErrorCode::corrupt, "not a launch spec of this version");
  }
  LaunchSpec spec;
  spec.attempt = {view.attempt};
  spec.job = {view.job};
  spec.time_limit = Millis(view.time_limit_ms);
  spec.grace = Millis(view.grace_ms);
  spec.log_limit = view.log_limit;
  spec.umask = view.umask;
  spec.nice = view.nice;
  spec.log_named_by_user = view.user_log();
  spec.linger = view.linger();
  spec.cwd = view.cwd;
  spec.log = view.log;
  spec.cgroup_parent = view.cgroup_parent;
  spec.daemon_lock = view.daemon_lock;
  SpecReader commands(view.commands);
  for (std::uint32_t i = 0; i < view.command_count; ++i) {
    Command& command = spec.commands.emplace_back();
    command.shell = commands.number<std::uint32_t>() != 0;
    for (auto left = commands.number<std::uint32_t>(); left > 0; --left) {
      command.argv.emplace_back(commands.string());
    }
  }
  SpecReader variables(view.variables);
  for (std::uint32_t i = 0; i < view.variable_count; ++i) {
    spec.environment.emplace_back(variables.string());
  }
  spec.warning = {static_cast<std::int32_t>(view.warn_signal), Millis(view.warn_before_ms)};
  SpecReader cpus(view.cpus);
  for (std::uint32_t i = 0; i < view.cpu_count; ++i) {
    spec.cpus.push_back(cpus.number<std::uint32_t>());
  }
  return spec;
}

}  // namespace berth
