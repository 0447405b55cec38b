// berth run: job files, from submission to the last job's end.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "api/control.hpp"
#include "api/remote.hpp"
#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/describe.hpp"
#include "cli/first_look.hpp"
#include "cli/interrupt.hpp"
#include "cli/job_files.hpp"
#include "cli/never_start.hpp"
#include "cli/progress.hpp"
#include "cli/resume.hpp"
#include "cli/server.hpp"
#include "cli/submitter.hpp"
#include "cli/told_files.hpp"
#include "submit/array_jobs.hpp"
#include "submit/submission.hpp"

namespace berth::cli {
namespace {

constexpr Millis kEventWait{300};  ///< also how long an interrupt may go unnoticed
constexpr Millis kReasonAge{2'000};

/// One submission and how far its events have been read.
struct Watched {
  SubmitAnswer answer;
  std::uint64_t seen = 0;
};

/// A batch of which files tell, too.
struct Told {
  std::string state_dir;
  std::uint64_t batch = 0;
};

class Watch {
 public:
  Watch(Daemon& daemon, std::vector<Watched> watched)
      : daemon_(daemon), watched_(std::move(watched)), screen_(look_at_stdout()) {}

  /// Returns when all jobs have ended, or the user does not want to watch any longer.
  Status until_done() {
    for (const Watched& one : watched_) {
      TRY(refresh({{one.answer.first, one.answer.last}}));
    }
    while (!interrupted()) {
      TRY(follow());
      if (progress_.done()) {
        break;
      }
      TRY(refresh_reason());
      draw();
    }
    erase();
    return {};
  }

  [[nodiscard]] const Progress& progress() const { return progress_; }
  [[nodiscard]] const Screen& screen() const { return screen_; }

 private:
  Status refresh(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& ranges) {
    IdSet ids;
    for (const auto& [first, last] : ranges) {
      ids.add(first, last);
    }
    for (IdSet& part : in_parts(ids)) {
      JobQuery query;
      query.ids = std::move(part);
      TRY_ASSIGN(auto jobs, daemon_.jobs(query));
      for (JobView& job : jobs) {
        progress_.update(std::move(job));
      }
    }
    return {};
  }

  /// Reads new events of every submission, waiting a little for the first that is not done.
  Status follow() {
    Millis wait = kEventWait;
    for (Watched& one : watched_) {
      bool more = !finished(one) || one.seen == 0;
      while (more && !interrupted()) {
        EventQuery query;
        query.after = one.seen;
        query.batch = one.answer.batch;
        query.job = one.answer.batch == 0 ? one.answer.first : 0;
        query.wait = std::exchange(wait, Millis(0));
        TRY_ASSIGN(const EventPage page, daemon_.get<EventPage>(event_query_target(query)));
        one.seen = std::max(one.seen, page.last);
        more = page.events.size() >= query.limit;
        TRY(take(page.events));
      }
    }
    return {};
  }

  Status take(const std::vector<EventView>& events) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> changed;
    for (const EventView& event : events) {
      if (progress_.find(event.job) != nullptr) {
        changed.emplace_back(event.job, event.job);
      }
    }
    if (!changed.empty()) {
      TRY(refresh(changed));
    }
    if (!screen_.terminal) {
      for (const EventView& event : events) {
        if (const JobView* job = progress_.find(event.job);
            job != nullptr && event.kind != "submitted") {
          print(event_line(event, *job) + "\n");
        }
      }
      std::fflush(stdout);
    }
    return {};
  }

  /// Reasons change without an event.
  Status refresh_reason() {
    const JobView* waiting = screen_.terminal ? progress_.first_waiting() : nullptr;
    const Millis now = read_clock().mono;
    if (waiting == nullptr || now - reason_read_ < kReasonAge) {
      return {};
    }
    reason_read_ = now;
    return refresh({{waiting->id, waiting->id}});
  }

  [[nodiscard]] bool finished(const Watched& one) const {
    if (progress_.done()) {
      return true;
    }
    for (std::uint64_t id = one.answer.first; id <= one.answer.last; ++id) {
      const JobView* job = progress_.find(id);
      if (job == nullptr || !is_terminal(job->state)) {
        return false;
      }
    }
    return true;
  }

  void draw() {
    if (!screen_.terminal) {
      return;
    }
    screen_ = look_at_stdout();  // the window may have been resized
    const auto lines = progress_.block(screen_, read_clock().wall);
    erase();
    for (const std::string& line : lines) {
      print(line + "\n");
    }
    drawn_ = lines.size();
    std::fflush(stdout);
  }

  void erase() {
    if (drawn_ > 0) {
      print(fmt::format("\x1b[{}F\x1b[J", drawn_));
      drawn_ = 0;
    }
  }

  Daemon& daemon_;
  std::vector<Watched> watched_;
  Progress progress_;
  Screen screen_;
  Millis reason_read_{0};
  std::size_t drawn_ = 0;
};

bool simulated(const StatusView& status) {
  return status.probe.simulated || std::ranges::any_of(status.gpus, [](const GpuView& gpu) {
           return gpu.name.find("Simulated") != std::string::npos;
         });
}

std::string range_text(const SubmitAnswer& answer) {
  IdSet ids;
  ids.add(answer.first, answer.last);
  return ids.to_string();
}

/// Leaves out what need not run again, and tells.
Status resume(LoadedFile& loaded, Daemon& daemon, bool json) {
  const std::size_t all = loaded.file.jobs.size();
  TRY_ASSIGN(const LeftOut out, leave_out_done(loaded.file, daemon));
  const auto tell = [&](const std::string& text) {
    const std::string line = fmt::format("{}: {}", printable(loaded.path), text);
    json ? warn(line) : print(line + "\n");
  };
  if (out.succeeded > 0) {
    tell(fmt::format("{} of {} have succeeded before and are left out (--redo runs them again)",
                     out.succeeded, all));
  }
  if (out.alive > 0) {
    tell(fmt::format("{} of {} wait or run already and are not added again", out.alive, all));
  }
  if (loaded.file.jobs.empty()) {
    tell("nothing is left to run");
  }
  return {};
}

/// Writes what the jobs need before they start, on the machine that they run on.
Status write_files(const JobFile& file, Daemon& daemon) {
  if (!chosen_server()) {
    TRY(write_derived(file.derived));
    prepare_state_directory(file.traits);
    return {};
  }
  FilesRequest request;
  request.state_dir = has_state_files(file.traits) ? file.traits.state_dir : std::string();
  for (const DerivedFile& derived : file.derived) {
    request.files.push_back({derived.path, derived.content});
  }
  if (request != FilesRequest()) {
    TRY(daemon.call("POST", "/api/files", encode(request)));
  }
  return {};
}

/// The jobs of the array that begins with this one, if one does.
Result<std::vector<JobView>> array_tasks(Daemon& daemon, std::uint64_t first) {
  const auto detail = daemon.get<JobDetail>(fmt::format("/api/jobs/{}", first));
  if (!detail && detail.error().code != ErrorCode::not_found) {
    return std::unexpected(detail.error());
  }
  if (!detail || detail->job.batch == 0 || !begins_array(detail->extra_env)) {
    return std::vector<JobView>();
  }
  JobQuery query;
  query.batch = detail->job.batch;
  return daemon.jobs(query);
}

/// A list of cards that is longer than the machine has would only ever be seen in `berth why`.
void warn_of_rules(Daemon& daemon, std::uint64_t batch) {
  const auto view = daemon.get<RulesView>(rules_query_target({{}, batch, 0}));
  for (const std::string& problem : view ? view->problems : std::vector<std::string>()) {
    warn(printable(problem));
  }
}

Result<SubmitAnswer> submit_file(LoadedFile& loaded, Daemon& daemon, const SubmitOptions& options) {
  TRY(resolve_arrays(loaded.file, [&](std::uint64_t first) { return array_tasks(daemon, first); }));
  TRY(write_files(loaded.file, daemon));
  event::Submit submit =
      to_submission(std::move(loaded.file), static_cast<std::uint64_t>(::getpid()));
  TRY(complete_submission(submit, daemon.paths().dir));
  TRY_ASSIGN(auto snapshot, snapshot_jobs(submit, options.snapshot, daemon));
  TRY_ASSIGN(const SubmitAnswer answer, submit_with(daemon, submit, snapshot));
  if (options.json) {
    print(encode(answer) + "\n");
  } else {
    print(fmt::format("submitted {}: {} job{}, {}{}\n", printable(loaded.path), submit.jobs.size(),
                      submit.jobs.size() == 1 ? "" : "s", range_text(answer),
                      answer.batch != 0 ? fmt::format(" (batch {})", answer.batch) : ""));
  }
  if (answer.batch != 0 && submit.batch_rules.contains("gpus")) {
    warn_of_rules(daemon, answer.batch);
  }
  std::fflush(stdout);
  warn_of_stuck_jobs(daemon, alike(submit.jobs, answer.first));
  return answer;
}

}  // namespace

Outcome run_run(const RunOptions& options) {
  TRY_ASSIGN(std::vector<LoadedFile> files,
             load_job_files(options.files, options.reading, "; nothing was submitted"));
  return submit_and_watch(std::move(files), {.detach = options.detach,
                                             .json = options.json,
                                             .resume = options.resume,
                                             .redo = options.redo,
                                             .snapshot = options.snapshot});
}

Outcome submit_and_watch(std::vector<LoadedFile> files, const SubmitOptions& options) {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  std::vector<Watched> watched;
  std::vector<Told> told;
  for (LoadedFile& loaded : files) {
    if (!options.redo && (options.resume || loaded.file.skip_done)) {
      TRY(resume(loaded, daemon, options.json));
    }
    if (!loaded.file.jobs.empty()) {
      const bool has_files = has_state_files(loaded.file.traits);
      const std::string state_dir = has_files ? loaded.file.traits.state_dir : std::string();
      TRY_ASSIGN(const SubmitAnswer answer, submit_file(loaded, daemon, options));
      watched.push_back({answer, 0});
      if (!state_dir.empty() && !chosen_server()) {
        told.push_back({state_dir, answer.batch});
      }
    }
  }
  if (watched.empty()) {
    return 0;
  }
  if (!options.json) {
    TRY_ASSIGN(const StatusView status, status_with_gpus(daemon));
    if (simulated(status)) {
      print(status.gpus.size() == 1
                ? std::string("the GPU here is simulated\n")
                : fmt::format("the {} GPUs here are simulated\n", status.gpus.size()));
    }
  }
  std::fflush(stdout);
  if (options.detach) {
    return 0;
  }

  const CatchInterrupt catcher;
  IdSet ids;
  for (const Watched& one : watched) {
    ids.add(one.answer.first, one.answer.last);
  }
  Watch watch(daemon, std::move(watched));
  const Status status_of_watch = watch.until_done();
  if (!status_of_watch || !watch.progress().done()) {
    const std::string text = ids.to_string();
    const char* them = ids.size() == 1 ? "it" : "them";
    warn(
        fmt::format("no longer watching; job{} {} go{} on\n"
                    "  follow {}: berth log -f {}\n"
                    "  wait:      berth wait {}\n"
                    "  end {}:    berth kill {}",
                    ids.size() == 1 ? "" : "s", text, ids.size() == 1 ? "es" : "", them, text, text,
                    them, text));
    TRY(status_of_watch);
    return interrupt_code();
  }
  for (const Told& batch : told) {
    wait_until_told(batch.state_dir, static_cast<std::uint64_t>(::getpid()), batch.batch);
  }
  print("\n" + summary_table(watch.progress().jobs(), watch.screen(), read_clock().wall));
  print(fmt::format("{} of {} succeeded\n", watch.progress().count(JobState::succeeded),
                    watch.progress().size()));
  return watch.progress().all_succeeded() ? 0 : 1;
}

}  // namespace berth::cli
