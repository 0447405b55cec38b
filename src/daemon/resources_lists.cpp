// Batches, queues, what ran when, how the rules have changed.

#include <map>
#include <utility>

#include <fmt/format.h>

#include "daemon/resources.hpp"

namespace berth {
namespace {

constexpr Millis kTimelineSpan = std::chrono::hours(24);

std::map<JobState, std::uint64_t> by_state(const StateCounts& counts) {
  std::map<JobState, std::uint64_t> named;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    named[static_cast<JobState>(i)] = counts.at(i);
  }
  return named;
}

BatchView batch_view(BatchRow row) {
  BatchView view;
  view.id = row.id.value;
  view.name = std::move(row.name);
  view.owner = row.owner;
  view.max_concurrent = row.max_concurrent;
  view.jobs = row.jobs;
  view.submitted_at = row.submitted;
  view.counts = by_state(row.counts);
  view.open = row.open;
  view.rules = std::move(row.rules);
  view.traits = std::move(row.traits);
  return view;
}

SpanView span_view(AttemptSpan span) {
  AttemptRow& attempt = span.attempt;
  SpanView view;
  view.attempt = attempt.id.value;
  view.number = attempt.number;
  view.job = attempt.job.value;
  view.name = std::move(span.name);
  view.state = attempt_state(attempt);
  view.failure_class = attempt.verdict.failure;
  view.gpu_uuids = std::move(attempt.gpus);
  view.gpu_indices = std::move(attempt.gpu_indices);
  view.started_at = attempt.started;
  view.ended_at = attempt.ended;
  return view;
}

}  // namespace

void Resources::batches(const HttpRequest& request, Respond respond) {
  const auto query = parse_batch_query(request.query);
  if (!query) {
    respond(error_response(query.error()));
    return;
  }
  answer_from_store(
      [query = *query](StoreReader& reader) -> Result<std::string> {
        TRY_ASSIGN(auto rows, reader.batches(BatchId{query.after}, query.limit, query.descending));
        BatchPage page;
        if (rows.size() == query.limit) {
          page.next = rows.back().id.value;
        }
        for (BatchRow& row : rows) {
          page.batches.push_back(batch_view(std::move(row)));
        }
        return encode(page);
      },
      std::move(respond));
}

void Resources::batch(std::uint64_t id, Respond respond) {
  answer_from_store(
      [id](StoreReader& reader) -> Result<std::string> {
        TRY_ASSIGN(auto row, reader.batch(BatchId{id}));
        if (!row) {
          return fail(ErrorCode::not_found,
                      fmt::format("there is no batch {}; GET /api/batches lists them", id));
        }
        return encode(batch_view(std::move(*row)));
      },
      std::move(respond));
}

std::vector<QueueDetail> Resources::queue_details(const State& state) const {
  std::vector<QueueDetail> queues;
  std::vector<QueueView> views = make_queue_views(state);
  auto view = views.begin();
  for (const auto& [id, queue] : state.queues) {
    queues.push_back({std::move(*view++), queue.rules, {}});
  }
  return queues;
}

void Resources::queues(Respond respond) {
  // What has ended is in the store alone.
  read_store(
      [](StoreReader& reader) { return reader.queue_counts(); },
      [this, respond = std::move(respond)](Result<std::map<QueueId, StateCounts>> counts) {
        if (!counts) {
          respond(error_response(counts.error()));
          return;
        }
        needs_.engine.read(
            [this, &counts = *counts](const State& state) {
              auto queues = queue_details(state);
              auto detail = queues.begin();
              for (const auto& [id, queue] : state.queues) {
                (detail++)->counts = by_state(counts[id]);
              }
              return queues;
            },
            [respond](const std::vector<QueueDetail>& queues) { respond(ok(encode(queues))); });
      });
}

void Resources::timeline(const HttpRequest& request, Respond respond) {
  const auto query = parse_timeline_query(request.query);
  if (!query) {
    respond(error_response(query.error()));
    return;
  }
  const Millis to = query->to.value_or(read_clock().wall);
  const Millis from = query->from.value_or(to - kTimelineSpan);
  answer_from_store(
      [from, to, limit = query->limit](StoreReader& reader) -> Result<std::string> {
        TRY_ASSIGN(AttemptSpans found, reader.spans(from, to, limit));
        Timeline timeline;
        timeline.more = found.more;
        for (AttemptSpan& span : found.spans) {
          timeline.attempts.push_back(span_view(std::move(span)));
        }
        return encode(timeline);
      },
      std::move(respond));
}

void Resources::rule_changes(const HttpRequest& request, Respond respond) {
  const auto query = parse_rule_changes_query(request.query);
  if (!query) {
    respond(error_response(query.error()));
    return;
  }
  answer_from_store(
      [query = *query](StoreReader& reader) -> Result<std::string> {
        HistoryQuery asked;
        asked.after = query.after;
        asked.limit = query.limit;
        asked.kinds = {"changed"};
        asked.descending = true;
        TRY_ASSIGN(const HistoryPage page, reader.history_page(asked));
        RuleChanges changes;
        for (const HistoryRow& row : page.rows) {
          if (!row.job && row.detail.starts_with("rules")) {
            changes.changes.push_back({row.seq, row.wall, row.detail});
          }
        }
        if (page.more) {
          changes.next = page.last;
        }
        return encode(changes);
      },
      std::move(respond));
}

}  // namespace berth
