// berth run: job files, from submission to the last job's end.

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/describe.hpp"
#include "cli/interrupt.hpp"
#include "cli/job_files.hpp"
#include "cli/progress.hpp"
#include "cli/submitter.hpp"

namespace berth::cli {
namespace {

constexpr Millis kEventWait{300};  ///< also how long an interrupt may go unnoticed
constexpr Millis kReasonAge{2'000};
constexpr int kProbeTries = 20;
constexpr int kProbePollMs = 100;

event::Submit to_submission(JobFile file) {
  event::Submit submit;
  submit.batch_name = std::move(file.name);
  submit.batch_max_concurrent = file.max_concurrent;
  submit.queues = std::move(file.queues);
  submit.resources = std::move(file.resources);
  submit.jobs = std::move(file.jobs);
  return submit;
}

/// One submission and how far its events have been read.
struct Watched {
  SubmitAnswer answer;
  std::uint64_t seen = 0;
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

/// The daemon's status; of one that has just started, after its first look at the GPUs.
Result<StatusView> status_with_gpus(Daemon& daemon) {
  for (int tries = 0;; ++tries) {
    TRY_ASSIGN(StatusView status, daemon.get<StatusView>("/api/status"));
    if (status.probe.age || !status.probe.error.empty() || tries == kProbeTries) {
      return status;
    }
    ::poll(nullptr, 0, kProbePollMs);
  }
}

std::string range_text(const SubmitAnswer& answer) {
  IdSet ids;
  ids.add(answer.first, answer.last);
  return ids.to_string();
}

}  // namespace

Outcome run_run(const RunOptions& options) {
  TRY_ASSIGN(std::vector<LoadedFile> files,
             load_job_files(options.files, "; nothing was submitted"));
  std::vector<event::Submit> submissions;
  for (LoadedFile& loaded : files) {
    submissions.push_back(to_submission(std::move(loaded.file)));
  }
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  std::vector<Watched> watched;
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    event::Submit& submit = submissions[i];
    TRY(complete_submission(submit, daemon.paths().dir));
    TRY_ASSIGN(const SubmitAnswer answer, daemon.submit(submit));
    watched.push_back({answer, 0});
    if (options.json) {
      print(encode(answer) + "\n");
    } else {
      print(fmt::format("submitted {}: {} job{}, {}{}\n", printable(options.files[i]),
                        submit.jobs.size(), submit.jobs.size() == 1 ? "" : "s", range_text(answer),
                        answer.batch != 0 ? fmt::format(" (batch {})", answer.batch) : ""));
    }
  }
  if (!options.json) {
    TRY_ASSIGN(const StatusView status, status_with_gpus(daemon));
    if (simulated(status)) {
      print(fmt::format("the {} GPUs here are simulated\n", status.gpus.size()));
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
  print("\n" + summary_table(watch.progress().jobs(), watch.screen(), read_clock().wall));
  print(fmt::format("{} of {} succeeded\n", watch.progress().count(JobState::succeeded),
                    watch.progress().size()));
  return watch.progress().all_succeeded() ? 0 : 1;
}

}  // namespace berth::cli
