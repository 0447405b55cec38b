// Removing jobs and backing up, as JSON.

#include "api/archive.hpp"
#include "api/wire.hpp"

namespace berth {

template <class A>
void describe(A& a, wire::Ref<A, RemoveRequest> request) {
  if constexpr (A::kWriting) {
    a.unless("ids", request.ids ? request.ids->to_string() : "", "");
  } else {
    std::string ids;
    a.field("ids", ids);
    if (a.given("ids")) {
      auto parsed = IdSet::parse(ids);  // an empty text names nothing, and does not mean all
      a.check(parsed.has_value(), "ids", parsed ? "" : parsed.error().message);
      request.ids = parsed ? std::move(*parsed) : IdSet();
    }
  }
  a.unless("all", request.all, false);
  a.unless("states", request.states, {});
  a.unless("queue", request.queue, "");
  a.unless("older_ms", request.older, Millis(0));
  a.unless("keep", request.keep, 0);
  a.unless("after", request.after, 0);
  a.unless("dry_run", request.dry_run, false);
  a.check(request.older >= Millis(0), "older_ms", "must not be negative");
  const bool filtered = !request.states.empty() || !request.queue.empty() ||
                        request.older > Millis(0) || request.keep > 0;
  a.check(request.ids || filtered || request.all, "ids",
          "say which: ids, as \"3,5-9\", or finished jobs by states, queue, older_ms or keep, or "
          "\"all\": true");
  a.check(!request.all || (!request.ids && !filtered), "all",
          "means every finished job; leave out what says which");
  for (const JobState state : request.states) {
    a.check(is_terminal(state), "states", "only jobs that have ended are removed by their state");
  }
}

template <class A>
void describe(A& a, wire::Ref<A, RemoveAnswer> answer) {
  a.need("removed", answer.removed);
  a.field("cancelled", answer.cancelled);
  a.field("running", answer.running);
  a.field("needed", answer.needed);
  a.field("logs", answer.logs);
  a.field("next", answer.next);
}

template <class A>
void describe(A& a, wire::Ref<A, BackupRequest> request) {
  a.bytes("path", request.path);
  a.unless("replace", request.replace, false);
  a.check(request.path.starts_with('/'), "path", "must begin with /");
}

template <class A>
void describe(A& a, wire::Ref<A, BackupView> backup) {
  a.bytes_or_null("path", backup.path);
  a.need("running", backup.running);
  a.field("pages", backup.pages);
  a.field("total", backup.total);
  a.field("size", backup.size);
  a.or_null("error", backup.error);
  a.or_null("code", backup.code);
}

template <class A>
void describe(A& a, wire::Ref<A, RestoreRequest> request) {
  a.bytes("path", request.path);
  a.need("key", request.key);
  a.check(request.path.starts_with('/'), "path", "must begin with /");
  a.check(!request.key.empty() && request.key.size() <= kKeyMax, "key", "must have 1 to 128 bytes");
}

template <class A>
void describe(A& a, wire::Ref<A, RestoreView> restore) {
  a.bytes_or_null("path", restore.path);
  a.or_null("key", restore.key);
  a.need("running", restore.running);
  a.bytes_or_null("message", restore.message);
  a.bytes_or_null("error", restore.error);
  a.or_null("code", restore.code);
}

template <class A>
void describe(A& a, wire::Ref<A, DoneQuestion> question) {
  std::string fingerprint = format_fingerprint(question.fingerprint);
  a.need("fingerprint", fingerprint);
  a.need("name", question.name);
  if constexpr (!A::kWriting) {
    const auto parsed = parse_fingerprint(fingerprint);
    a.check(parsed.value_or(0) != 0, "fingerprint", "must have 16 hexadecimal digits, not all 0");
    question.fingerprint = parsed.value_or(0);
  }
}

template <class A>
void describe(A& a, wire::Ref<A, DoneRequest> request) {
  a.need("jobs", request.jobs);
  a.check(request.jobs.size() <= kDoneMax, "jobs", "at most 10000 at once");
}

template <class A>
void describe(A& a, wire::Ref<A, DoneView> done) {
  a.or_null("succeeded", done.succeeded);
  a.bytes_or_null("log", done.log);
  a.or_null("alive", done.alive);
}

template <class A>
void describe(A& a, wire::Ref<A, DoneAnswer> answer) {
  a.need("jobs", answer.jobs);
}

namespace {

template <class T>
std::string write(const T& value) {
  return wire::Writer::text(value);
}

}  // namespace

std::string encode_remove(const RemoveRequest& request) {
  return write(request);
}
Result<RemoveRequest> decode_remove(std::string_view body) {
  return wire::read<RemoveRequest>(body, wire::Unknown::error);
}
std::string encode_backup(const BackupRequest& request) {
  return write(request);
}
Result<BackupRequest> decode_backup(std::string_view body) {
  return wire::read<BackupRequest>(body, wire::Unknown::error);
}
std::string encode_restore(const RestoreRequest& request) {
  return write(request);
}
Result<RestoreRequest> decode_restore(std::string_view body) {
  return wire::read<RestoreRequest>(body, wire::Unknown::error);
}
std::string encode_done(const DoneRequest& request) {
  return write(request);
}
Result<DoneRequest> decode_done(std::string_view body) {
  return wire::read<DoneRequest>(body, wire::Unknown::error);
}
std::string encode(const DoneAnswer& answer) {
  return write(answer);
}
template <>
Result<DoneAnswer> decode(std::string_view body) {
  return wire::read<DoneAnswer>(body, wire::Unknown::ignored);
}
std::string encode(const RemoveAnswer& answer) {
  return write(answer);
}
std::string encode(const BackupView& backup) {
  return write(backup);
}
std::string encode(const RestoreView& restore) {
  return write(restore);
}
template <>
Result<RestoreView> decode(std::string_view body) {
  return wire::read<RestoreView>(body, wire::Unknown::ignored);
}
template <>
Result<RemoveAnswer> decode(std::string_view body) {
  return wire::read<RemoveAnswer>(body, wire::Unknown::ignored);
}
template <>
Result<BackupView> decode(std::string_view body) {
  return wire::read<BackupView>(body, wire::Unknown::ignored);
}

}  // namespace berth
