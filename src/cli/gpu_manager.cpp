// What gpu_resource_manager does: it watches, starts programs and ends them.

#include "cli/gpu_manager.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "cli/daemon.hpp"
#include "cli/describe.hpp"
#include "cli/first_look.hpp"
#include "cli/job_files.hpp"
#include "cli/submitter.hpp"
#include "cli/watch.hpp"
#include "dialects/manager_task.hpp"
#include "submit/job_source.hpp"

namespace berth::cli::gpu_manager {
namespace {

constexpr int kWrongUsage = 2;
constexpr Millis kUsualInterval{5'000};
constexpr Millis kReleasePatience{120'000};
/// So many jobs that have ended are looked through for a task.
constexpr std::size_t kLookBack = 10'000;

const std::vector<JobState> kLive{JobState::queued, JobState::running, JobState::paused};

Result<std::vector<JobView>> live_jobs(Daemon& daemon) {
  JobQuery query;
  query.states = kLive;
  return daemon.jobs(query);
}

Result<std::string> status_of(Daemon& daemon) {
  TRY_ASSIGN(StatusView status, status_with_gpus(daemon));
  // A look of now: where nothing waits the daemon seldom takes one by itself.
  TRY_ASSIGN(status.gpus, daemon.get<std::vector<GpuView>>("/api/gpus"));
  TRY_ASSIGN(const auto jobs, live_jobs(daemon));
  return status_text(status, jobs);
}

/// `monitor_interval` of the configuration, where there is one that can be read.
Millis interval_of(const std::string& config) {
  const auto text = read_whole_file(config, "configuration");
  if (!text) {
    return kUsualInterval;
  }
  Source source;
  source.text = *text;
  source.file_name = config;
  source.base_dir = "/";
  DialectOptions reading;
  reading.dialect = Dialect::gpu_manager;
  const Parsed file = parse_file(source, reading);
  const auto rule = file ? file->rules.find("sample_age_max") : Overrides::const_iterator();
  if (!file || rule == file->rules.end()) {
    return kUsualInterval;
  }
  return parse_duration(rule->second).value_or(kUsualInterval);
}

bool in_foreground() {
  return look_at_stdout().terminal && ::tcgetpgrp(STDOUT_FILENO) == ::getpgrp();
}

Outcome monitor(const std::string& program, const Request& request) {
  if (in_foreground()) {
    const Millis every = std::max(interval_of(request.config), Millis(100));
    return watch(every, program, [](Daemon& daemon, const Screen&) { return status_of(daemon); });
  }
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const std::string text, status_of(daemon));
  print(text);
  print("\nberthd watches the GPUs and starts what waits; nothing has to keep running here\n");
  return 0;
}

Outcome show_status() {
  return show_picture({}, "", [](Daemon& daemon, const Screen&) { return status_of(daemon); });
}

Outcome start_program(const std::string& program, const Request& request) {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(const auto jobs, live_jobs(daemon));
  for (const JobView& job : jobs) {
    if (task_of(job) == request.task) {
      return fail(ErrorCode::conflict,
                  fmt::format("task '{0}' is there already, {1} as job {2}; `{3} --release {0}` "
                              "ends it, another name starts another",
                              printable(request.task), to_string(job.state), job.id, program));
    }
  }
  const ManagerTask task{request.task, request.gpus, gpus_of_tasks(jobs)};
  TRY_ASSIGN(std::vector<LoadedFile> files,
             load_job_files({request.config}, {}, "; nothing was started",
                            [&](const Source& source, const DialectOptions&) {
                              return parse_manager_task(source, task);
                            }));
  files.at(0).file.jobs.at(0).payload.params["task"] = request.task;
  SubmitOptions options;
  options.detach = true;
  return submit_and_watch(std::move(files), options);
}

/// Waits until the job has ended, and its processes with it.
Status await_end(Daemon& daemon, std::uint64_t job) {
  IdSet ids;
  ids.add(job);
  TRY_ASSIGN(const WaitAnswer answer,
             daemon.get<WaitAnswer>(wait_query_target({ids, kLongPollMax}), kReleasePatience));
  if (!answer.done) {
    return fail(
        ErrorCode::unavailable,
        fmt::format("job {0} has been told to end and has not yet; see berth show {0}", job));
  }
  return {};
}

Outcome end_task(Daemon& daemon, const JobView& job, const std::string& task) {
  KillRequest kill;
  kill.ids = {job.id};
  TRY(daemon.call("POST", "/api/jobs/kill", encode_kill(kill)));
  TRY(await_end(daemon, job.id));
  const bool several = job.gpu_indices.size() > 1;
  const std::string gpus = job.state == JobState::queued ? "" : gpu_list(job.gpu_indices);
  print(fmt::format("released {}: job {} has ended{}\n", printable(task), job.id,
                    gpus.empty() ? ""
                                 : fmt::format(", GPU{} {} {} free", several ? "s" : "", gpus,
                                               several ? "are" : "is")));
  return 0;
}

Outcome release(const std::string& program, const Request& request) {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  const auto is_it = [&](const JobView& job) { return task_of(job) == request.task; };
  TRY_ASSIGN(const auto live, live_jobs(daemon));
  if (const auto job = std::ranges::find_if(live, is_it); job != live.end()) {
    return end_task(daemon, *job, request.task);
  }
  JobQuery query;
  query.descending = true;
  TRY_ASSIGN(const auto all, daemon.jobs(query, kLookBack));
  if (const auto job = std::ranges::find_if(all, is_it); job != all.end()) {
    print(fmt::format("task {} has ended ({}), and its GPUs were free from then on\n",
                      printable(request.task), to_string(job->state)));
    return 0;
  }
  return fail(ErrorCode::not_found, fmt::format("there is no task '{}'; `{} --status` lists them",
                                                printable(request.task), program));
}

Outcome perform(const std::string& program, const Request& request) {
  if (request.config_named && (request.deed == Deed::monitor || request.deed == Deed::status)) {
    TRY(read_whole_file(request.config, "configuration"));
  }
  switch (request.deed) {
    case Deed::monitor:
      return monitor(program, request);
    case Deed::status:
      return show_status();
    case Deed::start_program:
      return start_program(program, request);
    case Deed::release:
      return release(program, request);
    case Deed::help:
      print(help_text(program));
      return 0;
    case Deed::version:
      break;
  }
  print(fmt::format("{}, by berth " BERTH_VERSION "\n", program));
  return 0;
}

/// In the name of the program that was called; `hint` follows wrong usage.
int report(const std::string& program, const Error& error, const std::string& hint) {
  std::fflush(stdout);
  const bool usage = error.code == ErrorCode::invalid;
  fmt::print(stderr, "{}: {}{}\n", program, error.message, usage ? hint : "");
  return usage ? kWrongUsage : 1;
}

}  // namespace

int run(const std::string& program, const Words& words) {
  display() = {};
  const Result<Request> request = parse_words(words);
  if (!request) {
    return report(program, request.error(), fmt::format("\ntry: {} --help", program));
  }
  const Outcome outcome = perform(program, *request);
  if (!outcome) {
    return report(program, outcome.error(), "");
  }
  return std::fflush(stdout) != 0 || std::ferror(stdout) != 0 ? 1 : *outcome;
}

}  // namespace berth::cli::gpu_manager
