#pragma once
// The files of one state directory: uni_id.json, state/{pid}.json and a log that rotates. Several
// daemons, and scripts, may write there; a lock file keeps those apart that use it.
//
// Everything here blocks for as long as the disk pleases, and belongs on a thread of its own.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "daemon/uni_id_file.hpp"

namespace berth {

struct StateLogLine {
  std::uint64_t seq = 0;  ///< of the history it tells of
  std::string text;       ///< with its newline
};

/// What there is to write about one batch.
struct BatchFiles {
  std::uint64_t pid = 0;  ///< names its state file; 0: it has none
  std::string state;      ///< the whole file
  std::string log;        ///< file name; empty: none
  std::deque<StateLogLine> lines;
  std::map<std::string, UniEntry> entries;  ///< by uni_id

  /// Adds what is newer.
  void add(BatchFiles newer);
};

struct StateDirectoryOptions {
  std::string dir;
  std::string lock;      ///< the file that keeps writers apart; empty: the one in `dir`
  std::string instance;  ///< whose lines have been written is remembered per instance
  std::uint64_t log_size = 10UL * 1024 * 1024;
  unsigned log_keep = 5;                         ///< older logs: compete_gpu.log.1 is the youngest
  std::function<void(const std::string&)> note;  ///< told of what is odd but no failure
};

/// Writes what there is; lines of batches that share a log stand there in their order. After an
/// error some of it may have been written; all of it can be written again without harm.
[[nodiscard]] Status write_state_directory(const StateDirectoryOptions& options,
                                           const std::map<BatchId, BatchFiles>& batches);

/// What the script wrote of itself in `file`. A file that another script is just writing is read
/// again a moment later.
[[nodiscard]] SelfReport read_entry(const std::string& file, std::string_view uni_id);

[[nodiscard]] std::string uni_id_file(const std::string& state_dir);

}  // namespace berth
