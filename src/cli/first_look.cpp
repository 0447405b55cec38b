#include "cli/first_look.hpp"

#include <poll.h>

namespace berth::cli {
namespace {

constexpr int kProbeTries = 20;
constexpr int kProbePollMs = 100;

}  // namespace

Result<StatusView> status_with_gpus(Daemon& daemon) {
  for (int tries = 0;; ++tries) {
    TRY_ASSIGN(StatusView status, daemon.get<StatusView>("/api/status"));
    if (status.probe.age || !status.probe.error.empty() || tries == kProbeTries) {
      return status;
    }
    ::poll(nullptr, 0, kProbePollMs);
  }
}

}  // namespace berth::cli
