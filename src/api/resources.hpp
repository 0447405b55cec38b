#pragma once
// What the API tells beyond single jobs: batches, queues, what ran when, what cards did. See
// docs/openapi.yaml.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/idset.hpp"
#include "api/views.hpp"
#include "api/wire.hpp"
#include "base/result.hpp"

namespace berth {

struct BatchView {
  std::uint64_t id = 0;
  std::string name;
  std::uint32_t owner = 0;
  std::uint32_t max_concurrent = 0;
  std::uint64_t jobs = 0;  ///< as many as were submitted
  Millis submitted_at{0};
  std::map<JobState, std::uint64_t> counts;  ///< every state appears on the wire
  bool open = false;
  std::map<std::string, std::string> rules;
  BatchTraits traits;

  friend bool operator==(const BatchView&, const BatchView&) = default;
};

struct BatchPage {
  std::vector<BatchView> batches;
  std::optional<std::uint64_t> next;
};

struct QueueDetail {
  QueueView queue;
  std::map<std::string, std::string> rules;
  /// Of the jobs that are known, those that have ended among them; every state appears on the wire.
  std::map<JobState, std::uint64_t> counts = {};

  friend bool operator==(const QueueDetail&, const QueueDetail&) = default;
};

/// An attempt as a bar in a picture of cards over time.
struct SpanView {
  std::uint64_t attempt = 0;
  std::uint32_t number = 1;
  std::uint64_t job = 0;
  std::string name;
  std::string state;
  std::optional<FailureClass> failure_class;
  std::vector<std::string> gpu_uuids;
  std::vector<std::uint32_t> gpu_indices;
  Millis started_at{0};
  std::optional<Millis> ended_at;

  friend bool operator==(const SpanView&, const SpanView&) = default;
};

struct Timeline {
  std::vector<SpanView> attempts;  ///< the newest first
  bool more = false;
};

struct RuleChange {
  std::uint64_t seq = 0;
  Millis time{0};
  std::string detail;

  friend bool operator==(const RuleChange&, const RuleChange&) = default;
};

struct RuleChanges {
  std::vector<RuleChange> changes;
  std::optional<std::uint64_t> next;
};

/// What a stream tells of the instance: what does not change by itself all the time.
struct LiveStatus {
  std::map<JobState, std::uint64_t> counts;
  bool paused = false;
  std::vector<QueueView> queues;
  StatusView::Space space;
  std::string probe_error;
  std::vector<std::string> problems;
};

struct HealthReason {
  std::string what;  ///< "store" "space" "probe" "gpu" "settings"
  std::string message;

  friend bool operator==(const HealthReason&, const HealthReason&) = default;
};

struct HealthView {
  std::string status;  ///< "ok" "degraded" "failing"
  std::vector<HealthReason> reasons;
};

struct GpuPoint {
  Millis t{0};
  std::optional<Bytes> memory_used;
  std::optional<std::uint32_t> utilization;
  std::optional<std::uint32_t> temperature;
  std::optional<std::uint32_t> power_mw;

  friend bool operator==(const GpuPoint&, const GpuPoint&) = default;
};

struct GpuHistoryView {
  std::string gpu;
  std::vector<GpuPoint> points;
};

struct UsagePoint {
  Millis t{0};
  std::optional<Bytes> memory;
  std::optional<std::uint32_t> utilization;

  friend bool operator==(const UsagePoint&, const UsagePoint&) = default;
};

struct UsageView {
  std::uint64_t attempt = 0;  ///< its number; 0: there was none
  std::optional<Bytes> claim;
  std::vector<UsagePoint> points;
};

struct PreviewWait {
  std::uint64_t id = 0;
  std::uint64_t jobs = 1;                    ///< that wait as it does, itself among them
  std::string before;                        ///< empty: it starts
  std::string after;                         ///< likewise
  std::optional<CauseView> why_before = {};  ///< the same as data
  std::optional<CauseView> why_after = {};
  std::vector<ObstacleView> gpus_before = {};  ///< the cards of which another thing is said
  std::vector<ObstacleView> gpus_after = {};

  friend bool operator==(const PreviewWait&, const PreviewWait&) = default;
};

struct PreviewView {
  std::vector<std::uint64_t> starts;
  std::vector<PreviewWait> waits;
  bool more = false;  ///< not all waits have been looked at
  std::vector<std::string> problems;
};

struct ProblemView {
  std::string severity;  ///< "error" "warning"
  std::string file;      ///< another one that the text refers to; empty: the text itself
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::string message;

  friend bool operator==(const ProblemView&, const ProblemView&) = default;
};

/// A job that a file would make.
struct CheckedJob {
  std::string name;
  std::string queue;
  std::int32_t priority = 5;
  GpuCount gpus;
  std::optional<Bytes> gpu_memory;
  std::string command;
  std::string cwd;
  std::vector<std::uint32_t> after;
  std::map<std::string, std::string> params;
  std::uint32_t retries = 0;

  friend bool operator==(const CheckedJob&, const CheckedJob&) = default;
};

struct CheckedFile {
  std::string dialect;
  std::uint64_t total = 0;
  std::vector<CheckedJob> jobs;
  std::vector<ProblemView> problems;
};

[[nodiscard]] std::string encode(const BatchView& batch);
[[nodiscard]] std::string encode(const BatchPage& page);
[[nodiscard]] std::string encode(const std::vector<QueueDetail>& queues);  ///< {"queues":[…]}
[[nodiscard]] std::string encode(const Timeline& timeline);
[[nodiscard]] std::string encode(const RuleChanges& changes);
[[nodiscard]] std::string encode(const LiveStatus& status);
[[nodiscard]] std::string encode(const HealthView& health);
[[nodiscard]] std::string encode(const GpuHistoryView& history);
[[nodiscard]] std::string encode(const UsageView& usage);
[[nodiscard]] std::string encode(const PreviewView& preview);
[[nodiscard]] std::string encode(const CheckedFile& file);
/// {"error":…,"problems":[…]}
[[nodiscard]] std::string encode_refused_file(const Error& error,
                                              const std::vector<ProblemView>& problems);
/// A bare array, on one line.
[[nodiscard]] std::string encode_line(const std::vector<GpuView>& gpus);

// Requests.

/// A job file as somebody has it in an editor.
struct FileRequest {
  std::string text;
  std::string name;
  std::optional<std::string> dialect;  ///< none: recognised
  std::string cwd;
  std::string key = {};                  ///< of a submission
  std::optional<bool> leave_out_done{};  ///< none: as the file says

  friend bool operator==(const FileRequest&, const FileRequest&) = default;
};
inline constexpr std::size_t kFileTextMax = 4UL * 1024 * 1024;
[[nodiscard]] Result<FileRequest> decode_check_request(std::string_view body);
[[nodiscard]] Result<FileRequest> decode_file_request(std::string_view body);

/// A job of a file that was not submitted, for another is the same.
struct SkippedJob {
  std::string name;
  std::uint64_t job = 0;   ///< the other one
  bool succeeded = false;  ///< else it waits or runs

  friend bool operator==(const SkippedJob&, const SkippedJob&) = default;
};
/// What was submitted of a file, none if nothing was left of it.
[[nodiscard]] std::string encode_submitted_file(const std::optional<SubmitAnswer>& answer,
                                                const std::vector<SkippedJob>& skipped);

struct PageQuery {
  std::uint64_t after = 0;
  std::uint32_t limit = 100;
  bool descending = false;

  friend bool operator==(const PageQuery&, const PageQuery&) = default;
};
[[nodiscard]] Result<PageQuery> parse_batch_query(const Query& query);
/// Always from the newest on.
[[nodiscard]] Result<PageQuery> parse_rule_changes_query(const Query& query);

/// A part of time, and how much may be told of it.
struct SpanQuery {
  std::string gpu;
  std::optional<Millis> from;
  std::optional<Millis> to;
  std::uint32_t limit = 0;

  friend bool operator==(const SpanQuery&, const SpanQuery&) = default;
};
[[nodiscard]] Result<SpanQuery> parse_timeline_query(const Query& query);
[[nodiscard]] Result<SpanQuery> parse_gpu_history_query(const Query& query);

struct AttemptQuery {
  std::uint32_t attempt = 0;  ///< 0: the last one
  std::uint32_t points = 500;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> lines = {};  ///< only the last so many
  bool download = false;

  friend bool operator==(const AttemptQuery&, const AttemptQuery&) = default;
};
[[nodiscard]] Result<AttemptQuery> parse_usage_query(const Query& query);
[[nodiscard]] Result<AttemptQuery> parse_log_query(const Query& query);
[[nodiscard]] Result<AttemptQuery> parse_log_stream_query(const Query& query);

struct StreamQuery {
  bool events = true;
  bool gpus = true;
  bool status = true;
  std::optional<std::uint64_t> after;  ///< none: from now on

  friend bool operator==(const StreamQuery&, const StreamQuery&) = default;
};
[[nodiscard]] Result<StreamQuery> parse_stream_query(const Query& query);

struct ResultsQuery {
  std::uint64_t batch = 0;
  std::optional<IdSet> ids;
  std::vector<std::string> metrics;
  std::optional<std::vector<std::string>> by;
  std::optional<std::vector<std::string>> over;
  std::string take = "last";
  std::string best;
  bool partial = false;
};
[[nodiscard]] Result<ResultsQuery> parse_results_query(const Query& query);

/// Refuses every parameter.
[[nodiscard]] Status parse_no_query(const Query& query);

}  // namespace berth
