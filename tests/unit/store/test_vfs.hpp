#pragma once
// A disk that can be told to fail, and that remembers what was written and synced, in order.
//
// Wraps the default VFS under the name kTestVfs. Shared memory is passed through: a power cut loses
// it, and SQLite rebuilds it.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace berth::test {

inline constexpr const char* kTestVfs = "berth-test";

struct DiskOp {
  enum class Kind { write, truncate, sync, erase };
  Kind kind = Kind::write;
  bool wal = false;         ///< the write-ahead log; otherwise the database
  std::int64_t offset = 0;  ///< of a write; the new size of a truncate
  std::string bytes;
};

/// Registers the VFS (once). All settings apply to every file opened through it.
void install_test_vfs();
/// Asked before every operation; anything but 0 is the SQLite error it fails with.
void set_disk_fault(std::function<int(const DiskOp&)> fault);
/// Syncs cost nothing: for opening many images.
void set_disk_sync_free(bool free);
void start_recording();
std::vector<DiskOp> stop_recording();
std::size_t recorded();
/// Of those recorded: how often the database was synced, that is, the log copied back.
std::size_t recorded_database_syncs();

}  // namespace berth::test
