// The queries of api/resources.hpp.

#include "api/query_reader.hpp"
#include "api/resources.hpp"

namespace berth {
namespace {

constexpr std::uint32_t kListMax = 1'000;
constexpr std::uint32_t kPointsMax = 5'000;
constexpr std::uint32_t kSpans = 2'000;
constexpr std::uint32_t kHistoryPoints = 200;

void read_span(QueryReader& in, SpanQuery& out) {
  in.wall_time("from", out.from);
  in.wall_time("to", out.to);
  if (out.from && out.to && *out.from > *out.to) {
    in.failed("from", "is after `to`");
  }
}

}  // namespace

Result<PageQuery> parse_batch_query(const Query& query) {
  PageQuery out;
  QueryReader in(query);
  in.number("after", out.after);
  in.count("limit", out.limit, kListMax);
  out.descending = in.word("order", {"asc", "desc"}).value_or("asc") == "desc";
  TRY(in.finish());
  return out;
}

Result<PageQuery> parse_rule_changes_query(const Query& query) {
  PageQuery out;
  out.descending = true;
  QueryReader in(query);
  in.number("after", out.after);
  in.count("limit", out.limit, kListMax);
  TRY(in.finish());
  return out;
}

Result<SpanQuery> parse_timeline_query(const Query& query) {
  SpanQuery out;
  out.limit = kSpans;
  QueryReader in(query);
  read_span(in, out);
  in.count("limit", out.limit, kPointsMax);
  TRY(in.finish());
  return out;
}

Result<SpanQuery> parse_gpu_history_query(const Query& query) {
  SpanQuery out;
  out.limit = kHistoryPoints;
  QueryReader in(query);
  out.gpu = in.text("gpu").value_or("");
  if (out.gpu.empty()) {
    in.failed("gpu", "name one, by its UUID or index");
  }
  read_span(in, out);
  in.count("points", out.limit, kPointsMax);
  TRY(in.finish());
  return out;
}

Result<AttemptQuery> parse_usage_query(const Query& query) {
  AttemptQuery out;
  QueryReader in(query);
  in.number("attempt", out.attempt);
  in.count("points", out.points, kPointsMax);
  TRY(in.finish());
  return out;
}

namespace {

void read_lines(QueryReader& in, AttemptQuery& out) {
  if (in.has("lines")) {
    in.number("lines", out.lines.emplace());
  }
}

}  // namespace

Result<AttemptQuery> parse_log_query(const Query& query) {
  AttemptQuery out;
  QueryReader in(query);
  in.number("attempt", out.attempt);
  read_lines(in, out);
  out.download = in.flag("download");
  TRY(in.finish());
  return out;
}

Result<AttemptQuery> parse_log_stream_query(const Query& query) {
  AttemptQuery out;
  QueryReader in(query);
  in.number("attempt", out.attempt);
  in.number("offset", out.offset);
  read_lines(in, out);
  if (out.lines && out.offset > 0) {
    in.failed("lines", "give either offset or lines");
  }
  TRY(in.finish());
  return out;
}

Result<StreamQuery> parse_stream_query(const Query& query) {
  StreamQuery out;
  QueryReader in(query);
  if (in.has("topics")) {
    out.events = out.gpus = out.status = false;
    for (const std::string& topic : in.words("topics")) {
      bool* const wanted = topic == "events"   ? &out.events
                           : topic == "gpus"   ? &out.gpus
                           : topic == "status" ? &out.status
                                               : nullptr;
      if (wanted == nullptr) {
        in.failed("topics",
                  fmt::format("there is no topic \"{}\"; there are events, gpus, status", topic));
      } else {
        *wanted = true;
      }
    }
  }
  if (in.has("after")) {
    in.number("after", out.after.emplace());
  }
  TRY(in.finish());
  return out;
}

Result<ResultsQuery> parse_results_query(const Query& query) {
  ResultsQuery out;
  QueryReader in(query);
  in.number("batch", out.batch);
  in.ids("ids", out.ids);
  if (out.batch != 0 && out.ids) {
    in.failed("ids", "give either ids or batch");
  }
  out.metrics = in.words("metric");
  if (in.has("by")) {
    out.by = in.words("by");
  }
  if (in.has("over")) {
    out.over = in.words("over");
  }
  out.take = in.word("take", {"last", "best", "max", "min", "first", "mean"}).value_or("last");
  out.best = in.text("best").value_or("");
  out.partial = in.flag("partial");
  TRY(in.finish());
  return out;
}

Status parse_no_query(const Query& query) {
  return QueryReader(query).finish();
}

}  // namespace berth
