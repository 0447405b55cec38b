#include "proc/cgroup.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.hpp"
#include "proc/procfs.hpp"

namespace berth {
namespace {

void try_write(const std::string& path, std::string_view text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (fd && ::write(fd.get(), text.data(), text.size()) < 0) {
    // Wanted, not needed: without the controller the peak of memory stays unknown.
  }
}

template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    visit(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

}  // namespace

std::optional<std::string> cgroup2_mount(std::string_view mountinfo) {
  std::optional<std::string> found;
  for_each_line(mountinfo, [&found](std::string_view line) {
    const auto dash = line.find(" - cgroup2 ");
    if (dash == std::string_view::npos || found) {
      return;
    }
    // id, parent, device, root, mount point: the fifth field.
    for (int field = 0; field < 4; ++field) {
      line.remove_prefix(std::min(line.find(' ') + 1, line.size()));
    }
    found = std::string(line.substr(0, line.find(' ')));
  });
  return found;
}

std::optional<std::string> cgroup2_path(std::string_view self_cgroup) {
  std::optional<std::string> found;
  for_each_line(self_cgroup, [&found](std::string_view line) {
    if (line.starts_with("0::/")) {
      found = std::string(line.substr(3));
    }
  });
  return found;
}

std::optional<std::string> find_cgroup_parent(std::string_view instance) {
  const auto mount = cgroup2_mount(read_small_file("/proc/self/mountinfo"));
  const auto own = cgroup2_path(read_small_file("/proc/self/cgroup"));
  if (!mount || !own) {
    return std::nullopt;
  }
  const std::string base = *own == "/" ? *mount : *mount + *own;
  // A process is moved only by who may write the procs file of the common ancestor.
  if (::access((base + "/cgroup.procs").c_str(), W_OK) != 0) {
    return std::nullopt;
  }
  std::string parent = base + "/berth-" + std::string(instance);
  if (::mkdir(parent.c_str(), 0755) != 0 && errno != EEXIST) {
    return std::nullopt;
  }
  if (::access((parent + "/cgroup.procs").c_str(), W_OK) != 0 ||
      ::access((parent + "/cgroup.kill").c_str(), W_OK) != 0) {
    ::rmdir(parent.c_str());
    return std::nullopt;
  }
  try_write(base + "/cgroup.subtree_control", "+memory");
  try_write(parent + "/cgroup.subtree_control", "+memory");
  return parent;
}

}  // namespace berth
