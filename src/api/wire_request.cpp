// Requests: submissions and kills.

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "api/archive.hpp"
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
  Overrides rules;
  BatchTraits traits;
  friend bool operator==(const BatchPart&, const BatchPart&) = default;
};

template <class A>
void describe(A& a, wire::Ref<A, BatchPart> batch) {
  a.field("name", batch.name);
  a.unless("max_concurrent", batch.max_concurrent, 0);
  a.unless("rules", batch.rules, {});
  a.unless("traits", batch.traits, {});
  a.check(batch.name.size() <= kNameMax, "name", "is longer than 1024 bytes");
}

/// A path that may be left out.
template <class A>
void describe_path(A& a, std::string_view key, wire::Ref<A, std::string> path) {
  if (!A::kWriting || !path.empty()) {
    a.bytes(key, path);
  }
  a.check(path.empty() || path.starts_with('/'), key, "must be an absolute path");
  a.check(path.size() < PATH_MAX, key, "is too long for a path");
}

}  // namespace

// Found by argument-dependent lookup from the archives.
template <class A>
void describe(A& a, wire::Ref<A, QueueSpec> queue) {
  a.need("name", queue.name);
  a.field("limit", queue.limit);
  a.unless("rules", queue.rules, {});
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
  a.unless("rules", request.rules, {});
  a.unless("after", job.after, {});
  a.unless("after_index", job.after_index, {});
  a.unless("after_kind", job.after_kind, After::ok);
  a.unless("start_at", job.start_at, Millis(0));
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
  a.unless("params", payload.params, {});
  std::string fingerprint = format_fingerprint(payload.fingerprint);
  a.unless("fingerprint", fingerprint, {});
  describe_path(a, "work_dir", payload.work_dir);
  std::string warning = format_warning(payload.warning);
  a.unless("signal", warning, {});
  if constexpr (!A::kWriting) {
    const auto parsed = warning.empty() ? WarningSignal{} : parse_warning(warning);
    a.check(parsed.has_value(), "signal", "must be a signal and a time, as in USR1@120");
    payload.warning = parsed.value_or(WarningSignal{});
    const auto hash = parse_fingerprint(fingerprint);
    a.check(hash.has_value(), "fingerprint", "must have 16 hexadecimal digits");
    payload.fingerprint = hash.value_or(0);
  }

  a.check(job.name.size() <= kNameMax, "name", "is longer than 1024 bytes");
  a.check(!job.queue.empty() && job.queue.size() <= kNameMax, "queue", "must have 1 to 1024 bytes");
  a.check(job.start_at >= Millis(0), "start_at", "must not be before 1970");
  a.check(!payload.commands.empty(), "commands", "a job needs at least one command");
  a.check(payload.cwd.starts_with('/'), "cwd", "must be an absolute path");
  a.check(payload.log.empty() || payload.log.starts_with('/'), "log", "must be an absolute path");
  a.check(payload.cwd.size() < PATH_MAX, "cwd", "is too long for a path");
  a.check(payload.log.size() < PATH_MAX, "log", "is too long for a path");
  a.check(in_time_range(payload.time_limit), "time_ms", "must be 0 to ten years");
  a.check(in_time_range(payload.grace), "grace_ms", "must be 0 to ten years");
  a.check(payload.warning.signal == 0 || payload.time_limit <= Millis(0) ||
              payload.warning.before < payload.time_limit,
          "signal", "must come less than the time limit before the end");
  check_environment(a, payload.extra_env, "env");
}

namespace {

/// What a submission in one body and one in many lines have in common: all but the jobs.
template <class A, class Body>
void describe_shared(A& a, Body& body) {
  auto& submit = body.submit;
  a.unless("key", submit.client_key, {});
  BatchPart batch{submit.batch_name, submit.batch_max_concurrent, submit.batch_rules,
                  submit.traits};
  a.unless("batch", batch, {});
  if constexpr (!A::kWriting) {
    submit.batch_name = batch.name;
    submit.batch_max_concurrent = batch.max_concurrent;
    submit.batch_rules = batch.rules;
    submit.traits = batch.traits;
  }
  a.unless("queues", submit.queues, {});
  a.unless("resources", submit.resources, {});
  a.bytes_list("environment", body.environment);
  a.field("umask", body.umask);
  a.field("nice", body.nice);
  a.check(submit.client_key.size() <= kKeyMax, "key", "is longer than 128 bytes");
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
  a.check(std::ranges::find(kill.ids, 0U) == kill.ids.end(), "ids", "there is no job 0");
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
  return wire::Writer::text(body);
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
  body.submit.batch_rules = submit.batch_rules;
  body.submit.traits = submit.traits;
  body.submit.queues = submit.queues;
  body.submit.resources = submit.resources;
  body.submit.count = submit.jobs.size();
  if (!submit.jobs.empty()) {
    const Payload& first = submit.jobs.front().payload;
    body.environment = first.environment ? *first.environment : Environment{};
    body.umask = first.umask;
    body.nice = first.nice;
  }
  return wire::Writer::text(body);
}

std::string encode_stream_job(const JobSpec& job) {
  return wire::Writer::text(job);
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
  return wire::Writer::text(request);
}

Result<KillRequest> decode_kill(std::string_view body) {
  return wire::read<KillRequest>(body, wire::Unknown::error);
}

}  // namespace berth
