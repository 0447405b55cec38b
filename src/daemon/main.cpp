// berthd: the place where everything is wired together.

#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>

#include "api/routes.hpp"
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

void tell_why_not(const berth::Error& error) {
  if (::isatty(STDERR_FILENO) != 0) {
    std::fprintf(stderr, "berthd: %s\n", error.message.c_str());
  } else {
    // That another one has the directory is ordinary: two commands wanted a daemon at once.
    const bool other = error.code == berth::ErrorCode::conflict;
    spdlog::log(other ? spdlog::level::warn : spdlog::level::err, "event=not_started why={}",
                berth::log_value(error.message));
  }
  report("error: " + error.message);
}

/// A line for each route, "METHOD PATH SCOPE": for tests that try all of them.
void print_routes() {
  for (const berth::Route& route : berth::kRoutes) {
    const char* scope = route.scope == berth::Scope::open   ? "open"
                        : route.scope == berth::Scope::read ? "read"
                                                            : "full";
    std::printf("%.*s %.*s %s\n", static_cast<int>(route.method.size()), route.method.data(),
                static_cast<int>(route.path.size()), route.path.data(), scope);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const berth::DaemonOptions options = berth::parse_options(argc, argv);
  if (options.probe) {
    return berth::probe_main(argc, argv);
  }
  if (options.routes) {
    print_routes();
    return 0;
  }
  berth::arm_failpoints();
  if (!options.restore.empty()) {
    return berth::restore_main(options);
  }
  berth::RestoreView restored;
  while (true) {
    auto daemon = berth::Daemon::open(options, std::move(restored));
    if (!daemon) {
      tell_why_not(daemon.error());
      return 1;
    }
    report("ready");
    const int code = (*daemon)->run();
    const auto backup = (*daemon)->to_restore();
    if (!backup) {
      return code;
    }
    daemon->reset();
    restored = berth::restore_as_asked(options, *backup);
    spdlog::info("event=restored from={} error={}", berth::log_value(restored.path),
                 berth::log_value(restored.error));
  }
}
