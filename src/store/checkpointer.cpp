#include "store/checkpointer.hpp"

#include <sqlite3.h>

#include <utility>

#include "base/failpoint.hpp"

namespace berth {
namespace {

/// Pages by which the log must have grown before a forced pass is tried again.
constexpr int kForceAgain = 16 * 256;

}  // namespace

Checkpointer::Checkpointer(Options options, Db& writer, Db own, std::function<void(Error)> failed)
    : options_(std::move(options)),
      writer_(writer),
      failed_(std::move(failed)),
      own_(std::move(own)),
      thread_([this] { run(); }) {}

Checkpointer::~Checkpointer() {
  {
    const std::lock_guard guard(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

Checkpointer::Pass Checkpointer::pass(Db& db) {
  Pass result;
  failpoint("before_checkpoint");
  result.code = sqlite3_wal_checkpoint_v2(db.handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE,
                                          &result.log, &result.copied);
  failpoint("after_checkpoint");
  const int kind = result.code & 0xff;
  if (kind != SQLITE_OK && kind != SQLITE_BUSY && kind != SQLITE_LOCKED) {
    Error error = sqlite_error(db.handle(), result.code);
    // Without space for the database to grow the log still holds everything; commits go on until
    // they meet the same limit, and are helped by the ballast.
    if (error.code != ErrorCode::no_space) {
      {
        const std::lock_guard guard(mutex_);
        dead_ = true;
      }
      failed_(std::move(error));
    }
  }
  return result;
}

void Checkpointer::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stop_ || wanted_; });
    if (stop_) {
      return;
    }
    wanted_ = false;
    if (dead_) {
      continue;
    }
    busy_ = true;
    lock.unlock();
    const Pass done = pass(own_);
    lock.lock();
    busy_ = false;
    last_ = done;
    idle_.notify_one();
    if (options_.done) {
      lock.unlock();
      options_.done();
      lock.lock();
    }
  }
}

void Checkpointer::after_commit(int pages) {
  std::unique_lock lock(mutex_);
  if (pages < options_.pages) {
    forced_at_ = 0;
    last_.reset();
    return;
  }
  if (dead_) {
    return;
  }
  const bool force = pages >= options_.hard && pages >= forced_at_ + kForceAgain;
  if (force) {
    forced_at_ = pages;
    idle_.wait(lock, [this] { return !busy_; });
  }
  const std::optional<Pass> seen = busy_ ? std::nullopt : std::exchange(last_, std::nullopt);
  // What the thread copied counts up to the log's end as it was then; the rest came later.
  const bool little = seen && seen->code == SQLITE_OK && seen->copied == seen->log &&
                      pages - seen->copied <= options_.nearly;
  if ((force || little) && !dead_) {
    lock.unlock();
    [[maybe_unused]] const Pass done = pass(writer_);
    if (options_.done) {
      options_.done();
    }
    return;
  }
  if (!busy_) {
    wanted_ = true;
    lock.unlock();
    wake_.notify_one();
  }
}

}  // namespace berth
