// berth pause, resume, start, retry and move.

#include <fmt/format.h>

#include <algorithm>

#include "api/control.hpp"
#include "cli/commands.hpp"
#include "cli/control.hpp"
#include "cli/daemon.hpp"
#include "cli/describe.hpp"
#include "core/reason.hpp"

namespace berth::cli {
namespace {

Outcome control(const ControlOptions& options, const std::string& target,
                const std::string& unchanged) {
  ControlRequest request;
  request.jobs = selection(options.ids);
  request.instance = options.instance;
  request.jobs.all = request.jobs.all && !options.instance;
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const std::string body, daemon.call("POST", target, encode(request), kControlTimeout));
  return report_control(body, unchanged, options.json);
}

/// One after the other, each told as it is done, should the next be wrong. `tell` says what was.
template <class Make, class Tell>
Outcome control_each(const std::vector<std::string>& names, const std::string& target, bool json,
                     const Make& make, const Tell& tell) {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  std::string answers;
  for (const std::string& name : names) {
    const auto say = tell(name);
    TRY_ASSIGN(const std::string body,
               daemon.call("POST", target, encode(make(name)), kControlTimeout));
    answers += (answers.empty() ? "" : ",") + body;
    if (!json) {
      print(say() + "\n");
    }
  }
  if (json) {
    print((names.size() == 1 ? answers : "[" + answers + "]") + "\n");
  }
  return 0;
}

ControlRequest of_queue(const std::string& name) {
  ControlRequest request;
  request.queue = name;
  return request;
}

/// Going first does not help where jobs it follows, or memory, are what is missing.
Status tell_who_still_waits(const IdSet& ids) {
  constexpr std::size_t kTold = 10;
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  JobQuery query;
  query.states = {JobState::queued};
  query.ids = in_parts(ids).front();
  TRY_ASSIGN(const auto jobs, daemon.jobs(query, kTold));
  for (const JobView& job : jobs) {
    if (job.why && job.why->kind == to_string(Reason::Kind::due)) {
      continue;  // any moment now
    }
    print(fmt::format("job {} still waits: {}\n", job.id, printable(job.reason)));
  }
  return {};
}

Result<std::vector<GpuView>> look_at_all() {
  constexpr Millis kGpuPatience{5'000};
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  return daemon.get<std::vector<GpuView>>("/api/gpus", kGpuPatience);
}

/// Of several, either all are there or nothing is done; of one, the daemon knows best.
Status check_cards(const std::vector<std::string>& cards) {
  const auto gpus = cards.size() > 1 ? look_at_all() : Result<std::vector<GpuView>>();
  if (!gpus || gpus->empty()) {
    return {};
  }
  for (const std::string& card : cards) {
    if (std::ranges::none_of(*gpus, [&card](const GpuView& gpu) {
          return gpu.uuid == card || fmt::format("{}", gpu.index) == card;
        })) {
      return fail(ErrorCode::not_found,
                  fmt::format("there is no GPU '{}'; `berth gpus` lists them", printable(card)));
    }
  }
  return {};
}

/// The card as it is now, by index or UUID; nullopt: that is not known.
std::optional<GpuView> look_at(const std::string& card) {
  auto gpus = look_at_all();
  if (!gpus) {
    return std::nullopt;
  }
  const auto found = std::ranges::find_if(*gpus, [&](const GpuView& gpu) {
    return gpu.uuid == card || fmt::format("{}", gpu.index) == card;
  });
  return found == gpus->end() ? std::nullopt : std::optional(std::move(*found));
}

/// What giving a card back has changed.
std::string given_back(const std::string& card, const std::optional<GpuView>& before) {
  const std::string name = "GPU " + printable(card);
  if (before && before->trouble.empty()) {
    return name + " was not out of use";
  }
  const auto now = look_at(card);
  if (!now) {
    return name + " is no longer kept out of use";
  }
  return now->trouble.empty()
             ? name + " is in use again"
             : fmt::format("nothing starts on {} yet: {}", name, printable(now->trouble));
}

}  // namespace

Selection selection(const std::optional<IdSet>& ids) {
  Selection jobs;
  jobs.all = !ids;
  jobs.ids = ids.value_or(IdSet());
  return jobs;
}

Outcome report_control(const std::string& body, const std::string& unchanged, bool json,
                       const std::string& none) {
  TRY_ASSIGN(const ControlAnswer answer, decode<ControlAnswer>(body));
  bool any = !answer.queue.empty() || !answer.gpu.empty() || answer.instance;
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
    line("wait again", answer.revived);
    line(unchanged, answer.unchanged);
    line("had already ended", answer.finished);
    for (const ControlAnswer::Refused& refused : answer.refused) {
      any = true;
      warn(fmt::format("job{} {}: {}", refused.ids.size() == 1 ? "" : "s", id_list(refused.ids),
                       printable(refused.why)));
    }
    if (!any && answer.unknown.empty()) {
      print(none + "\n");
    }
  }
  if (!answer.unknown.empty()) {
    return fail(ErrorCode::not_found,
                fmt::format("there {} {}; `berth ls --all` lists them",
                            answer.unknown.size() == 1 ? "is no job" : "are no jobs",
                            id_list(answer.unknown)));
  }
  return answer.refused.empty() ? 0 : 1;
}

Outcome run_pause(const ControlOptions& options) {
  constexpr auto kTarget = "/api/jobs/pause";
  if (!options.queues.empty()) {
    return control_each(options.queues, kTarget, options.json, of_queue, [](const auto& name) {
      return [&name] {
        return fmt::format("queue '{}' is paused; what runs goes on", printable(name));
      };
    });
  }
  if (!options.gpus.empty()) {
    TRY(check_cards(options.gpus));
    const auto of_card = [&options](const std::string& card) {
      ControlRequest request;
      request.gpu = card;
      request.why = options.why;
      return request;
    };
    return control_each(options.gpus, kTarget, options.json, of_card, [](const auto& card) {
      return [&card] {
        return fmt::format("nothing more starts on GPU {}; what runs there goes on",
                           printable(card));
      };
    });
  }
  TRY_ASSIGN(const int code, control(options, kTarget, "paused already"));
  if (options.instance && !options.json) {
    print("berth is paused and starts nothing; what runs goes on\n");
  }
  return code;
}

Outcome run_resume(const ControlOptions& options) {
  constexpr auto kTarget = "/api/jobs/resume";
  if (!options.queues.empty()) {
    return control_each(options.queues, kTarget, options.json, of_queue, [](const auto& name) {
      return [&name] { return fmt::format("queue '{}' starts jobs again", printable(name)); };
    });
  }
  if (!options.gpus.empty()) {
    TRY(check_cards(options.gpus));
    const auto of_card = [](const std::string& card) {
      ControlRequest request;
      request.gpu = card;
      return request;
    };
    return control_each(options.gpus, kTarget, options.json, of_card,
                        [json = options.json](const auto& card) {
                          const auto before = json ? std::nullopt : look_at(card);
                          return [&card, before] { return given_back(card, before); };
                        });
  }
  TRY_ASSIGN(const int code, control(options, kTarget, "not paused"));
  if (options.instance && !options.json) {
    print("berth starts jobs again\n");
  }
  return code;
}

Outcome run_start(const ControlOptions& options) {
  TRY_ASSIGN(const int code, control(options, "/api/jobs/start", "start next already"));
  if (!options.json && options.ids) {
    TRY(tell_who_still_waits(*options.ids));
  }
  return code;
}

Outcome run_retry(const RetryOptions& options) {
  RetryRequest request;
  request.ids = options.ids;
  request.batch = options.batch;
  request.succeeded = options.succeeded;
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const std::string body,
             daemon.call("POST", "/api/jobs/retry", encode(request), kControlTimeout));
  return report_control(body, "", options.json,
                        options.ids.empty() ? "no job has failed" : "there are no such jobs");
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
