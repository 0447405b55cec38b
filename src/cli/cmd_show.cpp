// berth show and berth why.

#include <fmt/format.h>

#include <algorithm>

#include "base/units.hpp"
#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/describe.hpp"
#include "cli/last_job.hpp"
#include "cli/log_stream.hpp"
#include "cli/pager.hpp"
#include "cli/show.hpp"
#include "cli/table.hpp"
#include "snapshot/snapshot_store.hpp"

namespace berth::cli {
namespace {

class Facts {
 public:
  void add(std::string_view name, const std::string& value) {
    if (!value.empty()) {
      text_ += fmt::format("{:<12} {}\n", name, value);
    }
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Of which directory it is a copy; empty: of none.
std::string snapshot_text(const std::string& cwd) {
  constexpr std::string_view kFolder = "/snapshots";
  const auto at = cwd.find(std::string(kFolder) + "/");
  const auto origin =
      at == std::string::npos ? std::nullopt : origin_of(cwd.substr(0, at + kFolder.size()), cwd);
  return origin ? fmt::format("of {}, as it was at submission", printable(*origin)) : "";
}

std::string when(const std::optional<Millis>& time, Millis now) {
  return time ? fmt::format("{} ({})", date_time(*time), relative_time(*time, now)) : "";
}

std::string attempts_table(const std::vector<AttemptView>& attempts, const Screen& screen,
                           Millis now) {
  constexpr std::size_t kWhole = 99;
  Table table({{"ATTEMPT", Align::right, kWhole},
               {"STATE", Align::left, kWhole},
               {"GPU", Align::left, 5, 1},
               {"STARTED", Align::left, kWhole, 3},
               {"TIME", Align::right, kWhole},
               {"EXIT", Align::right, kWhole, 2},
               {"CLASS", Align::left, kWhole, 6},
               {"CPU", Align::right, kWhole, 5},
               {"MEMORY", Align::right, kWhole, 4},
               {"REMARK", Align::left, 12}});
  for (const AttemptView& attempt : attempts) {
    std::string exit = attempt.exit_code ? fmt::format("{}", *attempt.exit_code) : "";
    if (attempt.signal) {
      exit = fmt::format("signal {}", *attempt.signal);
    }
    const auto memory = attempt.peak_memory ? attempt.peak_memory : attempt.max_rss;
    const auto cpu =
        attempt.user_time
            ? std::optional(*attempt.user_time + attempt.system_time.value_or(Millis(0)))
            : std::nullopt;
    table.add(
        {{fmt::format("{}", attempt.number)},
         {printable(attempt.state)},
         {gpu_list(attempt.gpu_indices)},
         {attempt.started_at ? relative_time(*attempt.started_at, now) : ""},
         {attempt.started_at ? format_duration(std::max(
                                   attempt.ended_at.value_or(now) - *attempt.started_at, Millis(0)))
                             : ""},
         {exit},
         {attempt.failure_class ? std::string(to_string(*attempt.failure_class)) : ""},
         {cpu ? format_duration(*cpu) : ""},
         {memory ? format_size(*memory) : ""},
         {printable(attempt.message)}});
  }
  return table.render(screen);
}

constexpr Millis kGpuPatience{2'000};

/// Further the daemon does not count.
constexpr std::uint64_t kCounted = 10'000;

std::string jobs_text(std::uint64_t count) {
  return fmt::format("{} job{}", count, count == 1 ? "" : "s");
}

/// On a screen each group of cards has a line of its own, behind `indent` blanks; programs get one
/// line.
std::string reason_text(const std::string& reason, const Screen& screen, std::size_t indent) {
  constexpr std::string_view kFirstCard = ": GPU";  // or GPUs
  constexpr std::string_view kBetween = "; ";
  std::string whole = printable(reason);
  if (!screen.width) {
    return whole;
  }
  std::string_view rest = whole;
  std::string out;
  const auto line = [&](std::string_view text) {
    out +=
        (out.empty() ? "" : "\n" + std::string(indent, ' ')) + wrapped(text, *screen.width, indent);
  };
  if (const std::size_t cards = rest.find(kFirstCard); cards != std::string_view::npos) {
    line(rest.substr(0, cards + 1));
    rest.remove_prefix(cards + 2);
    for (std::size_t end = rest.find(kBetween); end != std::string_view::npos;
         end = rest.find(kBetween)) {
      line(rest.substr(0, end));
      rest.remove_prefix(end + kBetween.size());
    }
  }
  line(rest);
  return out;
}

std::string why_text(const WhyView& why, const Screen& screen) {
  std::string out =
      fmt::format("job {} {} {}", why.job.id, styled(label(why.job), Style::bold, screen),
                  predicate(why.job.state));
  if (why.job.state != JobState::queued && why.reasons.empty()) {
    const std::string note = why.job.state == JobState::paused
                                 ? fmt::format("berth resume {} lets it go on", why.job.id)
                                 : remark(why.job);
    return out + (note.empty() ? "" : ": " + note) + "\n";
  }
  out += why.reasons.empty() ? " and starts next\n" : ":\n";
  if (why.ahead && !why.reasons.empty()) {
    out += *why.ahead == 0 ? fmt::format("  first in queue '{}'\n", printable(why.job.queue))
                           : fmt::format("  {}{} before it in queue '{}'\n",
                                         *why.ahead >= kCounted ? "at least " : "",
                                         jobs_text(*why.ahead), printable(why.job.queue));
  }
  for (const ReasonView& reason : why.reasons) {
    out += fmt::format("  - {}\n", reason_text(reason.text, screen, 4));
  }
  if (!why.outlook.empty()) {
    out += fmt::format("  {}\n", printable(why.outlook));
  }
  return out;
}

std::string backlog_text(const BacklogView& backlog, const Screen& screen) {
  std::string out =
      fmt::format("{} {}:\n", jobs_text(backlog.waiting), backlog.waiting == 1 ? "waits" : "wait");
  for (const HoldupView& holdup : backlog.holdups) {
    out +=
        fmt::format("  {:>5}  {}\n         {}\n", holdup.jobs, reason_text(holdup.text, screen, 9),
                    styled(fmt::format("the first is job {}", holdup.first), Style::dim, screen));
  }
  return out;
}

}  // namespace

std::vector<std::uint32_t> strays_of(std::uint64_t job, const std::vector<GpuView>& gpus) {
  std::vector<std::uint32_t> found;
  for (const GpuView& gpu : gpus) {
    const bool there =
        gpu.processes &&
        std::ranges::find(*gpu.processes, job, &GpuProcessView::job) != gpu.processes->end();
    if (there && std::ranges::find(gpu.claims, job, &ClaimView::job) == gpu.claims.end()) {
      found.push_back(gpu.index);
    }
  }
  return found;
}

std::string show_text(const JobDetail& detail, const std::optional<WhyView>& why,
                      const Screen& screen, Millis now, const std::vector<std::uint32_t>& strays) {
  const JobView& job = detail.job;
  Facts facts;
  facts.add("job", fmt::format("{}{}{}", job.id, job.name.empty() ? "" : " ", printable(job.name)));
  std::string state = styled(to_string(job.state), style_of(job.state), screen);
  if (const std::string note =
          job.state == JobState::queued || job.state == JobState::paused ? "" : remark(job);
      !note.empty()) {
    state += ": " + note;
  }
  facts.add("state", state);
  facts.add("failure", job.failure_class ? std::string(to_string(*job.failure_class)) : "");
  facts.add("queue", fmt::format("{}, priority {}{}", printable(job.queue), job.priority,
                                 job.expedited ? ", starts before all others" : ""));
  facts.add("batch", job.batch != 0 ? fmt::format("{}", job.batch) : "");
  for (const Command& command : detail.commands) {
    facts.add(command.shell ? "bash" : "command", printable(display_commands({command})));
  }
  for (const auto& [key, value] : job.params) {
    facts.add("param", fmt::format("{}={}", printable(key), printable(value)));
  }
  facts.add("directory", printable(job.cwd));
  facts.add("snapshot", snapshot_text(job.cwd));
  facts.add("work dir", printable(detail.work_dir));
  for (const std::string& entry : detail.extra_env) {
    facts.add("env", printable(entry));
  }
  facts.add("GPUs", gpu_request(job));
  for (const std::uint32_t index : strays) {
    facts.add("strays", styled(fmt::format("seen on GPU {}, which it was not given", index),
                               Style::bad, screen));
  }
  facts.add("CPUs", detail.cpus > 0 ? fmt::format("{}", detail.cpus) : "");
  facts.add("memory", detail.memory > 0 ? format_size(detail.memory) : "");
  for (const auto& [name, count] : detail.resources) {
    facts.add("resource", fmt::format("{}={}", printable(name), count));
  }
  facts.add(detail.after_kind == After::any      ? "after the end of"
            : detail.after_kind == After::failed ? "after failure of"
                                                 : "after",
            fmt::format("{}", fmt::join(detail.after, ",")));
  if (detail.start_at && *detail.start_at > now) {
    facts.add("not before", when(detail.start_at, now));
  }
  for (const auto& [key, value] : detail.rules) {
    facts.add("rule", fmt::format("{}={}", printable(key), printable(value)));
  }
  facts.add("retries", job.retries > 0 || job.retries_used > 0
                           ? fmt::format("{} of {} used", job.retries_used, job.retries)
                           : "");
  facts.add("excused",
            job.excused > 0
                ? fmt::format("tried again {} more, which was not its fault",
                              job.excused == 1 ? "once" : fmt::format("{} times", job.excused))
                : "");
  facts.add("time limit", detail.time_limit > Millis(0) ? format_duration(detail.time_limit) : "");
  facts.add("warning", detail.signal);
  facts.add("submitted", when(job.submitted_at, now));
  facts.add("started", when(job.started_at, now));
  facts.add("ended", when(job.ended_at, now));
  std::string log = printable(job.log);
  if (const AttemptView* last = find_attempt(detail, std::nullopt);
      last != nullptr && last->log_dropped > 0) {
    log += fmt::format(" ({} left out of its middle)", format_size(last->log_dropped));
  }
  facts.add("log", log);
  std::string out = facts.text();
  if (!detail.attempts.empty()) {
    out += "\n" + attempts_table(detail.attempts, screen, now);
  }
  if (why) {
    out += "\n" + why_text(*why, screen);
  }
  return out;
}

Outcome run_show(const ShowOptions& options) {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  std::uint64_t id = options.id.value_or(0);
  if (!options.id) {
    TRY_ASSIGN(const JobView last, last_job(daemon));
    id = last.id;
  }
  TRY_ASSIGN(const JobDetail detail, daemon.get<JobDetail>(fmt::format("/api/jobs/{}", id)));
  if (options.json) {
    print(encode(detail) + "\n");
    return 0;
  }
  std::optional<WhyView> why;
  if (detail.job.state == JobState::queued || detail.job.state == JobState::paused) {
    TRY_ASSIGN(why, daemon.get<WhyView>(fmt::format("/api/jobs/{}/why", id)));
  }
  std::vector<std::uint32_t> strays;
  if (detail.job.state == JobState::running) {
    // Without an answer in time it is told of another time, and berth history has it.
    if (const auto gpus = daemon.get<std::vector<GpuView>>("/api/gpus", kGpuPatience)) {
      strays = strays_of(id, *gpus);
    }
  }
  const Screen screen = look_at_stdout();
  print_paged(show_text(detail, why, screen, read_clock().wall, strays), screen);
  return 0;
}

Outcome run_why(const WhyOptions& options) {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  const Screen screen = look_at_stdout();
  if (options.id) {
    TRY_ASSIGN(const WhyView why,
               daemon.get<WhyView>(fmt::format("/api/jobs/{}/why", *options.id)));
    print(options.json ? encode(why) + "\n" : why_text(why, screen));
    return 0;
  }
  TRY_ASSIGN(const auto all, daemon.get<BacklogView>("/api/why"));
  if (options.json) {
    print(encode(all) + "\n");
    return 0;
  }
  std::string out;
  if (all.waiting == 0) {
    out = "no job is waiting";
    JobQuery last;
    last.descending = true;
    TRY_ASSIGN(const auto found, daemon.jobs(last, 1));
    for (const JobView& job : found) {
      const std::string how = remark(job);
      out += fmt::format("; the last one, job {} {}, {}{}", job.id, label(job),
                         predicate(job.state), how.empty() ? "" : ": " + how);
    }
    out += "\n";
  } else {
    out = backlog_text(all, screen);
  }
  print_paged(out, screen);
  return 0;
}

}  // namespace berth::cli
