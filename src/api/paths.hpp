#pragma once
// Where an instance keeps its state: one directory per host, on a local disk.

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace berth {

struct InstancePaths {
  std::string dir;         ///< absolute
  std::string socket;      ///< dir/sock
  std::string lock;        ///< dir/daemon.lock
  std::string database;    ///< dir/berth.db
  std::string attempts;    ///< dir/attempts
  std::string logs;        ///< dir/logs
  std::string daemon_log;  ///< dir/daemon.log
};

/// The paths of an instance in `dir`, made absolute. Touches nothing.
[[nodiscard]] Result<InstancePaths> instance_in(const std::string& dir);

/// The instance this process belongs to: BERTH_DIR; else
/// ${XDG_STATE_HOME:-~/.local/state}/berth/HOST; else, where that is on a network file system,
/// /var/tmp/berth-UID/HOST. Creates nothing.
[[nodiscard]] Result<InstancePaths> find_instance();

/// Where an attempt leaves what it reports of itself (BERTH_REPORT), beside the log that berth
/// names.
[[nodiscard]] std::string report_path(const std::string& logs, std::uint64_t job,
                                      std::uint32_t attempt);

/// Creates the directories with mode 0700. Refuses a directory that belongs to somebody else or in
/// which somebody else could write: whoever can replace the socket can read what jobs are given.
[[nodiscard]] Status prepare_instance(const InstancePaths& paths);

/// Whether `path`, or the nearest parent that exists, is on a file system that several machines
/// may share. SQLite's WAL must not be there.
[[nodiscard]] bool on_network_file_system(const std::string& path);

}  // namespace berth
