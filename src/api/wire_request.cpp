// Requests: submissions, kills and the queries of reading routes.

#include <fmt/format.h>

#include <charconv>
#include <climits>

#include "api/archive.hpp"
#include "api/target.hpp"
#include "api/wire.hpp"

namespace berth {
namespace {

constexpr Millis kTimeMax = std::chrono::hours(24 * 3660);
constexpr std::size_t kNameMax = 1024;
constexpr std::uint64_t kStreamJobsMax = 100'000'000;

bool in_time_range(Millis time) {
  return time >= Millis(0) && time <= kTimeMax;
}

/// The top level of a submission, with the parts that jobs share.
struct SubmitBody {
  event::Submit submit;
  Environment environment;
  std::uint32_t umask = 022;
  std::int32_t nice = 0;
};

struct BatchPart {
  std::string name;
  std::uint32_t max_concurrent = 0;
  friend bool operator==(const BatchPart&, const BatchPart&) = default;
};

template <class A>
void describe(A& a, wire::Ref<A, BatchPart> batch) {
  a.field("name", batch.name);
  a.unless("max_concurrent", batch.max_concurrent, 0);
  a.check(batch.name.size() <= kNameMax, "name", "is longer than 1024 bytes");
}

}  // namespace

// Found by argument-dependent lookup from the archives.
template <class A>
void describe(A& a, wire::Ref<A, QueueSpec> queue) {
  a.need("name", queue.name);
  a.field("limit", queue.limit);
  a.check(!queue.name.empty() && queue.name.size() <= kNameMax, "name",
          "must have 1 to 1024 bytes");
}

namespace {

template <class A>
void check_environment(A& a, const Environment& environment, std::string_view key) {
  if constexpr (!A::kWriting) {
    for (std::size_t i = 0; i < environment.size(); ++i) {
      const auto equals = environment[i].find('=');
      if (equals == 0 || equals == std::string::npos) {
        a.check(false, fmt::format("{}[{}]", key, i), "is not of the form NAME=value");
      }
      if (environment[i].size() > wire::kStringMax) {
        a.check(false, fmt::format("{}[{}]", key, i),
                fmt::format("{} has {} bytes; the kernel takes {} at most",
                            to_utf8(environment[i].substr(0, std::min<std::size_t>(equals, 100))),
                            environment[i].size(), wire::kStringMax));
      }
    }
  }
}

}  // namespace

template <class A>
void describe(A& a, wire::Ref<A, JobSpec> job) {
  static const JobSpec kUsual;
  auto& request = job.request;
  auto& payload = job.payload;
  a.field("name", job.name);
  a.unless("queue", job.queue, kUsual.queue);
  a.unless("priority", job.priority, kUsual.priority);
  a.unless("gpus", request.gpus, kUsual.request.gpus);
  a.unless("gpu_memory", request.gpu_memory, {});
  a.unless("cpus", request.cpus, 0);
  a.unless("memory", request.memory, 0);
  a.unless("resources", request.resources, {});
  a.unless("min_free_memory", request.min_free_memory, {});
  a.unless("max_utilization", request.max_utilization, {});
  a.unless("after", job.after, {});
  a.unless("after_index", job.after_index, {});
  a.unless("retries", job.retries, 0);
  a.field("commands", payload.commands);
  if (!A::kWriting || !payload.extra_env.empty()) {
    a.bytes_list("env", payload.extra_env);
  }
  a.bytes("cwd", payload.cwd);
  a.bytes_or_null("log", payload.log);
  a.unless("time_ms", payload.time_limit, Millis(0));
  a.unless("grace_ms", payload.grace, kUsual.payload.grace);
  a.unless("linger", payload.linger, false);

  a.check(job.name.size() <= kNameMax, "name", "is longer than 1024 bytes");
  a.check(!job.queue.empty() && job.queue.size() <= kNameMax, "queue", "must have 1 to 1024 bytes");
  a.check(request.max_utilization.value_or(0) <= 100, "max_utilization", "is a percentage");
  a.check(!payload.commands.empty(), "commands", "a job needs at least one command");
  a.check(payload.cwd.starts_with('/'), "cwd", "must be an absolute path");
  a.check(payload.log.empty() || payload.log.starts_with('/'), "log", "must be an absolute path");
  a.check(payload.cwd.size() < PATH_MAX, "cwd", "is too long for a path");
  a.check(payload.log.size() < PATH_MAX, "log", "is too long for a path");
  a.check(in_time_range(payload.time_limit), "time_ms", "must be 0 to ten years");
  a.check(in_time_range(payload.grace), "grace_ms", "must be 0 to ten years");
  check_environment(a, payload.extra_env, "env");
}

namespace {

/// What a submission in one body and one in many lines have in common: all but the jobs.
template <class A, class Body>
void describe_shared(A& a, Body& body) {
  auto& submit = body.submit;
  a.unless("key", submit.client_key, {});
  BatchPart batch{submit.batch_name, submit.batch_max_concurrent};
  a.unless("batch", batch, {});
  if constexpr (!A::kWriting) {
    submit.batch_name = batch.name;
    submit.batch_max_concurrent = batch.max_concurrent;
  }
  a.unless("queues", submit.queues, {});
  a.unless("resources", submit.resources, {});
  a.bytes_list("environment", body.environment);
  a.field("umask", body.umask);
  a.field("nice", body.nice);
  a.check(submit.client_key.size() <= 128, "key", "is longer than 128 bytes");
  a.check(body.umask <= 0777, "umask", "must be 0 to 511 (octal 777)");
  a.check(body.nice >= -20 && body.nice <= 19, "nice", "must be -20 to 19");
  check_environment(a, body.environment, "environment");
}

/// The first line of a stream.
struct HeadBody {
  event::SubmitBegin submit;
  Environment environment;
  std::uint32_t umask = 022;
  std::int32_t nice = 0;
};

template <class A>
void describe(A& a, wire::Ref<A, HeadBody> body) {
  describe_shared(a, body);
  a.need("jobs", body.submit.count);
  a.check(body.submit.count > 0, "jobs", "there must be at least one");
  a.check(body.submit.count <= kStreamJobsMax, "jobs", "more than 100 million at once");
}

template <class A>
void describe(A& a, wire::Ref<A, SubmitBody> body) {
  auto& submit = body.submit;
  describe_shared(a, body);
  a.need("jobs", submit.jobs);
  a.check(!submit.jobs.empty(), "jobs", "there must be at least one");
  if constexpr (!A::kWriting) {
    for (std::size_t i = 0; i < submit.jobs.size(); ++i) {
      for (const std::uint32_t index : submit.jobs[i].after_index) {
        if (index >= submit.jobs.size() || index == i) {
          a.check(false, fmt::format("jobs[{}].after_index", i),
                  fmt::format("there is no other job {} in this submission", index));
        }
      }
    }
  }
}

}  // namespace

template <class A>
void describe(A& a, wire::Ref<A, KillRequest> kill) {
  a.unless("all", kill.all, false);
  a.unless("ids", kill.ids, {});
  a.unless("grace_ms", kill.grace, {});
  a.check(kill.all != !kill.ids.empty(), "ids", "give either a list of ids or \"all\": true");
  a.check(in_time_range(kill.grace.value_or(Millis(0))), "grace_ms", "must be 0 to ten years");
}

std::string encode_submit(const event::Submit& submit) {
  SubmitBody body;
  body.submit = submit;
  if (!submit.jobs.empty()) {
    const Payload& first = submit.jobs.front().payload;
    body.environment = first.environment ? *first.environment : Environment{};
    body.umask = first.umask;
    body.nice = first.nice;
  }
  return wire::json::serialize(wire::Writer::object(body));
}

Result<event::Submit> decode_submit(std::string_view text) {
  TRY_ASSIGN(SubmitBody body, wire::read<SubmitBody>(text, wire::Unknown::error));
  const auto environment = std::make_shared<const Environment>(std::move(body.environment));
  for (JobSpec& job : body.submit.jobs) {
    job.payload.environment = environment;
    job.payload.umask = body.umask;
    job.payload.nice = body.nice;
  }
  return std::move(body.submit);
}

std::string encode_stream_head(const event::Submit& submit) {
  HeadBody body;
  body.submit.client_key = submit.client_key;
  body.submit.batch_name = submit.batch_name;
  body.submit.batch_max_concurrent = submit.batch_max_concurrent;
  body.submit.queues = submit.queues;
  body.submit.resources = submit.resources;
  body.submit.count = submit.jobs.size();
  if (!submit.jobs.empty()) {
    const Payload& first = submit.jobs.front().payload;
    body.environment = first.environment ? *first.environment : Environment{};
    body.umask = first.umask;
    body.nice = first.nice;
  }
  return wire::json::serialize(wire::Writer::object(body));
}

std::string encode_stream_job(const JobSpec& job) {
  return wire::json::serialize(wire::Writer::object(job));
}

Result<StreamHead> decode_stream_head(std::string_view line) {
  auto body = wire::read<HeadBody>(line, wire::Unknown::error);
  if (!body) {
    return fail(body.error().code, "line 1: " + body.error().message);
  }
  StreamHead head;
  head.begin = std::move(body->submit);
  head.environment = std::make_shared<const Environment>(std::move(body->environment));
  head.umask = body->umask;
  head.nice = body->nice;
  return head;
}

Result<JobSpec> decode_stream_job(std::string_view line, const StreamHead& head,
                                  std::uint64_t index) {
  auto job = wire::read<JobSpec>(line, wire::Unknown::error);
  if (!job) {
    return fail(job.error().code, fmt::format("line {}: {}", index + 2, job.error().message));
  }
  for (const std::uint32_t position : job->after_index) {
    if (position >= index) {
      return fail(ErrorCode::invalid,
                  fmt::format("line {}: after_index {} is not an earlier job of this stream",
                              index + 2, position));
    }
  }
  job->payload.environment = head.environment;
  job->payload.umask = head.umask;
  job->payload.nice = head.nice;
  return job;
}

std::string encode_kill(const KillRequest& request) {
  return wire::json::serialize(wire::Writer::object(request));
}

Result<KillRequest> decode_kill(std::string_view body) {
  return wire::read<KillRequest>(body, wire::Unknown::error);
}

namespace {

/// Reads the parameters of a query one by one and refuses what is left.
class QueryReader {
 public:
  explicit QueryReader(const Query& query) : rest_(query) {}

  std::optional<std::string> text(const std::string& name) {
    const auto it = rest_.find(name);
    if (it == rest_.end()) {
      return std::nullopt;
    }
    std::string value = it->second;
    rest_.erase(it);
    return value;
  }

  template <class T>
  void number(const std::string& name, T& out, T max = std::numeric_limits<T>::max()) {
    const auto value = text(name);
    if (!value) {
      return;
    }
    T parsed{};
    const char* end = value->data() + value->size();
    const auto [at, error] = std::from_chars(value->data(), end, parsed);
    if (error != std::errc() || at != end || parsed > max) {
      return failed(name, fmt::format("expected a number up to {}, got \"{}\"", max, *value));
    }
    out = parsed;
  }

  void time(const std::string& name, Millis& out) {
    std::uint64_t count = 0;
    number<std::uint64_t>(name, count, static_cast<std::uint64_t>(kTimeMax.count()));
    // More than the server is willing to wait is not an error: the client asks again.
    out = std::min(Millis(count), kLongPollMax);
  }

  void wall_time(const std::string& name, std::optional<Millis>& out) {
    if (!rest_.contains(name)) {
      return;
    }
    std::uint64_t count = 0;
    number<std::uint64_t>(name, count, static_cast<std::uint64_t>(Millis::max().count()));
    out = Millis(count);
  }

  void failed(const std::string& name, const std::string& what) {
    if (!error_) {
      error_ = Error{ErrorCode::invalid, fmt::format("{}: {}", name, to_utf8(what))};
    }
  }

  Status finish() {
    if (!error_ && !rest_.empty()) {
      failed(rest_.begin()->first, "unknown parameter");
    }
    if (error_) {
      return std::unexpected(*error_);
    }
    return {};
  }

 private:
  Query rest_;
  std::optional<Error> error_;
};

/// Builds "path?a=b&c=d".
class TargetBuilder {
 public:
  explicit TargetBuilder(std::string path) : target_(std::move(path)) {}
  void add(std::string_view name, std::string_view value) {
    target_ += first_ ? '?' : '&';
    first_ = false;
    target_ += name;
    target_ += '=';
    target_ += percent_encode(value);
  }
  template <class T>
  void add_unless(std::string_view name, T value, T usual) {
    if (value != usual) {
      add(name, fmt::format("{}", value));
    }
  }
  std::string take() { return std::move(target_); }

 private:
  std::string target_;
  bool first_ = true;
};

}  // namespace

std::string job_query_target(const JobQuery& query) {
  TargetBuilder target("/api/jobs");
  if (!query.states.empty()) {
    std::string states;
    for (const JobState state : query.states) {
      states += states.empty() ? "" : ",";
      states += to_string(state);
    }
    target.add("state", states);
  }
  if (!query.queue.empty()) {
    target.add("queue", query.queue);
  }
  target.add_unless<std::uint64_t>("batch", query.batch, 0);
  if (query.ids) {
    target.add("ids", query.ids->to_string());
  }
  if (query.since) {
    target.add("since", std::to_string(query.since->count()));
  }
  target.add_unless<std::uint64_t>("after", query.after, 0);
  target.add_unless<std::uint32_t>("limit", query.limit, JobQuery().limit);
  if (query.descending) {
    target.add("order", "desc");
  }
  return target.take();
}

Result<JobQuery> parse_job_query(const Query& query) {
  JobQuery out;
  QueryReader in(query);
  if (const auto states = in.text("state")) {
    std::string_view rest = *states;
    while (true) {
      const std::string_view word = rest.substr(0, rest.find(','));
      if (const auto state = job_state_from(word)) {
        out.states.push_back(*state);
      } else {
        in.failed("state", fmt::format("there is no job state \"{}\"", word));
      }
      if (word.size() == rest.size()) {
        break;
      }
      rest.remove_prefix(word.size() + 1);
    }
  }
  out.queue = in.text("queue").value_or("");
  in.number("batch", out.batch);
  if (const auto ids = in.text("ids")) {
    auto parsed = IdSet::parse(*ids);
    parsed ? void(out.ids = std::move(*parsed)) : in.failed("ids", parsed.error().message);
  }
  in.wall_time("since", out.since);
  in.number("after", out.after);
  in.number("limit", out.limit, kPageLimitMax);
  if (out.limit == 0) {
    in.failed("limit", "must be at least 1");
  }
  if (const auto order = in.text("order")) {
    if (*order != "asc" && *order != "desc") {
      in.failed("order", "expected asc or desc");
    }
    out.descending = *order == "desc";
  }
  TRY(in.finish());
  return out;
}

std::string wait_query_target(const WaitQuery& query) {
  TargetBuilder target("/api/wait");
  target.add("ids", query.ids.to_string());
  target.add("timeout_ms", std::to_string(query.timeout.count()));
  return target.take();
}

Result<WaitQuery> parse_wait_query(const Query& query) {
  WaitQuery out;
  QueryReader in(query);
  if (const auto ids = in.text("ids")) {
    auto parsed = IdSet::parse(*ids);
    parsed ? void(out.ids = std::move(*parsed)) : in.failed("ids", parsed.error().message);
  } else {
    in.failed("ids", "is missing");
  }
  in.time("timeout_ms", out.timeout);
  TRY(in.finish());
  return out;
}

std::string event_query_target(const EventQuery& query) {
  TargetBuilder target("/api/events");
  target.add("after", std::to_string(query.after));
  target.add_unless<std::uint64_t>("batch", query.batch, 0);
  target.add_unless<std::uint64_t>("job", query.job, 0);
  target.add_unless<std::int64_t>("wait_ms", query.wait.count(), 0);
  target.add_unless<std::uint32_t>("limit", query.limit, EventQuery().limit);
  if (query.ids) {
    target.add("ids", query.ids->to_string());
  }
  if (!query.kinds.empty()) {
    target.add("kind", fmt::format("{}", fmt::join(query.kinds, ",")));
  }
  if (query.since) {
    target.add("since", std::to_string(query.since->count()));
  }
  if (query.descending) {
    target.add("order", "desc");
  }
  return target.take();
}

Result<EventQuery> parse_event_query(const Query& query) {
  EventQuery out;
  QueryReader in(query);
  in.number("after", out.after);
  in.number("batch", out.batch);
  in.number("job", out.job);
  in.time("wait_ms", out.wait);
  in.number("limit", out.limit, kPageLimitMax);
  if (const auto ids = in.text("ids")) {
    auto parsed = IdSet::parse(*ids);
    parsed ? void(out.ids = std::move(*parsed)) : in.failed("ids", parsed.error().message);
  }
  if (const auto kinds = in.text("kind")) {
    for (std::size_t at = 0; at <= kinds->size();) {
      const std::size_t comma = std::min(kinds->find(',', at), kinds->size());
      out.kinds.push_back(kinds->substr(at, comma - at));
      at = comma + 1;
    }
  }
  std::uint64_t since = 0;
  in.number("since", since, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  if (query.contains("since")) {
    out.since = Millis(since);
  }
  if (const auto order = in.text("order")) {
    if (*order != "asc" && *order != "desc") {
      in.failed("order", "expected asc or desc");
    }
    out.descending = *order == "desc";
  }
  TRY(in.finish());
  return out;
}

}  // namespace berth
