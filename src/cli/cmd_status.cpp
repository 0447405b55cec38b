// berth status, berth gpus, berth stop.

#include <poll.h>

#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/describe.hpp"
#include "cli/server.hpp"
#include "cli/start_daemon.hpp"
#include "cli/watch.hpp"

namespace berth::cli {
namespace {

constexpr Millis kStopTimeout{30'000};
constexpr Millis kGpuPatience{3'000};

/// Where it can be reached; of no account where it does not tell.
ListenView listen_of(Daemon& daemon) {
  const auto body = daemon.call("GET", "/api/listen");
  const auto view = body ? decode_listen(*body) : std::unexpected(body.error());
  return view.value_or(ListenView{});
}

}  // namespace

Outcome run_status(const MachineOptions& options) {
  return show_picture(options.watch, "berth status",
                      [&](Daemon& daemon, const Screen& screen) -> Result<std::string> {
                        // For the look that comes with it: an idle daemon has not looked for a
                        // while. A driver that hangs is not waited for.
                        [[maybe_unused]] const auto looked =
                            daemon.get<std::vector<GpuView>>("/api/gpus", kGpuPatience);
                        TRY_ASSIGN(const auto status, daemon.get<StatusView>("/api/status"));
                        if (options.json) {
                          return encode(status) + "\n";
                        }
                        return status_text(status, screen, listen_of(daemon));
                      });
}

Outcome run_gpus(const MachineOptions& options) {
  return show_picture(
      options.watch, "berth gpus",
      [&](Daemon& daemon, const Screen& screen) -> Result<std::string> {
        TRY_ASSIGN(const auto gpus, daemon.get<std::vector<GpuView>>("/api/gpus"));
        if (options.json) {
          return encode_array(gpus);
        }
        if (!gpus.empty()) {
          return gpu_table(gpus, screen);
        }
        TRY_ASSIGN(const StatusView status, daemon.get<StatusView>("/api/status"));
        const std::string error = printable(status.probe.error);
        std::string text = "no GPUs found" + (error.empty() ? "" : ": " + error) +
                           "; berth doctor tells more; simulated ones: BERTH_GPUS=sim:2x24GiB when "
                           "the daemon starts";
        if (options.watch) {
          return text + "\n";
        }
        warn(text);
        return std::string();
      });
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
  if (chosen_server()) {
    print(
        "the daemon has been told to stop; running jobs go on, and a berth command there starts "
        "it again\n");
    return 0;
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
