// berth pause, resume, start and move.

#include <fmt/format.h>

#include "api/control.hpp"
#include "cli/commands.hpp"
#include "cli/control.hpp"
#include "cli/daemon.hpp"
#include "cli/describe.hpp"

namespace berth::cli {
namespace {

Outcome control(const ControlOptions& options, const std::string& target,
                const std::string& unchanged) {
  ControlRequest request;
  request.queue = options.queue;
  request.jobs = selection(options.ids);
  request.jobs.all = request.jobs.all && options.queue.empty();
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const std::string body, daemon.call("POST", target, encode(request), kControlTimeout));
  return report_control(body, unchanged, options.json);
}

}  // namespace

Selection selection(const std::optional<IdSet>& ids) {
  Selection jobs;
  jobs.all = !ids;
  jobs.ids = ids.value_or(IdSet());
  return jobs;
}

Outcome report_control(const std::string& body, const std::string& unchanged, bool json) {
  TRY_ASSIGN(const ControlAnswer answer, decode<ControlAnswer>(body));
  bool any = !answer.queue.empty();
  if (json) {
    print(encode(answer) + "\n");
  } else {
    const auto line = [&any](const std::string& what, const std::vector<std::uint64_t>& ids) {
      if (!ids.empty()) {
        any = true;
        print(fmt::format("{}: {}\n", what, id_list(ids)));
      }
    };
    line("paused", answer.paused);
    line("held", answer.held);
    line("resumed", answer.resumed);
    line("released", answer.released);
    line("moved", answer.moved);
    line("start next", answer.expedited);
    line("changed", answer.changed);
    line(unchanged, answer.unchanged);
    line("had already ended", answer.finished);
    for (const ControlAnswer::Refused& refused : answer.refused) {
      any = true;
      warn(fmt::format("job{} {}: {}", refused.ids.size() == 1 ? "" : "s", id_list(refused.ids),
                       printable(refused.why)));
    }
    if (!any && answer.unknown.empty()) {
      print("there are no jobs that have not ended\n");
    }
  }
  if (!answer.unknown.empty()) {
    return fail(ErrorCode::not_found,
                fmt::format("there {} {}; berth ls --all lists them",
                            answer.unknown.size() == 1 ? "is no job" : "are no jobs",
                            id_list(answer.unknown)));
  }
  return answer.refused.empty() ? 0 : 1;
}

Outcome run_pause(const ControlOptions& options) {
  TRY_ASSIGN(const int code, control(options, "/api/jobs/pause", "paused already"));
  if (!options.queue.empty() && !options.json) {
    print(fmt::format("queue '{}' is paused; what runs goes on\n", printable(options.queue)));
  }
  return code;
}

Outcome run_resume(const ControlOptions& options) {
  TRY_ASSIGN(const int code, control(options, "/api/jobs/resume", "not paused"));
  if (!options.queue.empty() && !options.json) {
    print(fmt::format("queue '{}' starts jobs again\n", printable(options.queue)));
  }
  return code;
}

Outcome run_start(const ControlOptions& options) {
  return control(options, "/api/jobs/start", "start next already");
}

Outcome run_move(const MoveOptions& options) {
  MoveRequest request;
  request.jobs = selection(options.ids);
  request.to = options.to;
  request.before = options.before;
  request.queue = options.queue;
  request.priority = options.priority;
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const std::string body,
             daemon.call("POST", "/api/jobs/move", encode(request), kControlTimeout));
  return report_control(body, "stand there already", options.json);
}

}  // namespace berth::cli
