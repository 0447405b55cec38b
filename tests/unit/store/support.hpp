#pragma once
// What the tests of the store share: a directory, a store driven step by step, random histories.

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "core/change.hpp"
#include "store/reader.hpp"
#include "store/sqlite_store.hpp"

namespace berth::test {

/// A directory that is gone with the object; in memory where that is possible.
class TempDir {
 public:
  TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();
  [[nodiscard]] std::filesystem::path operator/(const char* name) const { return path_ / name; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string read_bytes(const std::filesystem::path& file);
void write_bytes(const std::filesystem::path& file, std::string_view bytes);

/// A store whose engine's thread is the test.
class Driver {
 public:
  explicit Driver(StoreOptions options);
  /// Only when is_open().
  [[nodiscard]] SqliteStore& store() { return **store_; }
  [[nodiscard]] bool is_open() const { return store_.has_value(); }
  [[nodiscard]] Error error() const { return store_.error(); }

  CommitOutcome commit(Transaction transaction);
  CommitOutcome commit(Changes changes) { return commit(Transaction{std::move(changes), {}}); }
  SpaceReport check_space();
  Status trim(Trim what);
  void close();
  /// Called on the writer thread as soon as a commit is answered.
  std::function<void()> on_answer;

 private:
  void run_one();

  struct Mailbox {
    std::mutex mutex;
    std::condition_variable arrived;
    std::vector<std::function<void()>> functions;
  };
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  Result<std::unique_ptr<SqliteStore>> store_;
};

/// Asks again until it is so; a minute at most. Whether it is.
bool wait_for(const std::function<bool()>& condition);

/// Options without ballast, for tests that are not about space.
StoreOptions options_for(const std::filesystem::path& file);

/// A plausible random history: only changes that the core could make.
class Workload {
 public:
  explicit Workload(std::uint64_t seed) : random_(seed) {}
  Transaction next();

 private:
  struct Job {
    JobId id;
    BatchId batch;
    JobState state = JobState::queued;
    std::uint32_t attempts = 0;
    AttemptId attempt;
  };

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool coin() { return below(2) == 0; }
  std::string bytes(std::size_t most);
  Millis tick() { return Millis(wall_ += 1 + static_cast<std::int64_t>(below(5'000))); }
  void submit(Changes& changes);
  void start(Transaction& transaction, Job& job);
  void end(Changes& changes, Job& job);
  [[nodiscard]] change::JobSet set(JobId id);
  void settings(Changes& changes);
  void instance(Changes& changes);
  Overrides rules();
  BatchTraits traits();
  void remove(Changes& changes, const Job& first);

  std::mt19937_64 random_;
  std::int64_t wall_ = 1'700'000'000'000;
  std::vector<Job> jobs_;
  std::vector<std::shared_ptr<const Environment>> environments_;
  std::uint64_t last_job_ = 0, last_batch_ = 0, last_attempt_ = 0, last_queue_ = 0, keys_ = 0;
};

std::string describe(const Snapshot& snapshot);
/// Every row of every table but `meta`, as text.
std::string dump(const std::filesystem::path& file, const std::string& vfs = {});

change::JobPut job_put(std::uint64_t id, std::uint64_t batch = 0, std::uint64_t queue = 1);
change::JobUpdate job_update(std::uint64_t id, JobState state);

}  // namespace berth::test
