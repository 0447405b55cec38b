#include "daemon/views.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "daemon/attempt_env.hpp"
#include "proc/procfs.hpp"
#include "proc/record.hpp"

namespace berth {

JobView job_view(const JobRow& row, const std::string& node, const std::string& logs) {
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
  view.gpu_memory = row.request.gpu_memory;
  view.gpu_indices = row.gpu_indices;
  view.gpu_uuids = row.gpus;
  view.expedited = row.expedited && (row.state == JobState::queued);
  if (row.last_attempt) {
    view.node = node;
    view.log = row.log.empty() ? own_log_path(logs, row.id, std::max(row.attempts, 1U)) : row.log;
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
                          const std::string& logs) {
  JobFilter filter;
  filter.states = query.states;
  filter.queue = query.queue;
  filter.batch = BatchId{query.batch};
  if (query.ids) {
    for (const auto& [first, last] : query.ids->ranges()) {
      filter.ids.emplace_back(JobId{first}, JobId{last});
    }
  }
  filter.since = query.since;
  filter.after = JobId{query.after};
  filter.descending = query.descending;
  filter.limit = query.limit;
  TRY_ASSIGN(JobListing listing, reader.list(filter));
  JobPage page;
  page.jobs.reserve(listing.rows.size());
  for (std::size_t i = 0; i < listing.rows.size(); ++i) {
    JobView& view = page.jobs.emplace_back(job_view(listing.rows[i], node, logs));
    view.command = display_commands(listing.heads[i].commands);
    view.cwd = std::move(listing.heads[i].cwd);
  }
  if (listing.next) {
    page.next = listing.next->value;
  }
  return page;
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
  view.state = !row.ended        ? "running"
               : row.revoked     ? "revoked"
               : verdict.killed  ? "killed"
               : verdict.failure ? "failed"
                                 : "succeeded";
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
                                             const std::string& logs, const std::string& dir) {
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
  }
  TRY_ASSIGN(const auto attempts, reader.attempts(id));
  for (const AttemptRow& attempt : attempts) {
    detail.attempts.push_back(attempt_view(
        attempt, node, row->log.empty() ? own_log_path(logs, id, attempt.number) : row->log));
    if (!attempt.ended) {
      note_ending(detail.attempts.back(), dir);
      if (!detail.attempts.back().message.empty()) {
        detail.job.message = detail.attempts.back().message;
      }
    }
  }
  return std::optional(std::move(detail));
}

std::vector<GpuView> make_gpu_views(const State& state, const std::string& node, Now now) {
  std::vector<GpuView> views;
  for (const Gpu& gpu : state.gpus) {
    const GpuFacts& facts = gpu.facts;
    GpuView& view = views.emplace_back();
    view.index = facts.index;
    view.uuid = facts.uuid;
    view.name = facts.name;
    view.node = node;
    view.memory_total = facts.memory_total;
    view.trouble = facts.trouble;
    const bool stale = !gpu.known || now.mono - gpu.sampled > Millis(60'000);
    if (!stale) {
      view.memory_used = facts.memory_used;
      view.memory_free = facts.memory_free;
      view.utilization = facts.utilization;
      view.temperature = facts.temperature;
      view.power_mw = facts.power_mw;
    }
    bool strangers = false;
    if (facts.processes) {
      view.processes.emplace();
      for (const GpuProcess& process : *facts.processes) {
        GpuProcessView& p = view.processes->emplace_back();
        p.pid = process.pid;
        p.uid = process.uid;
        p.name = process.name;
        p.memory = process.memory;
        p.attempt = process.attempt.value;
        if (const auto attempt = state.attempts.find(process.attempt);
            attempt != state.attempts.end()) {
          p.job = attempt->second.job.value;
        }
        strangers = strangers || !process.attempt;
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
    view.state = !facts.trouble.empty() ? "trouble"
                 : stale                ? "unknown"
                 : !gpu.claims.empty()  ? "claimed"
                 : strangers            ? "foreign"
                                        : "free";
  }
  std::ranges::sort(views, {}, &GpuView::index);
  return views;
}

}  // namespace berth
