#include "daemon/spawn.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fmt/format.h>

namespace berth {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& s : strings) {
    result.push_back(const_cast<char*>(s.c_str()));
  }
  result.push_back(nullptr);
  return result;
}

}  // namespace

Result<Child> spawn_with_pipes(int program_fd, const std::vector<std::string>& arguments,
                               const std::vector<std::string>& environment) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (::pipe2(in.data(), O_CLOEXEC) != 0) {
    return fail_errno("cannot make a pipe", errno);
  }
  Child child;
  const Fd child_in(in[0]);
  child.to_child.reset(in[1]);
  if (::pipe2(out.data(), O_CLOEXEC) != 0) {
    return fail_errno("cannot make a pipe", errno);
  }
  child.from_child.reset(out[0]);
  const Fd child_out(out[1]);
  ::fcntl(child.from_child.get(), F_SETFL, O_NONBLOCK);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, child_in.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, child_out.get(), STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  // A terminal's Ctrl-C is not meant for it.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(
      &attributes,
      static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP));
  const std::string path = fmt::format("/proc/self/fd/{}", program_fd);
  const int error = ::posix_spawn(&child.pid, path.c_str(), &actions, &attributes,
                                  pointers(arguments).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return fail_errno("cannot start the GPU probe", error);
  }
  child.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
  return child;
}

Result<Fd> open_own_program() {
  Fd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return fail_errno("cannot open the program itself (/proc/self/exe)", errno);
  }
  return fd;
}

}  // namespace berth
