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
#include "cli/table.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t kWhyShown = 20;

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
    std::string note = attempt.message;
    if (note.empty() && attempt.failure_class) {
      note = to_string(*attempt.failure_class);
    }
    table.add(
        {{fmt::format("{}", attempt.number)},
         {printable(attempt.state)},
         {gpu_list(attempt.gpu_indices)},
         {attempt.started_at ? relative_time(*attempt.started_at, now) : ""},
         {attempt.started_at ? format_duration(std::max(
                                   attempt.ended_at.value_or(now) - *attempt.started_at, Millis(0)))
                             : ""},
         {exit},
         {cpu ? format_duration(*cpu) : ""},
         {memory ? format_size(*memory) : ""},
         {printable(note)}});
  }
  return table.render(screen);
}

std::string why_text(const WhyView& why, const Screen& screen) {
  std::string out =
      fmt::format("job {} {} is {}", why.job.id, styled(label(why.job), Style::bold, screen),
                  to_string(why.job.state));
  if (why.job.state != JobState::queued && why.reasons.empty()) {
    const std::string note = why.job.state == JobState::paused
                                 ? fmt::format("berth resume {} lets it go on", why.job.id)
                                 : remark(why.job);
    return out + (note.empty() ? "" : ": " + note) + "\n";
  }
  out += why.reasons.empty() ? " and starts next\n" : ":\n";
  for (const ReasonView& reason : why.reasons) {
    out += fmt::format("  - {}\n", printable(reason.text));
  }
  return out;
}

}  // namespace

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
  const Screen screen = look_at_stdout();
  const Millis now = read_clock().wall;
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
  facts.add("directory", printable(job.cwd));
  for (const std::string& entry : detail.extra_env) {
    facts.add("env", printable(entry));
  }
  facts.add("GPUs", gpu_request(job));
  facts.add("CPUs", detail.cpus > 0 ? fmt::format("{}", detail.cpus) : "");
  facts.add("memory", detail.memory > 0 ? format_size(detail.memory) : "");
  for (const auto& [name, count] : detail.resources) {
    facts.add("resource", fmt::format("{}={}", printable(name), count));
  }
  facts.add("after", fmt::format("{}", fmt::join(detail.after, ",")));
  facts.add("retries",
            job.retries > 0 ? fmt::format("{} of {} used", job.retries_used, job.retries) : "");
  facts.add("time limit", detail.time_limit > Millis(0) ? format_duration(detail.time_limit) : "");
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
  if (job.state == JobState::queued || job.state == JobState::paused) {
    TRY_ASSIGN(const WhyView why, daemon.get<WhyView>(fmt::format("/api/jobs/{}/why", id)));
    out += "\n" + why_text(why, screen);
  }
  print_paged(out, screen);
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
  // The newest, the last job among them, in the order of their ids.
  JobQuery query;
  query.states = {JobState::queued, JobState::paused};
  query.descending = true;
  TRY_ASSIGN(auto jobs, daemon.jobs(query, kWhyShown + 1));
  const bool more = jobs.size() > kWhyShown;
  jobs.resize(std::min(jobs.size(), kWhyShown));
  std::ranges::reverse(jobs);
  std::vector<WhyView> whys;
  for (const JobView& job : jobs) {
    TRY_ASSIGN(WhyView why, daemon.get<WhyView>(fmt::format("/api/jobs/{}/why", job.id)));
    whys.push_back(std::move(why));
  }
  if (options.json) {
    print(encode_array(whys));
    return 0;
  }
  std::string out;
  if (whys.empty()) {
    out = "no job is waiting";
    JobQuery last;
    last.descending = true;
    TRY_ASSIGN(const auto found, daemon.jobs(last, 1));
    for (const JobView& job : found) {
      const std::string how = remark(job);
      out += fmt::format("; the last one, job {} {}, is {}{}", job.id, label(job),
                         to_string(job.state), how.empty() ? "" : ": " + how);
    }
    out += "\n";
  }
  if (more) {
    out += "… more are waiting: berth why ID tells about one\n";
  }
  for (const WhyView& why : whys) {
    out += why_text(why, screen);
  }
  print_paged(out, screen);
  return 0;
}

}  // namespace berth::cli
