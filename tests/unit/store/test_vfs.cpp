#include "test_vfs.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>

#include "base/assert.hpp"

namespace berth::test {
namespace {

std::mutex mutex;
std::function<int(const DiskOp&)> fault;
std::optional<std::vector<DiskOp>> record;
bool sync_free = false;

sqlite3_vfs* real_vfs() {
  static sqlite3_vfs* vfs = sqlite3_vfs_find(nullptr);
  return vfs;
}

struct TestFile {
  sqlite3_file base;
  int flags;
};
constexpr std::size_t kRealOffset = (sizeof(TestFile) + 15) / 16 * 16;

sqlite3_file* real(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + kRealOffset);
}

bool is_wal(sqlite3_file* file) {
  return (reinterpret_cast<TestFile*>(file)->flags & SQLITE_OPEN_WAL) != 0;
}

/// Runs `act` unless a fault is due, and records what succeeded.
template <class Act>
int operate(DiskOp op, Act act) {
  const std::lock_guard guard(mutex);
  if (fault) {
    if (const int code = fault(op); code != SQLITE_OK) {
      return code;
    }
  }
  const int code = act();
  if (code == SQLITE_OK && record) {
    record->push_back(std::move(op));
  }
  return code;
}

int file_close(sqlite3_file* file) {
  return real(file)->pMethods->xClose(real(file));
}
int file_read(sqlite3_file* file, void* to, int size, sqlite3_int64 offset) {
  return real(file)->pMethods->xRead(real(file), to, size, offset);
}
int file_write(sqlite3_file* file, const void* from, int size, sqlite3_int64 offset) {
  DiskOp op{DiskOp::Kind::write, is_wal(file), offset,
            std::string(static_cast<const char*>(from), static_cast<std::size_t>(size))};
  return operate(std::move(op),
                 [&] { return real(file)->pMethods->xWrite(real(file), from, size, offset); });
}
int file_truncate(sqlite3_file* file, sqlite3_int64 size) {
  return operate({DiskOp::Kind::truncate, is_wal(file), size, {}},
                 [&] { return real(file)->pMethods->xTruncate(real(file), size); });
}
int file_sync(sqlite3_file* file, int flags) {
  return operate({DiskOp::Kind::sync, is_wal(file), 0, {}}, [&] {
    return sync_free ? SQLITE_OK : real(file)->pMethods->xSync(real(file), flags);
  });
}
int file_size(sqlite3_file* file, sqlite3_int64* size) {
  return real(file)->pMethods->xFileSize(real(file), size);
}
int file_lock(sqlite3_file* file, int level) {
  return real(file)->pMethods->xLock(real(file), level);
}
int file_unlock(sqlite3_file* file, int level) {
  return real(file)->pMethods->xUnlock(real(file), level);
}
int file_check_reserved(sqlite3_file* file, int* reserved) {
  return real(file)->pMethods->xCheckReservedLock(real(file), reserved);
}
int file_control(sqlite3_file* file, int op, void* arg) {
  return real(file)->pMethods->xFileControl(real(file), op, arg);
}
int file_sector_size(sqlite3_file* file) {
  return real(file)->pMethods->xSectorSize(real(file));
}
int file_characteristics(sqlite3_file* file) {
  return real(file)->pMethods->xDeviceCharacteristics(real(file));
}
int file_shm_map(sqlite3_file* file, int page, int size, int extend, void volatile** out) {
  return real(file)->pMethods->xShmMap(real(file), page, size, extend, out);
}
int file_shm_lock(sqlite3_file* file, int offset, int n, int flags) {
  return real(file)->pMethods->xShmLock(real(file), offset, n, flags);
}
void file_shm_barrier(sqlite3_file* file) {
  real(file)->pMethods->xShmBarrier(real(file));
}
int file_shm_unmap(sqlite3_file* file, int remove) {
  return real(file)->pMethods->xShmUnmap(real(file), remove);
}

const sqlite3_io_methods kMethods = {2,
                                     file_close,
                                     file_read,
                                     file_write,
                                     file_truncate,
                                     file_sync,
                                     file_size,
                                     file_lock,
                                     file_unlock,
                                     file_check_reserved,
                                     file_control,
                                     file_sector_size,
                                     file_characteristics,
                                     file_shm_map,
                                     file_shm_lock,
                                     file_shm_barrier,
                                     file_shm_unmap,
                                     nullptr,
                                     nullptr};

int vfs_open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  auto* test_file = reinterpret_cast<TestFile*>(file);
  test_file->flags = flags;
  test_file->base.pMethods = nullptr;
  const int code = real_vfs()->xOpen(real_vfs(), name, real(file), flags, out_flags);
  if (real(file)->pMethods != nullptr) {
    test_file->base.pMethods = &kMethods;
  }
  return code;
}

int vfs_delete(sqlite3_vfs*, const char* name, int sync_dir) {
  const std::size_t length = std::strlen(name);
  const bool wal = length > 4 && std::strcmp(name + length - 4, "-wal") == 0;
  const auto act = [&] { return real_vfs()->xDelete(real_vfs(), name, sync_dir); };
  return wal ? operate({DiskOp::Kind::erase, true, 0, {}}, act) : act();
}

int vfs_access(sqlite3_vfs*, const char* name, int flags, int* result) {
  return real_vfs()->xAccess(real_vfs(), name, flags, result);
}
int vfs_full_path(sqlite3_vfs*, const char* name, int size, char* out) {
  return real_vfs()->xFullPathname(real_vfs(), name, size, out);
}

}  // namespace

void install_test_vfs() {
  static sqlite3_vfs vfs = [] {
    sqlite3_vfs copy = *real_vfs();  // everything else is the default's own
    copy.pNext = nullptr;
    copy.zName = kTestVfs;
    copy.szOsFile = static_cast<int>(kRealOffset) + real_vfs()->szOsFile;
    copy.xOpen = vfs_open;
    copy.xDelete = vfs_delete;
    copy.xAccess = vfs_access;
    copy.xFullPathname = vfs_full_path;
    return copy;
  }();
  BERTH_ASSERT(sqlite3_vfs_register(&vfs, 0) == SQLITE_OK);
}

void set_disk_fault(std::function<int(const DiskOp&)> new_fault) {
  const std::lock_guard guard(mutex);
  fault = std::move(new_fault);
}

void set_disk_sync_free(bool free) {
  const std::lock_guard guard(mutex);
  sync_free = free;
}

void start_recording() {
  const std::lock_guard guard(mutex);
  record.emplace();
}

std::vector<DiskOp> stop_recording() {
  const std::lock_guard guard(mutex);
  std::vector<DiskOp> ops = std::move(*record);
  record.reset();
  return ops;
}

std::size_t recorded() {
  const std::lock_guard guard(mutex);
  return record ? record->size() : 0;
}

std::size_t recorded_database_syncs() {
  const std::lock_guard guard(mutex);
  return record ? static_cast<std::size_t>(std::ranges::count_if(
                      *record,
                      [](const DiskOp& op) { return op.kind == DiskOp::Kind::sync && !op.wal; }))
                : 0;
}

}  // namespace berth::test
