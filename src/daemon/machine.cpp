#include "daemon/machine.hpp"

#include <pwd.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace berth {
namespace {

std::string first_line(const char* path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

std::string this_boot() {
  // A test may stand in for a reboot.
  if (const char* given = std::getenv("BERTH_TEST_BOOT_ID")) {
    return given;
  }
  return first_line("/proc/sys/kernel/random/boot_id");
}

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string home_directory() {
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') {
    return home;
  }
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr && entry->pw_dir != nullptr ? entry->pw_dir : "/";
}

std::string user_name() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry != nullptr ? entry->pw_name : fmt::format("uid {}", ::geteuid());
}

HostCapacity host_capacity() {
  HostCapacity host;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (::sched_getaffinity(0, sizeof cpus, &cpus) == 0) {
    host.cpus = static_cast<std::uint32_t>(CPU_COUNT(&cpus));
  }
  struct sysinfo info{};
  if (::sysinfo(&info) == 0) {
    host.memory = Bytes{info.totalram} * info.mem_unit;
  }
  host.uid = ::geteuid();
  return host;
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

std::string program_directory() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string(".") : path.parent_path().string();
}

}  // namespace berth
