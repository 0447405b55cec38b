// What a command on another machine asks for, as JSON.

#include <algorithm>
#include <climits>

#include "api/archive.hpp"
#include "api/remote.hpp"

namespace berth {
namespace {

constexpr std::size_t kListMax = 10'000;
constexpr std::size_t kMetricsMax = 100;

bool is_path(const std::string& path) {
  return path.starts_with('/') && path.size() < PATH_MAX;
}

/// It names a directory.
bool is_key(const std::string& key) {
  return !key.empty() && key.size() <= kKeyMax && std::ranges::all_of(key, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_';
  });
}

}  // namespace

template <class A>
void describe(A& a, wire::Ref<A, FilesRequest::File> file) {
  a.bytes("path", file.path);
  a.bytes("content", file.content);
  a.check(is_path(file.path), "path", "must be an absolute path");
}

template <class A>
void describe(A& a, wire::Ref<A, FilesRequest> request) {
  a.need("files", request.files);
  a.bytes_or_null("state_dir", request.state_dir);
  a.check(request.files.size() <= kListMax, "files", "are more than 10000");
  a.check(request.state_dir.empty() || is_path(request.state_dir), "state_dir",
          "must be an absolute path");
}

template <class A>
void describe(A& a, wire::Ref<A, SnapshotRequest> request) {
  a.need("key", request.key);
  a.bytes_list("dirs", request.dirs);
  a.field("limit", request.limit);
  a.check(is_key(request.key), "key", "must be 1 to 128 letters, digits, - and _");
  a.check(!request.dirs.empty() && request.dirs.size() <= kListMax &&
              std::ranges::all_of(request.dirs, is_path),
          "dirs", "must be 1 to 10000 absolute paths");
}

template <class A>
void describe(A& a, wire::Ref<A, SnapshotAnswer> answer) {
  a.bytes_list("places", answer.places);
  a.bytes_list("roots", answer.roots);
  a.field("warnings", answer.warnings);
}

template <class A>
void describe(A& a, wire::Ref<A, RunsRequest::Metric> metric) {
  a.need("name", metric.name);
  a.need("pattern", metric.pattern);
}

template <class A>
void describe(A& a, wire::Ref<A, RunsRequest> request) {
  std::string ids = request.ids.to_string();
  a.need("ids", ids);
  a.unless("after", request.after, 0);
  a.unless("metrics", request.metrics, {});
  a.bytes_list("files", request.files);
  a.unless("points", request.points, false);
  a.check(request.metrics.size() <= kMetricsMax, "metrics", "are more than 100");
  a.check(request.files.size() <= kListMax, "files", "are more than 10000");
  if constexpr (!A::kWriting) {
    auto parsed = IdSet::parse(ids);
    a.check(parsed.has_value(), "ids", parsed ? "" : parsed.error().message);
    if (parsed) {
      request.ids = std::move(*parsed);
    }
  }
}

namespace {

template <class T>
std::string write(const T& value) {
  return wire::Writer::text(value);
}

}  // namespace

std::string encode(const FilesRequest& request) {
  return write(request);
}
Result<FilesRequest> decode_files_request(std::string_view body) {
  return wire::read<FilesRequest>(body, wire::Unknown::error);
}
std::string encode(const SnapshotRequest& request) {
  return write(request);
}
Result<SnapshotRequest> decode_snapshot_request(std::string_view body) {
  return wire::read<SnapshotRequest>(body, wire::Unknown::error);
}
std::string encode(const SnapshotAnswer& answer) {
  return write(answer);
}
Result<SnapshotAnswer> decode_snapshot_answer(std::string_view body) {
  return wire::read<SnapshotAnswer>(body, wire::Unknown::ignored);
}
std::string encode(const RunsRequest& request) {
  return write(request);
}
Result<RunsRequest> decode_runs_request(std::string_view body) {
  return wire::read<RunsRequest>(body, wire::Unknown::error);
}

}  // namespace berth
