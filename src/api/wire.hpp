#pragma once
// JSON and the values of the API, in both directions.
//
// Byte strings (arguments, environment, paths) travel as plain strings when they are valid UTF-8
// and as {"base64": "…"} otherwise, so nothing is lost. Texts for people are made valid UTF-8.
// Decoding never throws: an Error names the bad field, `jobs[3].gpus.min: expected …`. Fields
// nobody knows are errors in requests, where they are likely typing errors, and are ignored in
// answers, so that an older client understands a newer daemon.

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "api/http.hpp"
#include "api/idset.hpp"
#include "api/views.hpp"
#include "base/result.hpp"
#include "core/event.hpp"

namespace berth {

// Requests. decode_* check everything that can be checked without State.

/// The jobs of a submission share environment, umask and niceness: those of the first are sent.
[[nodiscard]] std::string encode_submit(const event::Submit& submit);
/// `owner` is left 0: only the socket knows it.
[[nodiscard]] Result<event::Submit> decode_submit(std::string_view body);

/// A submission as NDJSON, for any number of jobs: a first line with what they share and how many
/// there are, then a line for each. Here a job may only follow jobs of earlier lines.
struct StreamHead {
  event::SubmitBegin begin;  ///< `owner` is left 0
  std::shared_ptr<const Environment> environment;
  std::uint32_t umask = 022;
  std::int32_t nice = 0;
};
/// Both without the newline.
[[nodiscard]] std::string encode_stream_head(const event::Submit& submit);
[[nodiscard]] std::string encode_stream_job(const JobSpec& job);
[[nodiscard]] Result<StreamHead> decode_stream_head(std::string_view line);
/// `index`: how many jobs came before; errors name the line.
[[nodiscard]] Result<JobSpec> decode_stream_job(std::string_view line, const StreamHead& head,
                                                std::uint64_t index);

struct KillRequest {
  bool all = false;  ///< every job that has not ended
  std::vector<std::uint64_t> ids;
  std::optional<Millis> grace;

  friend bool operator==(const KillRequest&, const KillRequest&) = default;
};
[[nodiscard]] std::string encode_kill(const KillRequest& request);
[[nodiscard]] Result<KillRequest> decode_kill(std::string_view body);

/// Jobs to forget: those named, or finished ones by what they are.
struct RemoveRequest {
  std::optional<IdSet> ids;
  bool all = false;              ///< every finished one: it is to be said
  std::vector<JobState> states;  ///< only these; empty: any that has ended
  std::string queue;             ///< empty: any
  Millis older{0};               ///< ended at least this long ago
  std::uint64_t keep = 0;        ///< so many of those that match stay, the newest
  std::uint64_t after = 0;       ///< the `next` of the answer before
  bool dry_run = false;

  friend bool operator==(const RemoveRequest&, const RemoveRequest&) = default;
};
[[nodiscard]] std::string encode_remove(const RemoveRequest& request);
[[nodiscard]] Result<RemoveRequest> decode_remove(std::string_view body);

inline constexpr std::size_t kDoneMax = 10'000;
/// At most kDoneMax.
struct DoneRequest {
  std::vector<DoneQuestion> jobs;

  friend bool operator==(const DoneRequest&, const DoneRequest&) = default;
};
[[nodiscard]] std::string encode_done(const DoneRequest& request);
[[nodiscard]] Result<DoneRequest> decode_done(std::string_view body);

struct BackupRequest {
  std::string path;  ///< bytes; absolute
  bool replace = false;

  friend bool operator==(const BackupRequest&, const BackupRequest&) = default;
};
[[nodiscard]] std::string encode_backup(const BackupRequest& request);
[[nodiscard]] Result<BackupRequest> decode_backup(std::string_view body);

struct RestoreRequest {
  std::string path;  ///< bytes; absolute
  std::string key;   ///< asking again with the same does nothing more

  friend bool operator==(const RestoreRequest&, const RestoreRequest&) = default;
};
[[nodiscard]] std::string encode_restore(const RestoreRequest& request);
[[nodiscard]] Result<RestoreRequest> decode_restore(std::string_view body);

/// The query part of a target, decoded.
using Query = std::map<std::string, std::string>;

struct JobQuery {
  std::vector<JobState> states;  ///< empty: any
  std::string queue;             ///< empty: any
  std::uint64_t batch = 0;       ///< 0: any
  std::optional<IdSet> ids;
  ListPlace after = {};  ///< cursor: the `next` of the page before
  std::uint32_t limit = 1000;
  bool descending = false;
  std::optional<Millis> since;  ///< wall time: jobs that have not ended, or ended at or after it
  std::string name = {};        ///< a pattern with * ? [..]; empty: any
  std::vector<std::string> fields = {};  ///< of each job; empty: all
  JobSort sort = JobSort::id;

  friend bool operator==(const JobQuery&, const JobQuery&) = default;
};
inline constexpr std::uint32_t kPageLimitMax = 10'000;
[[nodiscard]] std::string job_query_target(const JobQuery& query);  ///< "/api/jobs?…"
[[nodiscard]] Result<JobQuery> parse_job_query(const Query& query);

struct WaitQuery {
  IdSet ids;
  Millis timeout{0};  ///< at most kLongPollMax

  friend bool operator==(const WaitQuery&, const WaitQuery&) = default;
};
inline constexpr Millis kLongPollMax{60'000};
[[nodiscard]] std::string wait_query_target(const WaitQuery& query);
[[nodiscard]] Result<WaitQuery> parse_wait_query(const Query& query);

struct EventQuery {
  std::uint64_t after = 0;  ///< descending: before it, 0: from the end
  std::uint64_t batch = 0;  ///< 0: any
  std::uint64_t job = 0;    ///< 0: any
  Millis wait{0};           ///< how long to wait for a first event
  std::uint32_t limit = 1000;
  std::optional<IdSet> ids = {};        ///< only of these jobs
  std::vector<std::string> kinds = {};  ///< empty: any
  std::optional<Millis> since = {};     ///< wall time
  bool descending = false;

  friend bool operator==(const EventQuery&, const EventQuery&) = default;
};
[[nodiscard]] std::string event_query_target(const EventQuery& query);
[[nodiscard]] Result<EventQuery> parse_event_query(const Query& query);

// Answers.

[[nodiscard]] std::string encode(const SubmitAnswer& answer);
[[nodiscard]] std::string encode(const JobPage& page);
/// Only these fields of each job; none: all. They are in the order of the whole.
[[nodiscard]] std::string encode(const JobPage& page, const std::vector<std::string>& fields);
[[nodiscard]] std::span<const std::string_view> job_fields();
[[nodiscard]] bool is_job_field(std::string_view name);
[[nodiscard]] std::string encode(const JobDetail& detail);
[[nodiscard]] std::string encode(const WhyView& why);
[[nodiscard]] std::string encode(const BacklogView& backlog);
[[nodiscard]] std::string encode(const KillAnswer& answer);
[[nodiscard]] std::string encode(const WaitAnswer& answer);
[[nodiscard]] std::string encode(const std::vector<GpuView>& gpus);  ///< {"gpus":[…]}
[[nodiscard]] std::string encode(const StatusView& status);
[[nodiscard]] std::string encode(const EventPage& page);
[[nodiscard]] std::string encode(const EventView& event);
[[nodiscard]] std::string encode(const RemoveAnswer& answer);
[[nodiscard]] std::string encode(const BackupView& backup);
[[nodiscard]] std::string encode(const RestoreView& restore);
[[nodiscard]] std::string encode(const DoneAnswer& answer);

/// Instantiated for every type that `encode` takes.
template <class T>
[[nodiscard]] Result<T> decode(std::string_view body);
template <>
Result<RemoveAnswer> decode(std::string_view body);
template <>
Result<BackupView> decode(std::string_view body);
template <>
Result<RestoreView> decode(std::string_view body);
template <>
Result<DoneAnswer> decode(std::string_view body);

/// Bare arrays, as `berth ls --json` and `berth gpus --json` print them; indented, one job or GPU
/// per line block.
[[nodiscard]] std::string encode_array(const std::vector<JobView>& jobs);
[[nodiscard]] std::string encode_array(const std::vector<GpuView>& gpus);
[[nodiscard]] std::string encode_array(const std::vector<WhyView>& whys);
[[nodiscard]] std::string encode_array(const std::vector<EventView>& events);

// Errors.

/// {"error":{"code":"not_found","message":"…"}}
[[nodiscard]] std::string encode_error(const Error& error);
[[nodiscard]] int http_status(ErrorCode code);
[[nodiscard]] std::string_view to_string(ErrorCode code);
/// The whole answer for an error.
[[nodiscard]] HttpResponse error_response(const Error& error);
/// The body of a 2xx answer, or the Error that another status carries.
[[nodiscard]] Result<std::string> body_or_error(HttpResponse response);

}  // namespace berth
