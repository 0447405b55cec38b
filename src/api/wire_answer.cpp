// Answers and errors.

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "api/archive.hpp"
#include "api/describe_views.hpp"
#include "api/wire.hpp"

namespace berth {

// These are found by argument-dependent lookup from the archives.

template <class A>
void describe(A& a, wire::Ref<A, JobView> job) {
  a.need("id", job.id);
  a.field("name", job.name);
  a.need("state", job.state);
  a.field("queue", job.queue);
  a.field("priority", job.priority);
  a.field("gpus", job.gpus.min);
  a.field("gpus_max", job.gpus.max);
  a.or_null("node", job.node);
  a.field("attempts", job.attempts);
  a.field("exit_code", job.exit_code);
  a.field("failure_class", job.failure_class);
  a.or_null("reason", job.reason);
  a.or_null("batch", job.batch);
  a.field("owner", job.owner);
  a.field("submitted_at", job.submitted_at);
  a.field("started_at", job.started_at);
  a.field("ended_at", job.ended_at);
  a.or_null("message", job.message);
  a.field("command", job.command);
  a.field("retries", job.retries);
  a.field("retries_used", job.retries_used);
  a.unless("excused", job.excused, 0);
  a.field("gpu_memory", job.gpu_memory);
  a.bytes("cwd", job.cwd);
  a.bytes_or_null("log", job.log);
  a.field("gpu_indices", job.gpu_indices);
  a.field("gpu_uuids", job.gpu_uuids);
  a.unless("expedited", job.expedited, false);
  a.unless("params", job.params, {});
  a.or_null("attempt", job.attempt);
  a.unless("why", job.why, {});
}

template <class A>
void describe(A& a, wire::Ref<A, AttemptView> attempt) {
  a.need("id", attempt.id);
  a.field("job", attempt.job);
  a.field("number", attempt.number);
  a.field("state", attempt.state);
  a.or_null("node", attempt.node);
  a.field("gpu_indices", attempt.gpu_indices);
  a.field("gpu_uuids", attempt.gpu_uuids);
  a.field("gpu_memory", attempt.gpu_memory);
  a.field("started_at", attempt.started_at);
  a.field("ended_at", attempt.ended_at);
  a.field("failure_class", attempt.failure_class);
  a.field("exit_code", attempt.exit_code);
  a.field("signal", attempt.signal);
  a.or_null("message", attempt.message);
  a.field("user_time_ms", attempt.user_time);
  a.field("system_time_ms", attempt.system_time);
  a.field("max_rss", attempt.max_rss);
  a.field("peak_memory", attempt.peak_memory);
  a.field("leftover", attempt.leftover);
  a.field("log_dropped", attempt.log_dropped);
  a.bytes_or_null("log", attempt.log);
  a.bytes_or_null("report", attempt.report);
}

template <class A>
void describe(A& a, wire::Ref<A, JobDetail> detail) {
  a.need("job", detail.job);
  a.field("attempts", detail.attempts);
  a.field("commands", detail.commands);
  if constexpr (A::kWriting) {
    if (detail.environment) {
      a.bytes_list("environment", *detail.environment);
    }
  } else {
    Environment environment;
    a.bytes_list("environment", environment);
    if (!environment.empty()) {
      detail.environment = std::move(environment);
    }
  }
  a.bytes_list("env", detail.extra_env);
  a.field("after", detail.after);
  a.unless("after_kind", detail.after_kind, After::ok);
  a.field("start_at", detail.start_at);
  a.field("rules", detail.rules);
  a.field("cpus", detail.cpus);
  a.field("memory", detail.memory);
  a.field("resources", detail.resources);
  a.field("time_ms", detail.time_limit);
  a.field("grace_ms", detail.grace);
  a.field("linger", detail.linger);
  a.unless("signal", detail.signal, {});
  if (!A::kWriting || !detail.work_dir.empty()) {
    a.bytes("work_dir", detail.work_dir);
  }
  if (!A::kWriting || !detail.log.empty()) {
    a.bytes("log", detail.log);
  }
  std::string fingerprint = format_fingerprint(detail.fingerprint);
  a.unless("fingerprint", fingerprint, {});
  if constexpr (!A::kWriting) {
    detail.fingerprint = parse_fingerprint(fingerprint).value_or(0);
  }
  a.unless("batch_traits", detail.batch_traits, {});
}

template <class A>
void describe(A& a, wire::Ref<A, JobPage> page) {
  a.need("jobs", page.jobs);
  a.field("next", page.next);
}

template <class A>
void describe(A& a, wire::Ref<A, ReasonView> reason) {
  a.field("kind", reason.kind);
  a.field("text", reason.text);
  a.field("numbers", reason.numbers);
  a.field("names", reason.names);
  a.field("jobs", reason.jobs);
  a.field("gpus", reason.gpus);
}

template <class A>
void describe(A& a, wire::Ref<A, OutlookView> outlook) {
  a.field("gpus", outlook.gpus);
  a.field("jobs", outlook.jobs);
  a.field("within_ms", outlook.within);
}

template <class A>
void describe(A& a, wire::Ref<A, WhyView> why) {
  a.need("job", why.job);
  a.need("reasons", why.reasons);
  a.field("ahead", why.ahead);
  a.or_null("outlook", why.outlook);
  a.unless("foreseen", why.foreseen, {});
}

template <class A>
void describe(A& a, wire::Ref<A, HoldupView> holdup) {
  a.need("kind", holdup.kind);
  a.need("text", holdup.text);
  a.need("first", holdup.first);
  a.need("jobs", holdup.jobs);
  a.field("why", holdup.why);
}

template <class A>
void describe(A& a, wire::Ref<A, BacklogView> backlog) {
  a.need("waiting", backlog.waiting);
  a.need("holdups", backlog.holdups);
}

template <class A>
void describe(A& a, wire::Ref<A, StatusView> status) {
  a.need("version", status.version);
  a.field("pid", status.pid);
  a.bytes("instance", status.instance);
  a.or_null("node", status.node);
  a.field("uptime_ms", status.uptime);
  std::map<std::string, std::uint64_t> counts;
  if constexpr (A::kWriting) {
    a.field("counts", counts_by_name(status.counts));
  } else {
    a.field("counts", counts);
    for (const auto& [name, count] : counts) {
      if (const auto state = job_state_from(name)) {
        status.counts[*state] = count;
      }
    }
  }
  a.field("gpus", status.gpus);
  a.field("probe", status.probe);
  a.field("loop", status.loop);
  a.field("space", status.space);
  a.field("queues", status.queues);
  a.field("paused", status.paused);
  a.field("problems", status.problems);
}

template <class A>
void describe(A& a, wire::Ref<A, EventView> event) {
  a.need("seq", event.seq);
  a.field("time", event.time);
  a.field("kind", event.kind);
  a.or_null("job", event.job);
  a.or_null("attempt", event.attempt);
  a.or_null("batch", event.batch);
  a.or_null("detail", event.detail);
}

template <class A>
void describe(A& a, wire::Ref<A, EventPage> page) {
  a.need("events", page.events);
  a.need("last", page.last);
  a.unless("more", page.more, false);
}

template <class A>
void describe(A& a, wire::Ref<A, SubmitAnswer> answer) {
  a.or_null("batch", answer.batch);
  std::vector<std::uint64_t> ids{answer.first, answer.last};
  a.need("ids", ids);
  a.check(ids.size() == 2 && ids[0] >= 1 && ids[0] <= ids[1], "ids",
          "expected the first and the last id");
  if constexpr (!A::kWriting) {
    if (ids.size() == 2) {
      answer.first = ids[0];
      answer.last = ids[1];
    }
  }
}

template <class A>
void describe(A& a, wire::Ref<A, KillAnswer> answer) {
  a.field("killed", answer.killed);
  a.field("cancelled", answer.cancelled);
  a.field("finished", answer.finished);
  a.field("unknown", answer.unknown);
}

template <class A>
void describe(A& a, wire::Ref<A, WaitAnswer> answer) {
  a.need("done", answer.done);
  a.need("jobs", answer.jobs);
  a.field("unknown", answer.unknown);
}

namespace {

struct GpuList {
  std::vector<GpuView> gpus;
};

template <class A>
void describe(A& a, wire::Ref<A, GpuList> list) {
  a.need("gpus", list.gpus);
}

struct ErrorPart {
  std::string code;
  std::string message;
};

template <class A>
void describe(A& a, wire::Ref<A, ErrorPart> error) {
  a.field("code", error.code);
  a.field("message", error.message);
}

struct ErrorBody {
  ErrorPart error;
};

template <class A>
void describe(A& a, wire::Ref<A, ErrorBody> body) {
  a.need("error", body.error);
}

template <class T>
std::string write(const T& value) {
  return wire::Writer::text(value);
}

template <class T>
std::string write_array(const std::vector<T>& values) {
  std::string out = "[";
  for (const T& value : values) {
    out += out.size() == 1 ? "\n" : ",\n";
    out += write(value);
  }
  out += values.empty() ? "]\n" : "\n]\n";
  return out;
}

constexpr std::pair<ErrorCode, std::string_view> kCodes[] = {
    {ErrorCode::invalid, "invalid"},
    {ErrorCode::not_found, "not_found"},
    {ErrorCode::conflict, "conflict"},
    {ErrorCode::refused, "refused"},
    {ErrorCode::no_space, "no_space"},
    {ErrorCode::unavailable, "unavailable"},
    {ErrorCode::busy, "busy"},
    {ErrorCode::corrupt, "corrupt"},
    {ErrorCode::io, "io"},
};

}  // namespace

std::string encode(const SubmitAnswer& answer) {
  return write(answer);
}
std::string encode(const JobPage& page) {
  return write(page);
}

std::span<const std::string_view> job_fields() {
  static constexpr std::array<std::string_view, 31> kFields{
      "id",       "name",        "state",        "queue",      "priority",      "gpus",
      "gpus_max", "node",        "attempts",     "exit_code",  "failure_class", "reason",
      "batch",    "owner",       "submitted_at", "started_at", "ended_at",      "message",
      "command",  "retries",     "retries_used", "excused",    "gpu_memory",    "cwd",
      "log",      "gpu_indices", "gpu_uuids",    "expedited",  "params",        "attempt",
      "why"};
  return kFields;
}

bool is_job_field(std::string_view name) {
  return std::ranges::find(job_fields(), name) != job_fields().end();
}

std::string encode(const JobPage& page, const std::vector<std::string>& fields) {
  if (fields.empty()) {
    return write(page);
  }
  std::string out = R"({"jobs":[)";
  bool first = true;
  for (const JobView& job : page.jobs) {
    out += std::exchange(first, false) ? "" : ",";
    wire::Writer::object(out, job, fields);
  }
  out += R"(],"next":)";
  out += wire::Writer::text(page.next);
  return out + '}';
}

std::string encode(const JobDetail& detail) {
  return write(detail);
}
std::string encode(const WhyView& why) {
  return write(why);
}
std::string encode(const BacklogView& backlog) {
  return write(backlog);
}
std::string encode(const KillAnswer& answer) {
  return write(answer);
}
std::string encode(const WaitAnswer& answer) {
  return write(answer);
}
std::string encode(const std::vector<GpuView>& gpus) {
  return write(GpuList{gpus});
}
std::string encode(const StatusView& status) {
  return write(status);
}
std::string encode(const EventView& event) {
  return write(event);
}
std::string encode(const EventPage& page) {
  return write(page);
}

template <class T>
Result<T> decode(std::string_view body) {
  return wire::read<T>(body, wire::Unknown::ignored);
}
template <>
Result<std::vector<GpuView>> decode(std::string_view body) {
  TRY_ASSIGN(GpuList list, wire::read<GpuList>(body, wire::Unknown::ignored));
  return std::move(list.gpus);
}
template Result<SubmitAnswer> decode(std::string_view);
template Result<JobPage> decode(std::string_view);
template Result<JobDetail> decode(std::string_view);
template Result<WhyView> decode(std::string_view);
template Result<BacklogView> decode(std::string_view);
template Result<KillAnswer> decode(std::string_view);
template Result<WaitAnswer> decode(std::string_view);
template Result<StatusView> decode(std::string_view);
template Result<EventPage> decode(std::string_view);

std::string encode_array(const std::vector<JobView>& jobs) {
  return write_array(jobs);
}
std::string encode_array(const std::vector<GpuView>& gpus) {
  return write_array(gpus);
}
std::string encode_array(const std::vector<WhyView>& whys) {
  return write_array(whys);
}

std::string encode_array(const std::vector<EventView>& events) {
  return write_array(events);
}

std::string_view to_string(ErrorCode code) {
  for (const auto& [value, name] : kCodes) {
    if (value == code) {
      return name;
    }
  }
  return "io";
}

std::string encode_error(const Error& error) {
  return write(ErrorBody{{std::string(to_string(error.code)), error.message}});
}

int http_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid:
      return 400;
    case ErrorCode::refused:
      return 403;
    case ErrorCode::not_found:
      return 404;
    case ErrorCode::conflict:
      return 409;
    case ErrorCode::busy:
      return 429;
    case ErrorCode::unavailable:
      return 503;
    case ErrorCode::no_space:
      return 507;
    case ErrorCode::corrupt:
    case ErrorCode::io:
      return 500;
  }
  return 500;
}

HttpResponse error_response(const Error& error) {
  HttpResponse response;
  response.status = http_status(error.code);
  response.body = encode_error(error);
  if (error.code == ErrorCode::busy) {
    response.headers.emplace_back("Retry-After", "1");
  }
  return response;
}

Result<std::string> body_or_error(HttpResponse response) {
  if (response.status >= 200 && response.status < 300) {
    return std::move(response.body);
  }
  ErrorCode code = ErrorCode::io;
  if (auto body = wire::read<ErrorBody>(response.body, wire::Unknown::ignored)) {
    for (const auto& [known, name] : kCodes) {
      code = name == body->error.code ? known : code;
    }
    if (!body->error.message.empty()) {
      return fail(code, std::move(body->error.message));
    }
  }
  return fail(
      code, fmt::format("the daemon answered with HTTP status {} and no message", response.status));
}

}  // namespace berth
