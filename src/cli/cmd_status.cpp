// berth status, berth gpus, berth stop.

#include <poll.h>

#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/describe.hpp"
#include "cli/start_daemon.hpp"

namespace berth::cli {
namespace {

constexpr Millis kStopTimeout{30'000};

}  // namespace

Outcome run_status(bool json) {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const StatusView status, daemon.get<StatusView>("/api/status"));
  print(json ? encode(status) + "\n" : status_text(status, look_at_stdout()));
  return 0;
}

Outcome run_gpus(bool json) {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const auto gpus, daemon.get<std::vector<GpuView>>("/api/gpus"));
  if (json) {
    print(encode_array(gpus));
  } else if (gpus.empty()) {
    TRY_ASSIGN(const StatusView status, daemon.get<StatusView>("/api/status"));
    warn("no GPUs found" +
         (status.probe.error.empty() ? std::string() : ": " + printable(status.probe.error)) +
         "; simulated ones: BERTH_GPUS=sim:2x24GiB when the daemon starts");
  } else {
    print(gpu_table(gpus, look_at_stdout()));
  }
  return 0;
}

Outcome run_stop() {
  auto daemon = Daemon::open(Daemon::Start::never);
  if (!daemon) {
    if (daemon.error().code == ErrorCode::unavailable) {
      print("no daemon is running\n");
      return 0;
    }
    return std::unexpected(std::move(daemon.error()));
  }
  const auto answer = daemon->call("POST", "/api/stop");
  // Repeating a stop finds nobody: then it has happened.
  if (!answer && answer.error().code != ErrorCode::unavailable) {
    return std::unexpected(answer.error());
  }
  // Only without its lock is it out of the way of the next one.
  const Millis deadline = read_clock().mono + kStopTimeout;
  while (lock_is_held(daemon->paths())) {
    if (read_clock().mono > deadline) {
      return fail(ErrorCode::unavailable, "the daemon has been told to stop but is still there");
    }
    ::poll(nullptr, 0, 20);
  }
  print("the daemon has stopped; running jobs go on, and any berth command starts it again\n");
  return 0;
}

}  // namespace berth::cli
