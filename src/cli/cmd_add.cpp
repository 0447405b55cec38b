// berth add: one command becomes one job.

#include <unistd.h>

#include <fmt/format.h>

#include "api/text.hpp"
#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/no_gpu.hpp"
#include "cli/server.hpp"
#include "cli/submitter.hpp"

namespace berth::cli {

Result<bool> no_gpu_anywhere(Daemon& daemon) {
  if (!chosen_server() &&
      (::access("/dev/nvidiactl", F_OK) == 0 || ::access("/dev/dxg", F_OK) == 0)) {
    return false;
  }
  TRY_ASSIGN(const auto gpus, daemon.get<std::vector<GpuView>>("/api/gpus"));
  if (!gpus.empty()) {
    return false;
  }
  TRY_ASSIGN(const auto status, daemon.get<StatusView>("/api/status"));
  return status.probe.error.empty();
}

Status complete_job(AddOptions& options) {
  TRY_ASSIGN(Command command, make_command(std::move(options.command)));
  JobSpec& job = options.job;
  if (!is_utf8(job.name) || !is_utf8(job.queue)) {
    return fail(ErrorCode::invalid, "--name and --queue must be valid UTF-8");
  }
  job.payload.commands = {std::move(command)};
  if (chooses_own_gpus(job)) {
    warn(fmt::format(
        "warning: {} sets CUDA_VISIBLE_DEVICES itself, so it may use other GPUs than "
        "those it is given; leave it out, or add --gpus 0",
        job.name.empty() ? "the command" : fmt::format("job '{}'", printable(job.name))));
  }
  // Where we are matters only to paths that depend on it; it may have been removed.
  std::string here;
  if (!options.cwd.starts_with('/') || !(options.log.empty() || options.log.starts_with('/'))) {
    TRY_ASSIGN(here, current_directory());
  }
  job.payload.cwd = options.cwd.empty() ? here : make_absolute(options.cwd, here);
  if (!options.log.empty()) {
    job.payload.log = make_absolute(options.log, here);
  }
  return {};
}

Status choose_gpus(AddOptions& options, Daemon& daemon) {
  if (!options.gpus_given && !options.job.request.gpu_memory) {
    TRY_ASSIGN(const bool none, no_gpu_anywhere(daemon));
    if (none) {
      options.job.request.gpus = {0, 0};
      warn("note: there is no GPU here, so the job runs without one; --gpus 1 would wait for one");
    }
  }
  return {};
}

Outcome run_add(AddOptions options) {
  TRY(complete_job(options));
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY(choose_gpus(options, daemon));
  event::Submit submit;
  submit.jobs.push_back(std::move(options.job));
  TRY(complete_submission(submit, daemon.paths().dir));
  TRY_ASSIGN(auto snapshot, snapshot_jobs(submit, options.snapshot, daemon));
  TRY_ASSIGN(const SubmitAnswer answer, submit_with(daemon, submit, snapshot));
  print(options.json ? encode(answer) + "\n" : fmt::format("{}\n", answer.first));
  return 0;
}

}  // namespace berth::cli
