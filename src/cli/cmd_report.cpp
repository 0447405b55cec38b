// berth report: a job speaks of itself. It needs no daemon, so that a job never fails for lack of
// one.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "base/fd.hpp"
#include "base/time.hpp"
#include "cli/commands.hpp"

namespace berth::cli {

Outcome run_report(ReportLine line) {
  const char* file = std::getenv("BERTH_REPORT");
  if (file == nullptr || *file == '\0') {
    return fail(ErrorCode::conflict,
                "BERTH_REPORT is not set, so this is not inside a job; berth report is for a job's "
                "own commands, as in: berth add 'python train.py && berth report --state "
                "normal_exit'");
  }
  line.wall = read_clock().wall;
  const std::string text = encode_report(line);
  const Fd out(::open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  // In one piece: several processes of a job may report at once.
  if (!out || ::write(out.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return fail(ErrorCode::io, fmt::format("cannot write to '{}': {}", printable(file),
                                           std::generic_category().message(errno)));
  }
  return 0;
}

}  // namespace berth::cli
