#pragma once
// What a command on another machine cannot do with files of its own, and so asks the daemon to do.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/idset.hpp"
#include "base/result.hpp"
#include "base/units.hpp"

namespace berth {

/// Files that jobs will read, written before they are submitted.
struct FilesRequest {
  struct File {
    std::string path;  ///< bytes, absolute
    std::string content;

    friend bool operator==(const File&, const File&) = default;
  };
  std::vector<File> files;
  std::string state_dir;  ///< of a batch whose scripts find their files there; empty: none

  friend bool operator==(const FilesRequest&, const FilesRequest&) = default;
};
[[nodiscard]] std::string encode(const FilesRequest& request);
[[nodiscard]] Result<FilesRequest> decode_files_request(std::string_view body);

/// A copy of the trees that the jobs of a submission run in.
struct SnapshotRequest {
  std::string key;                ///< of the submission that follows
  std::vector<std::string> dirs;  ///< bytes, absolute
  std::optional<Bytes> limit;     ///< none: the usual one

  friend bool operator==(const SnapshotRequest&, const SnapshotRequest&) = default;
};
[[nodiscard]] std::string encode(const SnapshotRequest& request);
[[nodiscard]] Result<SnapshotRequest> decode_snapshot_request(std::string_view body);

struct SnapshotAnswer {
  std::vector<std::string> places;  ///< bytes; of each directory, in order
  std::vector<std::string> roots;   ///< bytes; the tops of the trees
  std::vector<std::string> warnings;

  friend bool operator==(const SnapshotAnswer&, const SnapshotAnswer&) = default;
};
[[nodiscard]] std::string encode(const SnapshotAnswer& answer);
[[nodiscard]] Result<SnapshotAnswer> decode_snapshot_answer(std::string_view body);

/// What jobs have told of their metrics. The answer is results/found_runs.hpp.
struct RunsRequest {
  struct Metric {
    std::string name;
    std::string pattern;  ///< whose first group is the value, in lines of logs

    friend bool operator==(const Metric&, const Metric&) = default;
  };
  IdSet ids;
  std::uint64_t after = 0;      ///< only ids beyond it
  std::vector<Metric> metrics;  ///< besides those that are found without being told how
  std::vector<std::string>
      files;            ///< bytes; to be read as well, with {name}, {job_id}, {parameter}
  bool points = false;  ///< with the curves

  friend bool operator==(const RunsRequest&, const RunsRequest&) = default;
};
[[nodiscard]] std::string encode(const RunsRequest& request);
[[nodiscard]] Result<RunsRequest> decode_runs_request(std::string_view body);

}  // namespace berth
