// berthd: the place where everything is wired together.

#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <spdlog/spdlog.h>

#include "base/failpoint.hpp"
#include "daemon/daemon.hpp"
#include "daemon/log.hpp"
#include "daemon/options.hpp"
#include "daemon/restore.hpp"
#include "gpu/probe_wire.hpp"

namespace {

/// Tells whoever started us in the background how it went.
void report(const std::string& line) {
  if (const char* fd = std::getenv("BERTH_READY_FD")) {
    const int number = std::atoi(fd);
    const std::string text = line + "\n";
    [[maybe_unused]] const ssize_t written = ::write(number, text.data(), text.size());
    ::close(number);
    ::unsetenv("BERTH_READY_FD");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const berth::DaemonOptions options = berth::parse_options(argc, argv);
  if (options.probe) {
    return berth::probe_main(argc, argv);
  }
  berth::arm_failpoints();
  if (!options.restore.empty()) {
    return berth::restore_main(options);
  }
  auto daemon = berth::Daemon::open(options);
  if (!daemon) {
    if (::isatty(STDERR_FILENO) != 0) {
      std::fprintf(stderr, "berthd: %s\n", daemon.error().message.c_str());
    } else {
      // That another one has the directory is ordinary: two commands wanted a daemon at once.
      const bool other = daemon.error().code == berth::ErrorCode::conflict;
      spdlog::log(other ? spdlog::level::warn : spdlog::level::err, "event=not_started why={}",
                  berth::log_value(daemon.error().message));
    }
    report("error: " + daemon.error().message);
    return 1;
  }
  report("ready");
  return (*daemon)->run();
}
