// The values of api/resources.hpp as JSON.

#include <utility>

#include "api/archive.hpp"
#include "api/describe_views.hpp"
#include "api/resources.hpp"
#include "api/wire.hpp"

namespace berth {
namespace {

constexpr std::size_t kFileNameMax = 255;

/// Of some numbers null says that there is none.
template <class T>
std::optional<T> unless_zero(T value) {
  return value == T{} ? std::nullopt : std::optional(value);
}

}  // namespace

void describe(wire::Writer& a, const BatchView& batch) {
  a.need("id", batch.id);
  a.or_null("name", batch.name);
  a.need("owner", batch.owner);
  a.need("max_concurrent", batch.max_concurrent);
  a.need("jobs", batch.jobs);
  a.need("submitted_at", batch.submitted_at);
  a.need("counts", counts_by_name(batch.counts));
  a.need("open", batch.open);
  a.need("rules", batch.rules);
  a.need("traits", batch.traits);
}

void describe(wire::Writer& a, const BatchPage& page) {
  a.need("batches", page.batches);
  a.need("next", page.next);
}

void describe(wire::Writer& a, const QueueDetail& queue) {
  describe<wire::Writer>(a, queue.queue);
  a.need("rules", queue.rules);
  a.need("counts", counts_by_name(queue.counts));
}

void describe(wire::Writer& a, const SpanView& span) {
  a.need("attempt", span.attempt);
  a.need("number", span.number);
  a.need("job", span.job);
  a.need("name", span.name);
  a.need("state", span.state);
  a.need("failure_class", span.failure_class);
  a.need("gpu_uuids", span.gpu_uuids);
  a.need("gpu_indices", span.gpu_indices);
  a.need("started_at", span.started_at);
  a.need("ended_at", span.ended_at);
}

void describe(wire::Writer& a, const Timeline& timeline) {
  a.need("attempts", timeline.attempts);
  a.need("more", timeline.more);
}

void describe(wire::Writer& a, const RuleChange& change) {
  a.need("seq", change.seq);
  a.need("time", change.time);
  a.need("detail", change.detail);
}

void describe(wire::Writer& a, const RuleChanges& changes) {
  a.need("changes", changes.changes);
  a.need("next", changes.next);
}

void describe(wire::Writer& a, const LiveStatus& status) {
  a.need("counts", counts_by_name(status.counts));
  a.need("paused", status.paused);
  a.need("queues", status.queues);
  a.need("space", status.space);
  a.or_null("probe_error", status.probe_error);
  a.need("problems", status.problems);
}

void describe(wire::Writer& a, const HealthReason& reason) {
  a.need("what", reason.what);
  a.need("message", reason.message);
}

void describe(wire::Writer& a, const HealthView& health) {
  a.need("status", health.status);
  a.need("reasons", health.reasons);
}

void describe(wire::Writer& a, const GpuPoint& point) {
  a.need("t", point.t);
  a.need("memory_used", point.memory_used);
  a.need("utilization", point.utilization);
  a.need("temperature", point.temperature);
  a.need("power_mw", point.power_mw);
}

void describe(wire::Writer& a, const GpuHistoryView& history) {
  a.need("gpu", history.gpu);
  a.need("points", history.points);
}

void describe(wire::Writer& a, const UsagePoint& point) {
  a.need("t", point.t);
  a.need("memory", point.memory);
  a.need("utilization", point.utilization);
}

void describe(wire::Writer& a, const UsageView& usage) {
  a.or_null("attempt", usage.attempt);
  a.need("claim", usage.claim);
  a.need("points", usage.points);
}

void describe(wire::Writer& a, const PreviewWait& wait) {
  a.need("id", wait.id);
  a.need("jobs", wait.jobs);
  a.or_null("before", wait.before);
  a.or_null("after", wait.after);
  a.unless("why_before", wait.why_before, {});
  a.unless("why_after", wait.why_after, {});
  a.unless("gpus_before", wait.gpus_before, {});
  a.unless("gpus_after", wait.gpus_after, {});
}

void describe(wire::Writer& a, const PreviewView& preview) {
  a.need("starts", preview.starts);
  a.need("waits", preview.waits);
  a.need("more", preview.more);
  a.need("problems", preview.problems);
}

void describe(wire::Writer& a, const ProblemView& problem) {
  a.need("severity", problem.severity);
  a.or_null("file", problem.file);
  a.need("line", unless_zero(problem.line));
  a.need("column", unless_zero(problem.column));
  a.need("message", problem.message);
}

void describe(wire::Writer& a, const CheckedJob& job) {
  a.need("name", job.name);
  a.need("queue", job.queue);
  a.need("priority", job.priority);
  a.need("gpus", job.gpus.min);
  a.need("gpus_max", job.gpus.max);
  a.need("gpu_memory", job.gpu_memory);
  a.need("command", job.command);
  a.bytes("cwd", job.cwd);
  a.need("after", job.after);
  a.need("params", job.params);
  a.need("retries", job.retries);
}

void describe(wire::Writer& a, const CheckedFile& file) {
  a.need("dialect", file.dialect);
  a.need("total", file.total);
  a.need("jobs", file.jobs);
  a.need("problems", file.problems);
}

namespace {

struct CheckBody {
  FileRequest file;
};
struct SubmitFileBody {
  FileRequest file;
};

void describe_file(wire::Reader& a, FileRequest& file) {
  a.need("text", file.text);
  a.field("name", file.name);
  a.field("dialect", file.dialect);
  a.need("cwd", file.cwd);
  a.check(file.text.size() <= kFileTextMax, "text",
          "is longer than 4 MiB; submit it with berth run");
  a.check(file.name.size() <= kFileNameMax && file.name.find('/') == std::string::npos, "name",
          "must be the name of a file, without a directory");
  a.check(file.cwd.starts_with('/'), "cwd", "must be an absolute path");
}

void describe(wire::Reader& a, CheckBody& body) {
  describe_file(a, body.file);
}

void describe(wire::Reader& a, SubmitFileBody& body) {
  describe_file(a, body.file);
  a.field("key", body.file.key);
  a.check(body.file.key.size() <= kKeyMax, "key", "is longer than 128 bytes");
  a.field("leave_out_done", body.file.leave_out_done);
}

template <class T>
std::string write(const T& value) {
  return wire::Writer::text(value);
}

}  // namespace

Result<FileRequest> decode_check_request(std::string_view body) {
  TRY_ASSIGN(CheckBody read, wire::read<CheckBody>(body, wire::Unknown::error));
  return std::move(read.file);
}
Result<FileRequest> decode_file_request(std::string_view body) {
  TRY_ASSIGN(SubmitFileBody read, wire::read<SubmitFileBody>(body, wire::Unknown::error));
  return std::move(read.file);
}

std::string encode_submitted_file(const std::optional<SubmitAnswer>& answer,
                                  const std::vector<SkippedJob>& skipped) {
  namespace json = wire::json;
  json::array list;
  for (const SkippedJob& one : skipped) {
    list.push_back({{"name", to_utf8(one.name)},
                    {"job", one.job},
                    {"why", one.succeeded ? "succeeded" : "under_way"}});
  }
  json::object out{{"batch", nullptr}, {"ids", json::array{}}, {"skipped", std::move(list)}};
  if (answer) {
    out["batch"] = answer->batch == 0 ? json::value(nullptr) : json::value(answer->batch);
    out["ids"] = {answer->first, answer->last};
  }
  return json::serialize(out);
}

std::string encode(const BatchView& batch) {
  return write(batch);
}
std::string encode(const BatchPage& page) {
  return write(page);
}
std::string encode(const std::vector<QueueDetail>& queues) {
  return R"({"queues":)" + wire::Writer::text(queues) + '}';
}
std::string encode(const Timeline& timeline) {
  return write(timeline);
}
std::string encode(const RuleChanges& changes) {
  return write(changes);
}
std::string encode(const LiveStatus& status) {
  return write(status);
}
std::string encode(const HealthView& health) {
  return write(health);
}
std::string encode(const GpuHistoryView& history) {
  return write(history);
}
std::string encode(const UsageView& usage) {
  return write(usage);
}
std::string encode(const PreviewView& preview) {
  return write(preview);
}
std::string encode(const CheckedFile& file) {
  return write(file);
}

std::string encode_refused_file(const Error& error, const std::vector<ProblemView>& problems) {
  // What encode_error() says, and the problems.
  std::string out = encode_error(error);
  out.pop_back();
  return out + R"(,"problems":)" + wire::Writer::text(problems) + '}';
}

std::string encode_line(const std::vector<GpuView>& gpus) {
  return wire::Writer::text(gpus);
}

}  // namespace berth
