#include "support.hpp"

#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.hpp"

namespace berth::test {

namespace fs = std::filesystem;

TempDir::TempDir() {
  for (const char* root : {"/dev/shm", "/tmp"}) {
    std::string name = std::string(root) + "/berth-store-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) {
      path_ = name;
      return;
    }
  }
  BERTH_ASSERT(!path_.empty());
}

TempDir::~TempDir() {
  std::error_code ec;
  fs::remove_all(path_, ec);
}

std::string read_bytes(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return std::move(out).str();
}

void write_bytes(const fs::path& file, std::string_view bytes) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  BERTH_ASSERT(out.good());
}

bool wait_for(const std::function<bool()>& condition) {
  for (int n = 0; n < 60'000; ++n) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

StoreOptions options_for(const fs::path& file) {
  StoreOptions options;
  options.file = file;
  options.boot_id = "boot-1";
  options.ballast = 0;
  options.low_space_margin = 0;
  return options;
}

Driver::Driver(StoreOptions options)
    : store_([&] {
        options.post = [this, box = mailbox_](std::function<void()> function) {
          if (on_answer) {
            on_answer();
          }
          const std::lock_guard guard(box->mutex);
          box->functions.push_back(std::move(function));
          box->arrived.notify_one();
        };
        return SqliteStore::open(std::move(options));
      }()) {}

void Driver::run_one() {
  std::unique_lock lock(mailbox_->mutex);
  mailbox_->arrived.wait(lock, [this] { return !mailbox_->functions.empty(); });
  auto function = std::move(mailbox_->functions.front());
  mailbox_->functions.erase(mailbox_->functions.begin());
  lock.unlock();
  function();
}

CommitOutcome Driver::commit(Transaction transaction) {
  std::optional<CommitOutcome> outcome;
  store().commit(std::move(transaction), [&](CommitOutcome o) { outcome = std::move(o); });
  while (!outcome) {
    run_one();
  }
  return *outcome;
}

SpaceReport Driver::check_space() {
  std::optional<SpaceReport> report;
  store().check_space([&](SpaceReport r) { report = std::move(r); });
  while (!report) {
    run_one();
  }
  return *report;
}

Status Driver::trim(Trim what) {
  std::optional<Status> answer;
  store().trim(std::move(what), [&](Status status) { answer = std::move(status); });
  while (!answer) {
    run_one();
  }
  return *answer;
}

void Driver::close() {
  store_->reset();
}

std::string Workload::bytes(std::size_t most) {
  std::string text(below(most + 1), '\0');
  for (char& c : text) {
    c = static_cast<char>(below(8) == 0 ? below(256) : 'a' + below(26));
  }
  return text;
}

Overrides Workload::rules() {
  Overrides rules;
  for (std::uint64_t n = below(3); n > 0; --n) {
    rules.insert_or_assign(fmt::format("rule.{}", below(4)), bytes(6));
  }
  return rules;
}

BatchTraits Workload::traits() {
  return coin() ? BatchTraits{}
                : BatchTraits{bytes(4), "/" + bytes(6), "x.log", "multi", bytes(9), 3, below(100)};
}

void Workload::instance(Changes& changes) {
  switch (below(4)) {
    case 0:
      changes.push_back(change::InstancePut{coin()});
      break;
    case 1:
      changes.push_back(
          change::DrainPut{fmt::format("GPU-{}", below(3)), coin(), bytes(10), tick()});
      break;
    case 2:
      if (last_batch_ > 0) {
        changes.push_back(change::BatchRules{
            {1 + below(last_batch_)}, rules(), static_cast<std::uint32_t>(below(4))});
      }
      break;
    default: {
      const bool batch = coin() && !jobs_.empty() && jobs_.back().batch;
      const std::uint64_t id = batch ? jobs_.back().batch.value : below(3);
      changes.push_back(
          change::UsagePut{batch, id, static_cast<double>(below(1'000'000)) / 7, tick()});
    }
  }
}

void Workload::settings(Changes& changes) {
  if (last_queue_ == 0 || below(4) == 0) {
    const std::uint64_t id = last_queue_ == 0 || coin() ? ++last_queue_ : 1 + below(last_queue_);
    changes.push_back(change::QueuePut{
        {id},
        {fmt::format("queue {}", id), static_cast<std::uint32_t>(below(4)), rules()},
        coin()});
  } else if (coin()) {
    instance(changes);
  } else {
    changes.push_back(change::ResourcePut{fmt::format("licence {}", below(3)), below(100)});
  }
}

void Workload::submit(Changes& changes) {
  if (environments_.empty() || below(3) == 0) {
    Environment environment;
    for (std::uint64_t n = below(4); n > 0; --n) {
      environment.push_back("V=" + bytes(below(10) == 0 ? 9'000 : 6));
    }
    environments_.push_back(std::make_shared<const Environment>(std::move(environment)));
  }
  BatchId batch;
  const std::uint64_t jobs = coin() ? 1 : 1 + below(30);
  const auto owner = static_cast<std::uint32_t>(below(3));
  if (jobs > 1 || coin()) {
    batch = {++last_batch_};
    changes.push_back(change::BatchPut{batch,
                                       bytes(8),
                                       owner,
                                       static_cast<std::uint32_t>(below(3)),
                                       jobs,
                                       tick(),
                                       false,
                                       false,
                                       {},
                                       rules(),
                                       traits()});
  }
  const JobId first{last_job_ + 1};
  for (std::uint64_t n = 0; n < jobs; ++n) {
    auto spec = std::make_shared<JobSpec>();
    spec->name = bytes(12);
    spec->priority = static_cast<std::int32_t>(below(11)) - 5;
    spec->request.gpus.min = static_cast<std::uint32_t>(below(3));
    spec->request.gpus.max = spec->request.gpus.min + static_cast<std::uint32_t>(below(3));
    if (coin()) {
      spec->request.gpu_memory = random_() >> below(64);
    }
    if (below(4) == 0) {
      spec->request.rules = rules();
      spec->request.time = Millis(below(100'000));
      spec->request.resources["licence 1"] = below(5);
    }
    spec->retries = static_cast<std::uint32_t>(below(3));
    spec->after_kind = static_cast<After>(below(3));
    spec->start_at = coin() ? Millis{0} : tick();
    Payload& payload = spec->payload;
    payload.environment = environments_[below(environments_.size())];
    payload.commands.push_back({coin(), {bytes(20)}});
    if (coin()) {
      payload.extra_env.push_back("X=" + bytes(10));
      payload.log = "/" + bytes(10);
      payload.nice = -static_cast<std::int32_t>(below(20));
      payload.time_limit = Millis(below(100'000));
      payload.linger = coin();
      payload.warning = coin() ? WarningSignal{12, Millis(30'000)} : WarningSignal{};
    }
    if (coin()) {
      payload.params = {{"lr", bytes(4)}, {"seed", bytes(2)}};
      payload.fingerprint = 1 + below(20);
      payload.work_dir = "/" + bytes(5);
    }
    payload.cwd = "/" + bytes(10);
    change::JobPut put{{++last_job_}, batch, {1 + below(last_queue_)}, owner, tick(), spec, {}};
    for (std::uint64_t d = below(3); d > 0 && last_job_ > 1; --d) {
      put.after.push_back({1 + below(last_job_ - 1)});
    }
    changes.push_back(put);
    jobs_.push_back({put.id, batch, JobState::queued, 0, {}});
  }
  if (coin()) {
    changes.push_back(
        change::ClientKey{fmt::format("key {}", ++keys_ - below(2)), owner, batch, first, jobs});
  }
  changes.push_back(change::History{"submitted", first, {}, batch, bytes(20), tick()});
}

void Workload::start(Transaction& transaction, Job& job) {
  job.attempt = {++last_attempt_};
  job.state = JobState::running;
  ++job.attempts;
  change::AttemptPut put{job.attempt, job.id, job.attempts, {}, {}, below(1'000'000), tick()};
  for (std::uint64_t n = below(3); n > 0; --n) {
    put.gpus.push_back("GPU-" + bytes(30));
    put.gpu_indices.push_back(static_cast<std::uint32_t>(below(16)));
  }
  auto update = job_update(job.id.value, job.state);
  update.attempts = job.attempts;
  update.wall = tick();
  transaction.prepare.push_back(job.attempt);
  transaction.changes.push_back(std::move(put));
  transaction.changes.push_back(std::move(update));
  transaction.changes.push_back(
      change::History{"started", job.id, job.attempt, job.batch, "", tick()});
}

void Workload::end(Changes& changes, Job& job) {
  change::AttemptEnd end;
  end.id = job.attempt;
  end.revoked = below(5) == 0;
  end.wall = tick();
  end.verdict.ended_wall = tick();
  auto update = job_update(job.id.value, JobState::succeeded);
  if (coin()) {
    end.verdict.exit_code = static_cast<std::int32_t>(below(256));
    end.verdict.user_time = Millis(below(10'000));
    end.verdict.max_rss = below(kGiB);
    end.verdict.log_dropped = below(2) * below(kGiB);
  } else {
    end.verdict.signal = 9;
    end.verdict.killed = coin();
    end.verdict.failure = static_cast<FailureClass>(below(8));
    end.verdict.message = bytes(30);
    end.verdict.leftover = static_cast<std::uint32_t>(below(3));
    update.state = coin() ? JobState::failed : coin() ? JobState::killed : JobState::queued;
    update.failure = end.verdict.failure;
    update.message = end.verdict.message;
    update.kill_requested = end.verdict.killed;
    if (update.kill_requested && coin()) {
      update.kill_grace = Millis(below(60'000));
    }
    update.retries_used = job.attempts;
    if (update.state == JobState::queued && coin()) {
      update.not_before = tick();
      update.excused = 2;
    }
  }
  update.exit_code = end.verdict.exit_code;
  update.attempts = job.attempts;
  update.wall = tick();
  job.state = update.state;
  changes.push_back(end);
  changes.push_back(update);
  changes.push_back(change::History{"ended", job.id, job.attempt, job.batch, bytes(9), tick()});
}

change::JobSet Workload::set(JobId id) {
  change::JobSet set;
  set.id = id;
  const auto maybe = [this](auto& field, auto value) {
    if (below(3) == 0) {
      field = std::move(value);
    }
  };
  maybe(set.name, bytes(12));
  maybe(set.queue, QueueId{1 + below(last_queue_)});
  maybe(set.priority, static_cast<std::int32_t>(below(9)) - 4);
  maybe(set.rank, static_cast<std::int64_t>(below(1'000'000)) - 500'000);
  maybe(set.expedited, coin());
  maybe(set.retries, static_cast<std::uint32_t>(below(5)));
  maybe(set.time_limit, Millis(below(90'000)));
  maybe(set.grace, Millis(below(90'000)));
  Request request;
  request.cpus = static_cast<std::uint32_t>(below(64));
  request.rules = rules();
  maybe(set.request, request);
  return set;
}

/// With some that ended, too, and one that never was. A job that others may follow is left: only
/// one that has succeeded could go, and this history does not know who follows whom.
void Workload::remove(Changes& changes, const Job& first) {
  change::JobsRemove gone;
  gone.ids = {first.id, {last_job_ + 1'000}};
  for (const Job& job : jobs_) {
    if (is_terminal(job.state) && below(4) == 0) {
      gone.ids.push_back(job.id);
    }
  }
  std::erase_if(jobs_, [&](const Job& job) { return std::ranges::count(gone.ids, job.id) > 0; });
  changes.push_back(std::move(gone));
}

Transaction Workload::next() {
  Transaction transaction;
  if (last_queue_ == 0) {
    settings(transaction.changes);
  }
  for (std::uint64_t n = 1 + below(4); n > 0; --n) {
    const std::uint64_t kind = below(10);
    if (jobs_.empty() || kind < 3) {
      submit(transaction.changes);
      continue;
    }
    if (kind == 3) {
      settings(transaction.changes);
      continue;
    }
    Job& job = jobs_[below(jobs_.size())];
    if (is_terminal(job.state) && coin()) {
      remove(transaction.changes, job);
      continue;
    }
    if (kind == 4) {
      transaction.changes.push_back(set(job.id));
    } else if (is_terminal(job.state) && coin()) {
      auto update = job_update(job.id.value, JobState::queued);
      update.attempts = job.attempts;
      update.revived = true;
      job.state = update.state;
      transaction.changes.push_back(update);
    } else if (job.state == JobState::running && below(5) == 0) {
      transaction.changes.push_back(
          change::AttemptGivesWay{job.attempt, static_cast<GivesWay>(below(3))});
    } else if (job.state == JobState::queued) {
      start(transaction, job);
    } else if (job.state == JobState::running && below(4) == 0) {
      auto update = job_update(job.id.value, JobState::paused);
      update.attempts = job.attempts;
      job.state = update.state;
      transaction.changes.push_back(update);
    } else if (!is_terminal(job.state)) {
      end(transaction.changes, job);
    }
  }
  return transaction;
}

std::string describe(const Snapshot& s) {
  std::string text =
      fmt::format("last {} {} {} {} paused {}\n", s.last_job.value, s.last_attempt.value,
                  s.last_batch.value, s.last_queue.value, s.paused);
  for (const auto& [gpu, why] : s.drains) {
    text += fmt::format("drained {} {}\n", gpu, why);
  }
  for (const auto& usage : s.usage) {
    text +=
        fmt::format("used {} {} {} {}\n", usage.batch, usage.id, usage.gpu_ms, usage.wall.count());
  }
  for (const auto& [id, state] : s.failed_dependencies) {
    text += fmt::format("ended {} {}\n", id.value, to_string(state));
  }
  for (const auto& [id, spec] : s.queues) {
    text += fmt::format("queue {} {} {} {} {}\n", id.value, spec.name, spec.limit,
                        s.paused_queues.contains(id), fmt::join(spec.rules, ";"));
  }
  for (const auto& [name, total] : s.resources) {
    text += fmt::format("resource {} {}\n", name, total);
  }
  for (const auto& batch : s.batches) {
    text += fmt::format("batch {} {} {} {}\n", batch.id.value, batch.name, batch.max_concurrent,
                        fmt::join(batch.rules, ";"));
  }
  for (const auto& job : s.jobs) {
    std::vector<std::uint64_t> after;
    for (const JobId id : job.after) {
      after.push_back(id.value);
    }
    const auto& r = job.request;
    text += fmt::format(
        "job {} b{} q{} o{} p{} g{}..{} {} {} {} after {} r{} u{} a{} s{} k{} {} rank {} {}"
        " {} submitted {} not before {} {} excused {} last end {}\n",
        job.id.value, job.batch.value, job.queue.value, job.owner, job.priority, r.gpus.min,
        r.gpus.max, r.gpu_memory.value_or(~0ULL), fmt::join(r.rules, ";"), r.resources.size(),
        fmt::join(after, ","), job.retries, job.retries_used, job.attempts,
        static_cast<int>(job.state), job.kill_requested,
        job.kill_grace.value_or(Millis(-1)).count(), job.rank, job.expedited,
        to_string(job.after_kind), job.submitted.count(), job.not_before.count(), job.backing_off,
        job.excused, job.last_end.count());
  }
  for (const auto& a : s.attempts) {
    text += fmt::format("attempt {} job {} #{} {} {} {} {} {}\n", a.id.value, a.job.value, a.number,
                        fmt::join(a.gpus, ","), a.gpu_memory, a.boot_id, a.started.count(),
                        a.gives_way ? to_string(*a.gives_way) : "-");
  }
  return text;
}

std::string dump(const fs::path& file, const std::string& vfs) {
  sqlite3* db = nullptr;
  BERTH_ASSERT(sqlite3_open_v2(file.c_str(), &db, SQLITE_OPEN_READWRITE,
                               vfs.empty() ? nullptr : vfs.c_str()) == SQLITE_OK);
  std::string text;
  const auto collect = [](void* out, int columns, char** values, char**) {
    auto& to = *static_cast<std::string*>(out);
    for (int i = 0; i < columns; ++i) {
      to += values[i] == nullptr ? "NULL" : values[i];
      to += i + 1 == columns ? '\n' : '|';
    }
    return 0;
  };
  for (const char* table : {"counters", "queue_counters", "queues", "resources", "batches", "jobs",
                            "payloads", "environments", "fingerprints", "dependencies", "boots",
                            "attempts", "client_keys", "history", "drains", "usage"}) {
    std::string columns;
    BERTH_ASSERT(sqlite3_exec(db,
                              fmt::format("SELECT group_concat('quote(\"'||name||'\")') FROM "
                                          "pragma_table_info('{}')",
                                          table)
                                  .c_str(),
                              collect, &columns, nullptr) == SQLITE_OK);
    columns.pop_back();
    text += std::string(table) + "\n";
    BERTH_ASSERT(sqlite3_exec(db,
                              fmt::format("SELECT {} FROM {} ORDER BY 1,2", columns, table).c_str(),
                              collect, &text, nullptr) == SQLITE_OK);
  }
  sqlite3_close(db);
  return text;
}

change::JobPut job_put(std::uint64_t id, std::uint64_t batch, std::uint64_t queue) {
  auto spec = std::make_shared<JobSpec>();
  spec->name = fmt::format("job {}", id);
  spec->payload.environment = std::make_shared<const Environment>(Environment{"HOME=/home/user"});
  spec->payload.commands.push_back({false, {"true"}});
  spec->payload.cwd = "/";
  return {{id}, {batch}, {queue}, 1000, Millis(1'000 + static_cast<std::int64_t>(id)), spec, {}};
}

change::JobUpdate job_update(std::uint64_t id, JobState state) {
  change::JobUpdate update;
  update.id = {id};
  update.state = state;
  update.wall = Millis(2'000 + static_cast<std::int64_t>(id));
  return update;
}

}  // namespace berth::test
