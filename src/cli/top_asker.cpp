#include "cli/top_asker.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/control.hpp"
#include "cli/describe.hpp"
#include "cli/remote_log.hpp"
#include "cli/server.hpp"
#include "cli/terminal.hpp"

namespace berth::cli {
namespace {

constexpr Millis kPatience{5'000};
/// A driver that hangs is not waited for.
constexpr Millis kGpuPatience{2'000};
/// Older than this, the cards are looked at anew: an idle daemon has not looked for a while.
constexpr Millis kFresh{3'000};
constexpr Millis kControlPatience{20'000};
constexpr std::size_t kNewLimits = 4;       ///< asked for in one round
constexpr std::uint64_t kLimitRounds = 5;   ///< in which one known limit is asked for again
constexpr std::uint64_t kReasonRounds = 2;  ///< in which reasons are, while no job changes
constexpr std::uint64_t kLogLines = 2'000;

const std::vector<JobState> kEnded{JobState::succeeded, JobState::failed, JobState::killed,
                                   JobState::cancelled};

Result<std::vector<JobView>> page(TopLink& link, std::vector<JobState> states, std::size_t limit,
                                  bool descending = false) {
  JobQuery query;
  query.states = std::move(states);
  query.limit = static_cast<std::uint32_t>(limit);
  query.descending = descending;
  TRY_ASSIGN(JobPage answer, link.get<JobPage>(job_query_target(query), kPatience));
  return std::move(answer.jobs);
}

std::string control_text(const ControlAnswer& answer, bool& bad) {
  const std::pair<const char*, const std::vector<std::uint64_t>*> lists[]{
      {"paused", &answer.paused},
      {"held", &answer.held},
      {"resumed", &answer.resumed},
      {"released", &answer.released},
      {"moved", &answer.moved},
      {"starts next", &answer.expedited},
      {"changed", &answer.changed},
      {"is so already", &answer.unchanged},
      {"has ended already", &answer.finished}};
  for (const auto& [what, ids] : lists) {
    if (!ids->empty()) {
      bad = ids == &answer.finished;
      return fmt::format("job {}: {}", id_list(*ids), what);
    }
  }
  bad = true;
  if (!answer.refused.empty()) {
    return fmt::format("job {}: {}", id_list(answer.refused.front().ids),
                       printable(answer.refused.front().why));
  }
  return "there is no such job any more";
}

std::string kill_text(const KillAnswer& answer) {
  if (!answer.killed.empty()) {
    return fmt::format("job {} is being ended", id_list(answer.killed));
  }
  if (!answer.cancelled.empty()) {
    return fmt::format("job {} is cancelled", id_list(answer.cancelled));
  }
  return answer.finished.empty()
             ? "there is no such job any more"
             : fmt::format("job {} has ended already", id_list(answer.finished));
}

}  // namespace

void TopAsker::ask_round() {
  ++round_;
  if (const Status done = ask_all(); !done) {
    data_.trouble = done.error().message;
    return;
  }
  data_.trouble.clear();
  data_.complete = true;
  data_.answered = read_clock().wall;
}

Status TopAsker::ask_all() {
  TRY_ASSIGN(StatusView status, link_.get<StatusView>("/api/status", kPatience));
  if (!status.probe.age || *status.probe.age > kFresh) {
    if (auto gpus = link_.get<std::vector<GpuView>>("/api/gpus", kGpuPatience)) {
      status.gpus = std::move(*gpus);
    }
  }
  data_.status = std::move(status);
  TRY(ask_jobs());
  ask_limits();
  return {};
}

Status TopAsker::ask_jobs() {
  const auto look = [&](JobState state, std::size_t limit, std::vector<JobView>& into) -> Status {
    if (count_of(data_, state) == 0) {
      into.clear();
      return {};
    }
    TRY_ASSIGN(into, page(link_, {state}, limit));
    return {};
  };
  TRY(look(JobState::running, kTopRunning, data_.running));
  TRY(look(JobState::paused, kTopPaused, data_.paused));
  if (data_.status.counts != counts_ || round_ % kReasonRounds == 0 || hurried_) {
    TRY(look(JobState::queued, kTopQueued, data_.queued));
  }
  std::ranges::stable_sort(
      data_.queued, {}, [](const JobView& job) { return std::pair(!job.expedited, job.priority); });
  if (std::ranges::any_of(kEnded, [&](JobState state) {
        return !data_.complete || count_of(data_, state) != counts_[state];
      })) {
    TRY_ASSIGN(data_.ended, page(link_, kEnded, kTopEnded, true));
    // By id they come, by their end they are of interest.
    std::ranges::stable_sort(data_.ended, std::greater(),
                             [](const JobView& job) { return job.ended_at.value_or(Millis(0)); });
  }
  counts_ = data_.status.counts;
  hurried_ = false;
  return {};
}

void TopAsker::ask_limits() {
  // New jobs first; otherwise the one asked longest ago, as limits can be changed.
  std::vector<std::uint64_t> ask;
  const JobView* oldest = nullptr;
  for (const JobView& job : data_.running) {
    const auto known = limits_.find(job.id);
    if (known == limits_.end()) {
      ask.push_back(job.id);
    } else if (oldest == nullptr || known->second.round < limits_[oldest->id].round) {
      oldest = &job;
    }
  }
  if (ask.empty() && oldest != nullptr && round_ % kLimitRounds == 0) {
    ask.push_back(oldest->id);
  }
  ask.resize(std::min(ask.size(), kNewLimits));
  for (const std::uint64_t id : ask) {
    if (const auto detail = link_.get<JobDetail>(fmt::format("/api/jobs/{}", id), kPatience)) {
      limits_[id] = Limit{detail->time_limit, round_};
    }
  }
  std::erase_if(limits_, [&](const auto& entry) {
    return std::ranges::find(data_.running, entry.first, &JobView::id) == data_.running.end();
  });
  data_.limits.clear();
  for (const auto& [id, known] : limits_) {
    if (known.limit > Millis(0)) {
      data_.limits[id] = known.limit;
    }
  }
}

void TopAsker::look_at(std::uint64_t job, bool log) {
  subject_ = TopSubject();
  subject_.job = job;
  subject_.log = log;
  follower_.reset();
  log_.reset();
}

void TopAsker::ask_subject(bool detail) {
  subject_.trouble.clear();
  Status done;
  if (detail || !subject_.detail) {
    done = ask_detail();
  }
  if (done && subject_.log) {
    done = read_log();
  }
  if (!done) {
    subject_.trouble = done.error().message;
  }
}

Status TopAsker::ask_detail() {
  TRY_ASSIGN(subject_.detail,
             link_.get<JobDetail>(fmt::format("/api/jobs/{}", subject_.job), kPatience));
  const JobState state = subject_.detail->job.state;
  subject_.why.reset();
  if (!subject_.log && (state == JobState::queued || state == JobState::paused)) {
    TRY_ASSIGN(subject_.why,
               link_.get<WhyView>(fmt::format("/api/jobs/{}/why", subject_.job), kPatience));
  }
  return {};
}

Status TopAsker::read_log() {
  if (!follower_) {
    log_ = std::make_shared<TopLog>(kLogLines);
    const auto sink = [log = log_](std::string_view text) { log->feed(text); };
    if (chosen_server()) {
      follower_ = std::make_unique<RemoteLogFollower>(
          *chosen_server(), LogPart{subject_.job, std::nullopt, kLogLines}, sink);
    } else {
      follower_ = std::make_unique<LogFollower>(std::nullopt, kLogLines, sink);
    }
  }
  if (follower_->over()) {
    return {};
  }
  // As the daemon told last: between its answers the log alone is read.
  TRY(follower_->look(*subject_.detail, [log = log_](std::uint32_t number) {
    log->feed(fmt::format("\n--- attempt {} ---\n", number));
  }));
  if (follower_->opened() && !log_->empty()) {
    subject_.lines = std::make_shared<const std::vector<std::string>>(log_->lines());
  }
  return {};
}

Result<std::string> TopAsker::control(const TopCommand& command) {
  ControlRequest request;
  if (command.job != 0) {
    request.jobs.ids.add(command.job);
  }
  request.queue = command.queue;
  std::string target;
  std::string body = encode(request);
  switch (command.what) {
    case TopCommand::What::pause:
    case TopCommand::What::pause_queue:
      target = "/api/jobs/pause";
      break;
    case TopCommand::What::resume:
    case TopCommand::What::resume_queue:
      target = "/api/jobs/resume";
      break;
    case TopCommand::What::start:
      target = "/api/jobs/start";
      break;
    case TopCommand::What::priority: {
      SetJobsRequest set;
      set.jobs = request.jobs;
      set.patch.priority = command.priority;
      target = "/api/jobs/set";
      body = encode(set);
      break;
    }
    case TopCommand::What::kill: {
      KillRequest kill;
      kill.ids = {command.job};
      target = "/api/jobs/kill";
      body = encode_kill(kill);
      break;
    }
    case TopCommand::What::quit:
    case TopCommand::What::refresh:
      return std::string();
  }
  return link_.call("POST", target, body, kControlPatience);
}

TopMessage TopAsker::carry_out(const TopCommand& command) {
  hurried_ = true;
  const auto body = control(command);
  if (!body) {
    return {printable(body.error().message), true};
  }
  if (command.what == TopCommand::What::kill) {
    const auto answer = decode<KillAnswer>(*body);
    return answer ? TopMessage{kill_text(*answer), false}
                  : TopMessage{answer.error().message, true};
  }
  const auto answer = decode<ControlAnswer>(*body);
  if (!answer) {
    return {answer.error().message, true};
  }
  if (!command.queue.empty()) {
    return {
        fmt::format("queue '{}' {}", printable(command.queue),
                    command.what == TopCommand::What::pause_queue ? "is paused; what runs goes on"
                                                                  : "starts jobs again"),
        false};
  }
  TopMessage message;
  message.text = control_text(*answer, message.bad);
  if (command.what == TopCommand::What::priority && !answer->changed.empty()) {
    message.text =
        fmt::format("job {}: priority {}; lower goes first", command.job, command.priority);
  }
  return message;
}

}  // namespace berth::cli
