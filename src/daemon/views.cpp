#include "daemon/views.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "api/paths.hpp"
#include "core/reason.hpp"
#include "core/room.hpp"
#include "daemon/attempt_env.hpp"
#include "gpu/process_facts.hpp"
#include "proc/procfs.hpp"
#include "proc/record.hpp"

namespace berth {

std::string log_path(const JobRow& row, const AttemptRow& attempt, const LogPlaces& logs) {
  if (row.log.empty()) {
    return own_log_path(logs.dir, row.id, attempt.number);
  }
  effect::Start start;
  start.attempt = attempt.id;
  start.job = row.id;
  start.batch = row.batch;
  start.gpus = attempt.gpus;
  start.gpu_indices = attempt.gpu_indices;
  return fill_log_path(row.log, launch_facts(start, logs.instance));
}

namespace {

AttemptRow last_attempt(const JobRow& row) {
  AttemptRow attempt;
  attempt.id = row.last_attempt;
  attempt.number = std::max(row.attempts, 1U);
  attempt.gpus = row.gpus;
  attempt.gpu_indices = row.gpu_indices;
  return attempt;
}

}  // namespace

JobView job_view(const JobRow& row, const std::string& node, const LogPlaces& logs) {
  JobView view;
  view.id = row.id.value;
  view.name = row.name;
  view.state = row.state;
  view.queue = row.queue;
  view.priority = row.priority;
  view.gpus = row.request.gpus;
  view.attempts = row.attempts;
  view.exit_code = row.exit_code;
  view.failure_class = row.failure;
  view.batch = row.batch.value;
  view.owner = row.owner;
  view.submitted_at = row.submitted;
  view.started_at = row.started;
  view.ended_at = row.ended;
  view.message = row.message;
  view.retries = row.retries;
  view.retries_used = row.retries_used;
  view.excused = row.excused;
  view.gpu_memory = row.request.gpu_memory;
  view.gpu_indices = row.gpu_indices;
  view.gpu_uuids = row.gpus;
  view.expedited = row.expedited && (row.state == JobState::queued);
  if (row.last_attempt) {
    view.attempt = row.last_attempt.value;
    view.node = node;
    view.log = log_path(row, last_attempt(row), logs);
  }
  return view;
}

CauseView cause_view(const Reason& reason) {
  constexpr std::size_t kShown = 20;
  CauseView view{std::string(to_string(reason.kind)), reason.facts.numbers, reason.facts.names};
  if (!reason.jobs.empty()) {
    view.numbers["jobs"] = reason.jobs.size();
  }
  for (std::size_t i = 0; i < std::min(kShown, reason.jobs.size()); ++i) {
    view.jobs.push_back(reason.jobs[i].value);
  }
  return view;
}

ReasonView reason_view(const Reason& reason) {
  CauseView cause = cause_view(reason);
  ReasonView view{std::move(cause.kind), reason.text, std::move(cause.numbers),
                  std::move(cause.names), std::move(cause.jobs)};
  for (const GpuObstacle& obstacle : reason.gpus) {
    ObstacleView& card = view.gpus.emplace_back();
    card.gpu = obstacle.index;
    card.kind = to_string(obstacle.kind);
    card.text = describe_alone(obstacle);
    card.free = obstacle.free;
    card.needed = obstacle.needed;
    card.margin = obstacle.margin;
    card.in_use = obstacle.in_use;
    card.total = obstacle.total;
    card.rule = obstacle.rule;
    card.strangers = obstacle.strangers;
    card.own = obstacle.own;
    card.utilization = obstacle.utilization;
    card.utilization_max = obstacle.utilization_max;
    for (const JobId job : obstacle.jobs) {
      card.jobs.push_back(job.value);
    }
    card.detail = obstacle.detail;
  }
  return view;
}

EventView event_view(const HistoryRow& row) {
  return {row.seq,           row.wall,        row.kind,  row.job.value,
          row.attempt.value, row.batch.value, row.detail};
}

HistoryQuery history_query(const EventQuery& query) {
  HistoryQuery history;
  history.after = query.after;
  history.job = JobId{query.job};
  history.batch = BatchId{query.batch};
  history.limit = query.limit;
  if (query.ids) {
    for (const auto& [first, last] : query.ids->ranges()) {
      history.jobs.emplace_back(JobId{first}, JobId{last});
    }
  }
  history.kinds = query.kinds;
  history.since = query.since;
  history.descending = query.descending;
  return history;
}

Result<JobPage> read_page(StoreReader& reader, const JobQuery& query, const std::string& node,
                          const LogPlaces& logs) {
  JobFilter filter;
  filter.states = query.states;
  filter.queue = query.queue;
  filter.batch = BatchId{query.batch};
  if (query.ids) {
    for (const auto& [first, last] : query.ids->ranges()) {
      filter.ids.emplace_back(JobId{first}, JobId{last});
    }
  }
  filter.name = query.name;
  filter.since = query.since;
  filter.after = query.after;
  filter.sort = query.sort;
  filter.descending = query.descending;
  filter.limit = query.limit;
  TRY_ASSIGN(JobListing listing, reader.list(filter));
  JobPage page;
  page.jobs.reserve(listing.rows.size());
  for (std::size_t i = 0; i < listing.rows.size(); ++i) {
    JobView& view = page.jobs.emplace_back(job_view(listing.rows[i], node, logs));
    view.command = display_commands(listing.heads[i].commands);
    view.cwd = std::move(listing.heads[i].cwd);
    view.params = std::move(listing.heads[i].params);
  }
  page.next = listing.next;
  return page;
}

std::string_view attempt_state(const AttemptRow& row) {
  return !row.ended            ? "running"
         : row.revoked         ? "revoked"
         : row.verdict.killed  ? "killed"
         : row.verdict.failure ? "failed"
                               : "succeeded";
}

namespace {

AttemptView attempt_view(const AttemptRow& row, const std::string& node, const std::string& log) {
  AttemptView view;
  view.id = row.id.value;
  view.job = row.job.value;
  view.number = row.number;
  view.node = node;
  view.gpu_indices = row.gpu_indices;
  view.gpu_uuids = row.gpus;
  if (row.gpu_memory != 0) {
    view.gpu_memory = row.gpu_memory;
  }
  view.started_at = row.started;
  view.ended_at = row.ended;
  const Verdict& verdict = row.verdict;
  view.state = attempt_state(row);
  view.failure_class = verdict.failure;
  view.exit_code = verdict.exit_code;
  view.signal = verdict.signal;
  view.message = verdict.message;
  view.user_time = verdict.user_time;
  view.system_time = verdict.system_time;
  view.max_rss = verdict.max_rss;
  view.peak_memory = verdict.peak_memory;
  view.leftover = verdict.leftover;
  view.log_dropped = verdict.log_dropped;
  view.log = log;
  return view;
}

/// Of an attempt that was told to end but is held by the kernel only its record knows.
void note_ending(AttemptView& attempt, const std::string& dir) {
  const Record record =
      parse_record(read_small_file(fmt::format("{}/attempts/{}.rec", dir, attempt.id)));
  if (!record.ending.empty()) {
    attempt.state = "ending";
    attempt.message = fmt::format("told to end, but held by the kernel: {}", record.ending);
  }
}

}  // namespace

Result<std::optional<JobDetail>> read_detail(StoreReader& reader, JobId id, const std::string& node,
                                             const LogPlaces& logs, const std::string& dir) {
  TRY_ASSIGN(const auto row, reader.job(id));
  if (!row) {
    return std::optional<JobDetail>{};
  }
  JobDetail detail;
  detail.job = job_view(*row, node, logs);
  for (const JobId dependency : row->after) {
    detail.after.push_back(dependency.value);
  }
  detail.cpus = row->request.cpus;
  detail.memory = row->request.memory;
  detail.resources = row->request.resources;
  detail.rules = row->request.rules;
  detail.log = row->log;
  detail.after_kind = row->after_kind;
  if (row->not_before != Millis{0}) {
    detail.start_at = row->not_before;
  }
  TRY_ASSIGN(auto payload, reader.payload(id));
  if (payload) {
    detail.job.command = display_commands(payload->commands);
    detail.job.cwd = payload->cwd;
    detail.commands = std::move(payload->commands);
    detail.extra_env = std::move(payload->extra_env);
    if (payload->environment) {
      detail.environment = *payload->environment;
    }
    detail.time_limit = payload->time_limit;
    detail.grace = payload->grace;
    detail.linger = payload->linger;
    detail.signal = format_warning(payload->warning);
    detail.job.params = std::move(payload->params);
    detail.work_dir = std::move(payload->work_dir);
    detail.fingerprint = payload->fingerprint;
  }
  if (row->batch) {
    TRY_ASSIGN(auto traits, reader.traits(row->batch));
    detail.batch_traits = traits.value_or(BatchTraits{});
  }
  TRY_ASSIGN(const auto attempts, reader.attempts(id));
  for (const AttemptRow& attempt : attempts) {
    detail.attempts.push_back(attempt_view(attempt, node, log_path(*row, attempt, logs)));
    detail.attempts.back().report = report_path(logs.dir, id.value, attempt.number);
    if (!attempt.ended) {
      note_ending(detail.attempts.back(), dir);
      if (!detail.attempts.back().message.empty()) {
        detail.job.message = detail.attempts.back().message;
      }
    }
  }
  return std::optional(std::move(detail));
}

void withhold_values(JobDetail& detail) {
  const auto names_only = [](Environment& variables) {
    for (std::string& variable : variables) {
      variable.resize(std::min(variable.find('='), variable.size()));
    }
  };
  names_only(detail.extra_env);
  if (detail.environment) {
    names_only(*detail.environment);
  }
}

Result<DoneAnswer> read_done(StoreReader& reader, const DoneRequest& request,
                             const std::string& node, const LogPlaces& logs) {
  DoneAnswer answer;
  answer.jobs.reserve(request.jobs.size());
  for (const DoneQuestion& question : request.jobs) {
    TRY_ASSIGN(const SameJobs same, reader.same_jobs(question.fingerprint, question.name));
    DoneView& view = answer.jobs.emplace_back();
    view.succeeded = same.succeeded.value;
    view.alive = same.alive.value;
    if (same.succeeded) {
      TRY_ASSIGN(const auto row, reader.job(same.succeeded));
      view.log = row ? job_view(*row, node, logs).log : std::string();
    }
  }
  return answer;
}

namespace {

/// What is known of a card for longer than this is not told.
constexpr Millis kShownAge{60'000};

/// To the second, so that two looks at one process tell the same.
Millis started_at(std::uint64_t start_time, Now now) {
  return std::chrono::round<std::chrono::seconds>(now.wall - age_of(start_time, now.mono));
}

/// Why a card that is well is kept from every job, if it is.
void note_reserved(const std::optional<GpuObstacle>& obstacle, GpuView& view) {
  using Kind = GpuObstacle::Kind;
  const bool kept =
      obstacle && (obstacle->kind == Kind::left || obstacle->kind == Kind::not_allowed ||
                   obstacle->kind == Kind::other_berth);
  if (kept) {
    view.reserved = describe_alone(*obstacle);
    view.reserved_kind = to_string(obstacle->kind);
    view.reserved_detail = obstacle->detail;
  }
}

}  // namespace

std::vector<GpuView> make_gpu_views(const State& state, const std::string& node, Now now,
                                    ProcessNotes* notes) {
  std::vector<GpuView> views;
  const Room room(state, now);
  const Request nothing;
  // What is shown may be older than what is decided on.
  Rules rules = state.rules;
  rules.sample_age_max = std::max(rules.sample_age_max, kShownAge);
  Wish anything;
  anything.request = &nothing;
  anything.rules = &rules;
  std::size_t position = 0;
  for (const Gpu& gpu : state.gpus) {
    const GpuFacts& facts = gpu.facts;
    GpuView& view = views.emplace_back();
    view.index = facts.index;
    view.uuid = facts.uuid;
    view.name = facts.name;
    view.node = node;
    view.memory_total = facts.memory_total;
    view.trouble = facts.trouble;
    view.lost = facts.lost;
    note_reserved(room.obstacle(position, anything), view);
    const auto drained = state.drains.find(facts.uuid);
    if (view.trouble.empty() && drained != state.drains.end()) {
      view.trouble = "out of use: " + drained->second;
      view.drained_why = drained->second;
    }
    const bool stale = !gpu.known || now.mono - gpu.sampled > kShownAge;
    if (!stale) {
      view.memory_used = facts.memory_used;
      view.memory_free = facts.memory_free;
      view.memory_left = room.left_on(position);
      view.utilization = facts.utilization;
      view.temperature = facts.temperature;
      view.power_mw = facts.power_mw;
    }
    ++position;
    bool strangers = false;  // or a job of ours that was not given the card
    if (facts.processes) {
      view.processes.emplace();
      for (const GpuProcess& process : *facts.processes) {
        GpuProcessView& p = view.processes->emplace_back();
        p.pid = process.pid;
        p.uid = process.uid;
        p.name = process.name;
        if (process.start_time != 0) {
          p.since = started_at(process.start_time, now);
        }
        if (notes != nullptr) {
          ProcessNote note = notes->of({process.pid, process.start_time, process.uid});
          p.user = std::move(note.user);
          p.command = std::move(note.command);
        }
        p.memory = process.memory;
        p.attempt = process.attempt.value;
        if (const auto attempt = state.attempts.find(process.attempt);
            attempt != state.attempts.end()) {
          p.job = attempt->second.job.value;
        }
        strangers = strangers || std::ranges::find(gpu.claims, process.attempt, &Claim::attempt) ==
                                     gpu.claims.end();
      }
    }
    for (const Claim& claim : gpu.claims) {
      ClaimView& c = view.claims.emplace_back();
      c.job = claim.job.value;
      c.attempt = claim.attempt.value;
      if (claim.memory != 0) {
        c.memory = claim.memory;
      }
    }
    view.state = !facts.trouble.empty()          ? "trouble"
                 : drained != state.drains.end() ? "drained"
                 : stale                         ? "unknown"
                 : !gpu.claims.empty()           ? "claimed"
                 : strangers                     ? "foreign"
                 : !view.reserved.empty()        ? "reserved"
                                                 : "free";
  }
  std::ranges::sort(views, {}, &GpuView::index);
  return views;
}

std::vector<QueueView> make_queue_views(const State& state) {
  std::map<QueueId, std::uint64_t> waiting;
  state.ready.for_each([&](const OrderKey& first, std::size_t count) {
    if (first.ordinary) {  // who is expedited stands in no queue's line
      waiting[state.jobs.at(first.job).queue] += count;
    }
  });
  std::vector<QueueView> views;
  for (const auto& [id, queue] : state.queues) {
    views.push_back({queue.name, queue.limit, queue.running, queue.paused, waiting[id]});
  }
  return views;
}

}  // namespace berth
