#pragma once
// A store with many jobs, driven from one thread, for the measurements of the store.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "store/sqlite_store.hpp"

namespace berth::bench {

inline double milliseconds_since(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun)
      .count();
}

template <class T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "bench: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  return std::move(*result);
}

/// A store whose engine is whoever calls commit().
class DrivenStore {
 public:
  explicit DrivenStore(const std::filesystem::path& file) {
    StoreOptions options;
    options.file = file;
    options.boot_id = "bench";
    options.post = [this](std::function<void()> function) {
      const std::lock_guard guard(mutex_);
      posted_.push_back(std::move(function));
      arrived_.notify_one();
    };
    store_ = must(SqliteStore::open(std::move(options)));
  }
  DrivenStore(const DrivenStore&) = delete;
  DrivenStore& operator=(const DrivenStore&) = delete;
  ~DrivenStore() { store_.reset(); }

  /// Returns when it is durable.
  void commit(Changes changes) {
    std::optional<CommitOutcome> outcome;
    store_->commit({std::move(changes), {}}, [&](CommitOutcome o) { outcome = std::move(o); });
    while (!outcome) {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [this] { return !posted_.empty(); });
      const auto function = std::move(posted_.front());
      posted_.erase(posted_.begin());
      lock.unlock();
      function();
    }
    if (!outcome->status) {
      std::fprintf(stderr, "bench: %s\n", outcome->status.error().message.c_str());
      std::exit(1);
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::function<void()>> posted_;
  std::unique_ptr<SqliteStore> store_;
};

inline std::shared_ptr<const Environment> usual_environment() {
  Environment variables;
  for (int n = 0; n < 40; ++n) {
    variables.push_back(fmt::format("VARIABLE_{}=/some/value/of/usual/length/{}", n, n * 7919));
  }
  return std::make_shared<const Environment>(std::move(variables));
}

/// Job `id` of a sweep: names, queues and batches that repeat.
inline change::JobPut a_job(std::uint64_t id,
                            const std::shared_ptr<const Environment>& environment) {
  auto spec = std::make_shared<JobSpec>();
  spec->name = fmt::format("lr-{}-seed-{}", id % 100, id);
  spec->payload.environment = environment;
  spec->payload.commands = {{false, {"python", "train.py", "--seed", fmt::format("{}", id)}}};
  spec->payload.cwd = "/home/somebody/experiments";
  return {{id},
          {1 + id / 10'000},
          {1 + id % 4},
          1000,
          Millis(1'700'000'000'000 + static_cast<std::int64_t>(id)),
          spec,
          {}};
}

/// Jobs 1 to `jobs`, with batches of 10,000 and four queues. With `ended`, all but the last 10,000
/// have run and ended, one in 100 of them badly, and left three lines of history.
inline void fill(DrivenStore& store, std::uint64_t jobs, bool ended) {
  const auto environment = usual_environment();
  Changes changes;
  for (std::uint64_t queue = 1; queue <= 4; ++queue) {
    changes.push_back(change::QueuePut{{queue}, {fmt::format("queue-{}", queue), 0}});
  }
  for (std::uint64_t id = 1; id <= jobs; ++id) {
    const BatchId batch{1 + id / 10'000};
    const Millis wall{1'700'000'000'000 + static_cast<std::int64_t>(id) * 1'000};
    if (id == 1 || id % 10'000 == 0) {
      changes.push_back(change::BatchPut{batch, "sweep", 1000, 0, 10'000, wall});
    }
    changes.push_back(a_job(id, environment));
    if (ended && id + 10'000 <= jobs) {
      const JobState state = id % 100 == 7 ? JobState::failed : JobState::succeeded;
      change::JobUpdate update;
      update.id = {id};
      update.state = state;
      update.attempts = 1;
      update.wall = wall;
      changes.push_back(change::AttemptPut{{id}, {id}, 1, {"GPU-1"}, {0}, 0, wall});
      changes.push_back(change::AttemptEnd{{id}, false, {}, wall});
      changes.push_back(std::move(update));
      changes.push_back(change::History{"submitted", {id}, {}, batch, "", wall});
      changes.push_back(change::History{"started", {id}, {id}, batch, "", wall});
      changes.push_back(
          change::History{std::string(to_string(state)), {id}, {id}, batch, "", wall});
    }
    if (id % 5'000 == 0 || id == jobs) {
      store.commit(std::exchange(changes, {}));
    }
  }
}

/// The value below which this share of the sorted values lies.
inline double quantile(const std::vector<double>& sorted, double share) {
  const auto at = static_cast<std::size_t>(share * static_cast<double>(sorted.size()));
  return sorted[std::min(at, sorted.size() - 1)];
}

}  // namespace berth::bench
