#pragma once
// Ports under a test's control: commits end when the test says so, effects are only noted.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/engine.hpp"

namespace berth::testing {

/// What happened, in order: "commit 3", "durable", "start 1", "reply a".
using Trace = std::vector<std::string>;

class FakeClock : public Clock {
 public:
  Now value{Millis{1000}, Millis{1'700'000'000'000}};
  Now now() override { return value; }
};

class FakeEffects : public EffectSink {
 public:
  explicit FakeEffects(Trace& trace) : trace_(trace) {}
  void run(const Effect& effect) override {
    struct Name {
      std::string operator()(const effect::Start& e) const {
        return fmt::format("start {}", e.attempt.value);
      }
      std::string operator()(const effect::Kill& e) const {
        return fmt::format("kill {}", e.attempt.value);
      }
      std::string operator()(const effect::Pause& e) const {
        return fmt::format("pause {}", e.attempt.value);
      }
      std::string operator()(const effect::Resume& e) const {
        return fmt::format("resume {}", e.attempt.value);
      }
      std::string operator()(const effect::Forget& e) const {
        return fmt::format("forget {}", e.attempt.value);
      }
      std::string operator()(const effect::Sample&) const { return "sample"; }
      std::string operator()(const effect::Wake&) const { return "wake"; }
      std::string operator()(const effect::Continue&) const { return "continue"; }
    };
    if (!std::holds_alternative<effect::Wake>(effect)) {
      trace_.push_back(std::visit(Name{}, effect));
    }
  }

 private:
  Trace& trace_;
};

class FakeStore : public Store {
 public:
  explicit FakeStore(Trace& trace) : trace_(trace) {}

  void commit(Transaction transaction, std::function<void(CommitOutcome)> done) override {
    EXPECT_FALSE(pending_) << "a second commit while one is under way";
    EXPECT_FALSE(transaction.changes.empty()) << "a commit of nothing";
    ++commits;
    trace_.push_back("commit");
    pending_.emplace(std::move(transaction), std::move(done));
  }
  std::optional<change::ClientKey> find_key(const std::string& key, std::uint32_t owner) override {
    const auto it = keys_.find({key, owner});
    return it == keys_.end() ? std::nullopt : std::optional(it->second);
  }
  std::optional<JobState> find_job_state(JobId id) override {
    const auto it = jobs_.find(id);
    return it == jobs_.end() ? std::nullopt : std::optional(it->second.state);
  }
  std::optional<EndedJob> find_ended_job(JobId id) override {
    const auto it = jobs_.find(id);
    return it == jobs_.end() || !is_terminal(it->second.state) ? std::nullopt
                                                               : std::optional(it->second);
  }

  /// Ends the commit under way.
  void finish(CommitOutcome outcome = {}) {
    ASSERT_TRUE(pending_) << "no commit is under way";
    auto [transaction, done] = std::move(*pending_);
    pending_.reset();
    if (outcome.status) {
      trace_.push_back("durable");
      for (const Change& change : transaction.changes) {
        remember(change);
      }
      last_prepared = transaction.prepare;
    }
    done(std::move(outcome));
  }
  [[nodiscard]] bool busy() const { return pending_.has_value(); }

  int commits = 0;
  std::vector<AttemptId> last_prepared;

 private:
  void remember(const Change& change) {
    if (const auto* key = std::get_if<change::ClientKey>(&change)) {
      keys_[{key->key, key->owner}] = *key;
    } else if (const auto* job = std::get_if<change::JobPut>(&change)) {
      EndedJob& row = jobs_[job->id];
      row.id = job->id;
      row.state = JobState::queued;
      row.batch = job->batch;
      row.queue = job->queue;
      row.request = job->spec->request;
      row.after = job->after;
      row.retries = job->spec->retries;
    } else if (const auto* update = std::get_if<change::JobUpdate>(&change)) {
      jobs_[update->id].state = update->state;
      jobs_[update->id].attempts = update->attempts;
    } else if (const auto* removed = std::get_if<change::JobsRemove>(&change)) {
      for (const JobId id : removed->ids) {
        jobs_.erase(id);
      }
    }
  }

  Trace& trace_;
  std::optional<std::pair<Transaction, std::function<void(CommitOutcome)>>> pending_;
  std::map<std::pair<std::string, std::uint32_t>, change::ClientKey> keys_;
  std::map<JobId, EndedJob> jobs_;
};

}  // namespace berth::testing
