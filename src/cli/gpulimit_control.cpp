// gpulimit add, set, start and mv.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "cli/control.hpp"
#include "cli/describe.hpp"
#include "cli/gpulimit.hpp"
#include "cli/no_gpu.hpp"
#include "cli/submitter.hpp"

namespace berth::cli::gpulimit {
namespace {

/// What a task that was started by hand claims of a card: it takes its chance with the rest.
constexpr Bytes kForcedClaim = 64 * kMiB;

Result<std::string> log_path(const std::string& given, const std::string& here) {
  if (given.empty()) {
    return std::string();
  }
  const std::string path = make_absolute(given, here);
  const bool directory = given.ends_with('/');
  const auto parent = directory ? std::filesystem::path(path) : std::filesystem::path();
  std::error_code error;
  if (!parent.empty() && !std::filesystem::is_directory(parent, error) &&
      !std::filesystem::create_directories(parent, error)) {
    return fail(ErrorCode::io, fmt::format("--logpath: cannot make the directory '{}': {}",
                                           printable(path), error.message()));
  }
  return log_in(directory && !path.ends_with('/') ? path + "/" : path);
}

Selection one(std::uint64_t id) {
  Selection jobs;
  jobs.ids.add(id);
  return jobs;
}

Result<ControlAnswer> control(Daemon& daemon, const std::string& target, Selection jobs) {
  ControlRequest request;
  request.jobs = std::move(jobs);
  TRY_ASSIGN(const std::string body, daemon.call("POST", target, encode(request), kControlTimeout));
  return decode<ControlAnswer>(body);
}

Status refused(const ControlAnswer& answer) {
  if (answer.refused.empty()) {
    return {};
  }
  return fail(ErrorCode::conflict, fmt::format("task {}: {}", id_list(answer.refused[0].ids),
                                               printable(answer.refused[0].why)));
}

Result<ControlAnswer> change(Daemon& daemon, Selection jobs, event::JobPatch patch) {
  SetJobsRequest request;
  request.jobs = std::move(jobs);
  request.patch = std::move(patch);
  TRY_ASSIGN(const std::string body,
             daemon.call("POST", "/api/jobs/set", encode(request), kControlTimeout));
  return decode<ControlAnswer>(body);
}

/// Waiting tasks ask for what the parameter says now. Those that have been given more because they
/// ran out of it, or were started by hand, keep what they have.
Status claim_anew(Daemon& daemon, const RulesView& rules) {
  TRY_ASSIGN(const auto bytes, claim(daemon, rules));
  TRY_ASSIGN(const auto waiting, tasks(daemon, {JobState::queued}));
  Selection jobs;
  for (const JobView& job : waiting) {
    if (job.gpu_memory && job.attempts == 0 && !job.expedited) {
      jobs.ids.add(job.id);
    }
  }
  if (!bytes || jobs.ids.empty()) {
    return {};
  }
  event::JobPatch patch;
  patch.gpu_memory.emplace(*bytes);
  TRY(change(daemon, std::move(jobs), std::move(patch)));
  return {};
}

/// It starts now, on the card with the most free memory, whatever the parameters say. One that has
/// begun meanwhile needs no help.
Status force(Daemon& daemon, const JobView& job) {
  event::JobPatch patch;
  if (job.gpus.max > 0) {
    patch.gpu_memory.emplace(kForcedClaim);
  }
  patch.rules = {{"keep_gpu_memory", "100"}, {"keep_host_memory", "0"}};
  TRY_ASSIGN(const ControlAnswer changed, change(daemon, one(job.id), std::move(patch)));
  if (changed.changed.empty()) {
    return {};
  }
  TRY_ASSIGN(const ControlAnswer answer, control(daemon, "/api/jobs/start", one(job.id)));
  if (answer.refused.empty()) {
    return {};
  }
  TRY_ASSIGN(const JobDetail now, task(daemon, job.id));
  return status_of(now.job) == TaskStatus::waiting ? refused(answer) : Status{};
}

/// It has ended, and waits again under its id.
Status revive(Daemon& daemon, std::uint64_t id) {
  RetryRequest request;
  request.ids.add(id);
  request.succeeded = true;
  TRY_ASSIGN(const std::string body,
             daemon.call("POST", "/api/jobs/retry", encode(request), kControlTimeout));
  TRY_ASSIGN(const ControlAnswer answer, decode<ControlAnswer>(body));
  return refused(answer);
}

Outcome start_all(Daemon& daemon) {
  TRY_ASSIGN(const auto waiting, tasks(daemon, {JobState::queued}));
  Selection jobs;
  for (const JobView& job : waiting) {
    jobs.ids.add(job.id);
  }
  if (jobs.ids.empty()) {
    print("no task is waiting\n");
    return 0;
  }
  TRY_ASSIGN(const ControlAnswer answer, control(daemon, "/api/jobs/start", jobs));
  TRY(refused(answer));
  print(fmt::format("start as soon as cards have room: {}\n", jobs.ids.to_string()));
  return 0;
}

}  // namespace

Outcome run_add(const Words& words) {
  TRY_ASSIGN(AddRequest request, parse_add(words));
  if (request.help) {
    print(help_text(*find_command("add")));
    return 0;
  }
  if (request.command.empty()) {
    return fail(ErrorCode::invalid, "no command given; for example: gpulimit add python3 main.py");
  }
  JobSpec job;
  job.queue = kQueue;
  job.priority = request.priority;
  TRY_ASSIGN(Command command, make_command(std::move(request.command)));
  job.payload.commands = {std::move(command)};
  TRY_ASSIGN(job.payload.cwd, current_directory());
  TRY_ASSIGN(job.payload.log, log_path(request.logpath, job.payload.cwd));
  job.payload.grace = kGrace;

  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const RulesView rules, queue_rules(daemon));
  TRY_ASSIGN(const bool without, no_gpu_anywhere(daemon));
  if (without) {
    job.request.gpus = {0, 0};
  } else {
    TRY_ASSIGN(job.request.gpu_memory, claim(daemon, rules));
  }
  event::Submit submit;
  submit.jobs.push_back(std::move(job));
  TRY(complete_submission(submit, daemon.paths().dir));
  TRY_ASSIGN(const SubmitAnswer answer, daemon.submit(submit));
  print(fmt::format("{}\n", answer.first));
  return 0;
}

Outcome run_set(const Words& given) {
  Words words = given;
  const bool json = take_flag(words, "--json");
  // A value may begin with a minus: MAX_RUNNING_TASKS -1.
  TRY(expect_words(Words(words.begin(), words.begin() + (words.empty() ? 0 : 1)), 0, 1,
                   "set [name] [value]"));
  if (words.size() > 2) {
    return fail(ErrorCode::invalid, "usage: gpulimit set [name] [value]");
  }
  const ParameterDef* only = nullptr;
  std::optional<Setting> setting;
  if (!words.empty()) {
    TRY_ASSIGN(only, find_parameter(words[0]));
  }
  if (words.size() == 2) {
    TRY_ASSIGN(setting, setting_of(*only, words[1], host_memory().total));
  }
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(RulesView rules, queue_rules(daemon));
  if (setting) {
    TRY(apply(daemon, *setting));
    TRY_ASSIGN(rules, queue_rules(daemon));
    if (only->which == Parameter::safety_keep_gpu_memory) {
      TRY(claim_anew(daemon, rules));
    }
  }
  std::vector<ParameterValue> all = values(rules);
  std::erase_if(
      all, [&](const ParameterValue& value) { return only != nullptr && value.parameter != only; });
  if (json) {
    print(parameters_json(all));
  } else if (only != nullptr) {
    print(fmt::format("{} = {}\n", only->name, printable(all[0].value)));
  } else {
    print(parameters_text(all, look_at_stdout()));
  }
  return 0;
}

Outcome run_start(const Words& words) {
  TRY(expect_words(words, 0, 1, "start [id]"));
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  if (words.empty()) {
    return start_all(daemon);
  }
  TRY_ASSIGN(const std::uint64_t id, parse_task(words[0]));
  TRY_ASSIGN(const JobDetail detail, task(daemon, id));
  switch (status_of(detail.job)) {
    case TaskStatus::running:
      print(fmt::format("task {} runs already\n", id));
      return 0;
    case TaskStatus::paused: {
      TRY_ASSIGN(const ControlAnswer answer, control(daemon, "/api/jobs/resume", one(id)));
      TRY(refused(answer));
      print(fmt::format("task {} goes on\n", id));
      return 0;
    }
    case TaskStatus::waiting:
      break;
    default: {
      TRY(revive(daemon, id));
      break;
    }
  }
  TRY(force(daemon, detail.job));
  print(fmt::format("task {} starts\n", id));
  return 0;
}

Outcome run_mv(const Words& words) {
  TRY(expect_words(words, 1, 2, "mv [id] [index]"));
  TRY_ASSIGN(const std::uint64_t id, parse_task(words[0]));
  std::size_t index = 0;
  if (words.size() == 2) {
    const char* end = words[1].data() + words[1].size();
    const auto [at, error] = std::from_chars(words[1].data(), end, index);
    if (error != std::errc() || at != end) {
      return fail(ErrorCode::invalid, fmt::format("'{}' is no place in the queue; 0 is the first",
                                                  printable(words[1])));
    }
  }
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const JobDetail detail, task(daemon, id));
  if (status_of(detail.job) != TaskStatus::waiting) {
    return fail(ErrorCode::conflict, fmt::format("task {} is {}; only waiting tasks can be moved",
                                                 id, to_string(status_of(detail.job))));
  }
  TRY_ASSIGN(auto others, tasks(daemon, {JobState::queued}));
  std::erase_if(others, [&](const JobView& job) { return job.id == id || job.expedited; });
  TRY_ASSIGN(others, in_order(daemon, std::move(others)));
  MoveRequest request;
  request.jobs = one(id);
  request.to = index < others.size() ? event::Move::To::before : event::Move::To::last;
  request.before = index < others.size() ? others[index].id : 0;
  TRY_ASSIGN(const std::string body,
             daemon.call("POST", "/api/jobs/move", encode(request), kControlTimeout));
  TRY_ASSIGN(const ControlAnswer answer, decode<ControlAnswer>(body));
  TRY(refused(answer));
  print(fmt::format("moved: {} to {}\n", id, std::min(index, others.size())));
  return 0;
}

}  // namespace berth::cli::gpulimit
