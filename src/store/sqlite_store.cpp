#include "store/sqlite_store.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/assert.hpp"
#include "base/failpoint.hpp"
#include "base/fd.hpp"
#include "store/checkpointer.hpp"
#include "store/load.hpp"
#include "store/schema.hpp"
#include "store/sqlite.hpp"
#include "store/writer.hpp"

namespace berth {

class SqliteStore::Impl {
 public:
  explicit Impl(StoreOptions options) : options_(std::move(options)) {}
  ~Impl();

  Status open();
  Result<Snapshot> load() { return load_snapshot(reader_); }
  void commit(Transaction transaction, std::function<void(CommitOutcome)> done);
  std::optional<change::ClientKey> find_key(const std::string& key, std::uint32_t owner);
  std::optional<JobState> find_job_state(JobId id);
  std::optional<EndedJob> find_ended_job(JobId id);
  void check_space(std::function<void(SpaceReport)> done);
  void trim(Trim what, std::function<void(Status)> done);

  std::string instance_id;

 private:
  struct Work {
    Transaction transaction;
    std::function<void(CommitOutcome)> done;
  };

  struct TrimWork {
    Trim what;
    std::function<void(Status)> done;
  };

  void run();
  CommitOutcome write(const Transaction& transaction);
  Status write(const Trim& trim);
  void break_with(Error error);
  std::optional<Error> broken();

  StoreOptions options_;
  Fd lock_;  ///< outlives both connections
  Db db_;    ///< writer thread only, once it runs
  std::unique_ptr<TransactionWriter> writer_;
  std::optional<Ballast> ballast_;
  int wal_pages_ = 0;

  // The engine's thread: a second connection, which sees what is durable, and the parts of the
  // transaction under way that somebody may ask for. A stale entry says what the database says.
  Db reader_;
  Stmt find_key_, find_state_, find_ended_, find_after_;
  std::map<std::pair<std::uint32_t, std::string>, change::ClientKey> pending_keys_;
  std::unordered_map<JobId, JobState> pending_states_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<Work> work_;
  std::vector<std::function<void(SpaceReport)>> space_requests_;
  std::deque<TrimWork> trims_;
  std::optional<Error> broken_;
  bool committing_ = false;
  bool stop_ = false;
  std::unique_ptr<Checkpointer> checkpointer_;  ///< used on the writer thread
  std::thread thread_;
};

Status SqliteStore::Impl::open() {
  BERTH_ASSERT(options_.post);
  TRY_ASSIGN(lock_, lock_store(options_.file));
  std::error_code ec;
  const auto status = std::filesystem::status(options_.file, ec);
  if (status.type() == std::filesystem::file_type::not_found) {
    TRY(create_store(options_.file, options_.vfs));
  }
  TRY_ASSIGN(db_, open_for_writing(options_.file, options_.vfs));
  sqlite3_wal_hook(
      db_.handle(),
      [](void* pages, sqlite3*, const char*, int count) {
        *static_cast<int*>(pages) = count;
        return SQLITE_OK;
      },
      &wal_pages_);
  TRY_ASSIGN(writer_, TransactionWriter::open(db_, options_.boot_id));
  TRY_ASSIGN(reader_, open_for_reading(options_.file, options_.vfs));
  TRY_ASSIGN(find_key_, reader_.prepare("SELECT batch, first_job, jobs FROM client_keys"
                                        " WHERE owner=?1 AND key=?2"));
  TRY_ASSIGN(find_state_, reader_.prepare("SELECT state FROM jobs WHERE id=?1"));
  TRY_ASSIGN(find_ended_, reader_.prepare(kEndedJob));
  TRY_ASSIGN(find_after_, reader_.prepare(kDependencies));
  TRY_ASSIGN(instance_id, reader_.text("SELECT value FROM meta WHERE name='instance_id'"));
  TRY_ASSIGN(Db copying, open_for_checkpoints(options_.file, options_.vfs));
  Checkpointer::Options copy;
  copy.pages = options_.checkpoint_pages;
  copy.nearly = options_.checkpoint_pages / 8;
  copy.hard = options_.checkpoint_pages + options_.checkpoint_slack;
  copy.done = options_.on_checkpoint;
  checkpointer_ =
      std::make_unique<Checkpointer>(std::move(copy), db_, std::move(copying),
                                     [this](Error error) { break_with(std::move(error)); });
  ballast_.emplace(options_.file, options_.ballast, options_.low_space_margin, options_.free_space);
  thread_ = std::thread([this] { run(); });
  return {};
}

SqliteStore::Impl::~Impl() {
  if (thread_.joinable()) {
    {
      const std::lock_guard guard(mutex_);
      stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  checkpointer_.reset();
  // After a failed sync a second one may succeed and mean nothing, so a broken store leaves its log
  // for recovery instead of copying and deleting it.
  db_.set_checkpoint_on_close(!broken_);
  // Statements before their connections, and the writer's connection last: closing the last one
  // copies the log back and removes it.
  writer_.reset();
  find_key_ = {};
  find_state_ = {};
  find_ended_ = {};
  find_after_ = {};
  reader_ = {};
}

void SqliteStore::Impl::commit(Transaction transaction, std::function<void(CommitOutcome)> done) {
  pending_keys_.clear();
  pending_states_.clear();
  for (const Change& change : transaction.changes) {
    if (const auto* update = std::get_if<change::JobUpdate>(&change)) {
      pending_states_[update->id] = update->state;
    } else if (const auto* key = std::get_if<change::ClientKey>(&change)) {
      pending_keys_.try_emplace({key->owner, key->key}, *key);
    }
  }
  {
    const std::lock_guard guard(mutex_);
    BERTH_ASSERT(!committing_);
    committing_ = true;
    work_.emplace(std::move(transaction), std::move(done));
  }
  wake_.notify_one();
}

void SqliteStore::Impl::check_space(std::function<void(SpaceReport)> done) {
  {
    const std::lock_guard guard(mutex_);
    space_requests_.push_back(std::move(done));
  }
  wake_.notify_one();
}

void SqliteStore::Impl::trim(Trim what, std::function<void(Status)> done) {
  {
    const std::lock_guard guard(mutex_);
    trims_.push_back({std::move(what), std::move(done)});
  }
  wake_.notify_one();
}

void SqliteStore::Impl::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock,
               [this] { return stop_ || work_ || !space_requests_.empty() || !trims_.empty(); });
    std::optional<Work> work = std::exchange(work_, std::nullopt);
    auto requests = std::exchange(space_requests_, {});
    std::optional<TrimWork> trim;
    if (!work && !trims_.empty() && !stop_) {  // nobody waits for it
      trim = std::move(trims_.front());
      trims_.pop_front();
    }
    if (!work && requests.empty() && !trim) {
      return;
    }
    lock.unlock();
    if (work) {
      CommitOutcome outcome = write(work->transaction);
      lock.lock();
      committing_ = false;  // before the answer, which may bring the next one at once
      lock.unlock();
      options_.post([done = std::move(work->done), outcome = std::move(outcome)]() mutable {
        done(std::move(outcome));
      });
      work.reset();  // a large batch is freed here, not on the engine's thread
      checkpointer_->after_commit(wal_pages_);
    }
    if (trim) {
      Status status = write(trim->what);
      options_.post([done = std::move(trim->done), status = std::move(status)]() mutable {
        done(std::move(status));
      });
      checkpointer_->after_commit(wal_pages_);
    }
    for (auto& request : requests) {
      options_.post([done = std::move(request), report = ballast_->check()] { done(report); });
    }
    lock.lock();
  }
}

CommitOutcome SqliteStore::Impl::write(const Transaction& transaction) {
  CommitOutcome outcome;
  if (auto error = broken()) {
    outcome.status = std::unexpected(std::move(*error));
    return outcome;
  }
  for (const AttemptId attempt : transaction.prepare) {
    failpoint("before_prepare");
    if (Status prepared = options_.prepare ? options_.prepare(attempt) : Status(); !prepared) {
      outcome.unprepared.emplace_back(attempt, std::move(prepared.error()));
    }
    failpoint("after_prepare");
  }
  failpoint("before_commit");
  outcome.status = writer_->write(transaction.changes);
  if (!outcome.status && outcome.status.error().code == ErrorCode::no_space &&
      ballast_->release()) {
    outcome.status = writer_->write(transaction.changes);
  }
  failpoint("after_commit");
  if (!outcome.status) {
    break_with(outcome.status.error());
    return outcome;
  }
  const SpaceReport& space = ballast_->check_now_and_then();
  outcome.low_space = space.low;
  outcome.space_detail = space.detail;
  return outcome;
}

Status SqliteStore::Impl::write(const Trim& trim) {
  if (auto error = broken()) {
    return std::unexpected(std::move(*error));
  }
  Status status = writer_->write(trim);
  // What did not fit stays: nothing depends on it.
  if (!status && status.error().code != ErrorCode::no_space) {
    break_with(status.error());
  }
  return status;
}

void SqliteStore::Impl::break_with(Error error) {
  const std::lock_guard guard(mutex_);
  if (!broken_) {
    broken_ = std::move(error);
  }
}

std::optional<Error> SqliteStore::Impl::broken() {
  const std::lock_guard guard(mutex_);
  return broken_;
}

std::optional<change::ClientKey> SqliteStore::Impl::find_key(const std::string& key,
                                                             std::uint32_t owner) {
  find_key_.bind(owner, key);
  const Result<bool> row = find_key_.step();
  if (!row) {
    // "Unknown" would be a lie that submits the jobs twice: no commit may follow it.
    break_with(row.error());
    return std::nullopt;
  }
  if (*row) {
    change::ClientKey found{key, owner, find_key_.get<BatchId>(0), find_key_.get<JobId>(1),
                            find_key_.get<std::uint64_t>(2)};
    find_key_.reset();
    return found;
  }
  if (const auto pending = pending_keys_.find({owner, key}); pending != pending_keys_.end()) {
    return pending->second;
  }
  return std::nullopt;
}

std::optional<JobState> SqliteStore::Impl::find_job_state(JobId id) {
  if (const auto pending = pending_states_.find(id); pending != pending_states_.end()) {
    return pending->second;
  }
  find_state_.bind(id);
  const Result<bool> row = find_state_.step();
  if (!row) {
    break_with(row.error());
    return std::nullopt;
  }
  if (!*row) {
    return std::nullopt;
  }
  const Result<JobState> state = checked_state(find_state_.integer(0));
  find_state_.reset();
  if (!state) {
    break_with(state.error());
    return std::nullopt;
  }
  return *state;
}

std::optional<EndedJob> SqliteStore::Impl::find_ended_job(JobId id) {
  auto job = read_ended_job(find_ended_, find_after_, id);
  if (!job) {
    break_with(job.error());
    return std::nullopt;
  }
  return std::move(*job);
}

SqliteStore::SqliteStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SqliteStore::~SqliteStore() = default;

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(StoreOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  TRY(impl->open());
  return std::unique_ptr<SqliteStore>(new SqliteStore(std::move(impl)));
}

Result<Snapshot> SqliteStore::load() {
  return impl_->load();
}
void SqliteStore::commit(Transaction transaction, std::function<void(CommitOutcome)> done) {
  impl_->commit(std::move(transaction), std::move(done));
}
std::optional<change::ClientKey> SqliteStore::find_key(const std::string& key,
                                                       std::uint32_t owner) {
  return impl_->find_key(key, owner);
}
std::optional<JobState> SqliteStore::find_job_state(JobId id) {
  return impl_->find_job_state(id);
}
std::optional<EndedJob> SqliteStore::find_ended_job(JobId id) {
  return impl_->find_ended_job(id);
}
void SqliteStore::trim(Trim what, std::function<void(Status)> done) {
  impl_->trim(std::move(what), std::move(done));
}
void SqliteStore::check_space(std::function<void(SpaceReport)> done) {
  impl_->check_space(std::move(done));
}
const std::string& SqliteStore::instance_id() const {
  return impl_->instance_id;
}

}  // namespace berth
