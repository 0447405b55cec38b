#pragma once
// Where payloads may get a cgroup of their own.

#include <optional>
#include <string>
#include <string_view>

namespace berth {

/// A cgroup v2 directory, made when missing, under which supervisors may make one cgroup per
/// attempt. None where the system does not let us, as in an ordinary login session; that is normal
/// and nothing depends on it.
[[nodiscard]] std::optional<std::string> find_cgroup_parent(std::string_view instance);

/// The cgroup v2 mount point named in the text of /proc/self/mountinfo.
[[nodiscard]] std::optional<std::string> cgroup2_mount(std::string_view mountinfo);

/// The path after "0::" in the text of /proc/self/cgroup.
[[nodiscard]] std::optional<std::string> cgroup2_path(std::string_view self_cgroup);

}  // namespace berth
