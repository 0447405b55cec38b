// berth-shim: supervises one attempt and outlives the daemon that started it.
//
// Born with the attempt's record as descriptor 3, its lock held, and the launch spec as 4. It runs
// the command only if the record is empty, and writes START before anything else happens; so an
// attempt runs at most once whatever crashes when.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "proc/launch_spec_view.hpp"
#include "shim/supervisor.hpp"
#include "shim/sys.hpp"
#include "shim/tree.hpp"

namespace berth::shim {
namespace {

enum ExitCode { kDone = 0, kNotStarted = 3, kBroken = 4 };

void stand_alone() {
  ::syscall(SYS_close_range, kLaunchFd + 1, ~0U, 0);
  ::fcntl(kRecordFd, F_SETFD, FD_CLOEXEC);
  ::fcntl(kLaunchFd, F_SETFD, FD_CLOEXEC);
  ::setsid();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (::chdir("/") != 0) {
    // Only that no mount is kept busy.
  }
  // The system call itself: libc refuses the two signals it keeps for its threads, yet a parent may
  // have left them ignored, and the payload would inherit that. All zero is SIG_DFL.
  const unsigned long plain[4] = {};
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    ::syscall(SYS_rt_sigaction, signal, plain, nullptr, sizeof plain[0]);
  }
  // All of them: what we listen to comes through a descriptor, the rest must not end us.
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
}

bool record_is_empty() {
  struct stat status{};
  return ::fstat(kRecordFd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0;
}

bool write_start(RecordWriter& record) {
  ProcStat self;
  if (!read_stat(::getpid(), self)) {
    return false;
  }
  RecordLine line("START");
  line.number("v", kRecordVersion).number("pid", self.pid);
  line.number("start", static_cast<std::int64_t>(self.start_ticks));
  return record.append(line.number("wall", now_ms(CLOCK_REALTIME)));
}

std::string_view map_spec() {
  struct stat status{};
  if (::fstat(kLaunchFd, &status) != 0 || status.st_size <= 0) {
    return {};
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* bytes = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, kLaunchFd, 0);
  ::close(kLaunchFd);
  return bytes == MAP_FAILED ? std::string_view()
                             : std::string_view(static_cast<const char*>(bytes), size);
}

void refuse(RecordWriter& record) {
  RecordLine line("EXIT");
  line.text("why", "cannot_start").text("stage", "spec").number("errno", EINVAL);
  record.append_surely(line.number("wall", now_ms(CLOCK_REALTIME)));
  record.sync();
}

int run(char* const* environment) {
  stand_alone();
  arm_failpoints(environment);
  for (char* const* entry = environment; *entry != nullptr; ++entry) {
    Tree::look_at_all_processes |= std::string_view(*entry) == "BERTH_SHIM_SCAN=all";
  }
  failpoint("shim_before_start");
  RecordWriter record(kRecordFd);
  if (!record_is_empty() || !write_start(record)) {
    return kNotStarted;
  }
  failpoint("shim_after_start");
  const std::string_view bytes = map_spec();
  LaunchSpecView spec;
  if (!view_launch_spec(bytes, spec)) {
    refuse(record);
    return kBroken;
  }
  Supervisor supervisor(spec, bytes, record);
  if (!supervisor.run()) {
    refuse(record);
    return kBroken;
  }
  return kDone;
}

}  // namespace
}  // namespace berth::shim

int main(int /*argc*/, char** /*argv*/, char** environment) {
  return berth::shim::run(environment);
}
