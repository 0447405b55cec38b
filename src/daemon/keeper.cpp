#include "daemon/keeper.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "api/paths.hpp"
#include "base/log_tail.hpp"
#include "daemon/attempt_env.hpp"
#include "daemon/log.hpp"

namespace berth {
namespace {

constexpr std::size_t kSlice = 200;       ///< jobs in one transaction
constexpr std::size_t kPart = 1'000;      ///< jobs in one request
constexpr std::size_t kLook = 5'000;      ///< rows in one look for what else may go
constexpr Millis kPause{20};              ///< between two slices that nobody waits for
constexpr std::size_t kManyEnds = 1'000;  ///< after so many a round comes early
const std::vector<JobState> kEnded{JobState::succeeded, JobState::failed, JobState::killed,
                                   JobState::cancelled};

std::uint32_t attempts_with_files(const JobRow& row) {
  // One more: an attempt that was revoked may have left some, and is not counted.
  return row.last_attempt ? row.attempts + 1 : 0;
}

}  // namespace

void shorten_retention_for_tests(Rules& rules, KeeperConfig& config) {
  if (const char* text = std::getenv("BERTH_TEST_RETENTION")) {
    char* end = nullptr;
    rules.keep_finished = Millis(std::strtoll(text, &end, 10));
    rules.keep_jobs = *end == ',' ? std::strtoull(end + 1, &end, 10) : 0;
    config.every = Millis(*end == ',' ? std::max(1LL, std::strtoll(end + 1, &end, 10)) : 1'000);
    config.key_age = config.every;
  }
}

Keeper::Keeper(Loop& loop, Engine& engine, SqliteStore& store, Worker& readers, StoreReader reader,
               KeeperConfig config)
    : loop_(loop),
      engine_(engine),
      store_(store),
      readers_(readers),
      reader_(std::move(reader)),
      config_(std::move(config)),
      started_(read_clock()) {}

template <class Query, class Then>
void Keeper::read(Query query, Then then) {
  readers_.post([this, query = std::move(query), then = std::move(then)]() mutable {
    auto result = std::make_shared<decltype(query(reader_))>(query(reader_));
    loop_.post([this, result, then = std::move(then)]() mutable {
      if (!stopping_) {
        then(std::move(*result));
      }
    });
  });
}

// --- on request

Result<Keeper::Part> Keeper::find(StoreReader& reader, const RemoveRequest& request, Millis now) {
  JobFilter filter;
  filter.limit = kPart;
  filter.after = {JobId{request.after}};
  filter.queue = request.queue;
  filter.states = request.states;
  if (request.ids) {
    for (const auto& [first, last] : request.ids->ranges()) {
      filter.ids.emplace_back(JobId{first}, JobId{last});
    }
  } else if (filter.states.empty()) {
    filter.states = kEnded;
  }
  if (request.older > Millis(0)) {
    filter.ended_before = now - request.older;
  }
  Part part;
  if (request.keep > 0) {
    JobFilter newest = filter;
    newest.after = {};
    newest.descending = true;
    newest.limit = request.keep + 1;
    TRY_ASSIGN(const auto ids, reader.job_ids(newest));
    if (ids.size() <= request.keep) {
      return part;
    }
    filter.ids = {{JobId{1}, ids.back()}};
  }
  TRY_ASSIGN(const JobListing found, reader.list(filter));
  part.next = found.next ? std::optional(found.next->id) : std::nullopt;
  for (const JobRow& row : found.rows) {
    part.candidates.push_back({row.id, row.state, attempts_with_files(row), row.log.empty()});
  }
  return part;
}

void Keeper::remove(const RemoveRequest& request, std::function<void(Result<RemoveAnswer>)> done) {
  read([request, now = wall_now()](StoreReader& reader) { return find(reader, request, now); },
       [this, dry = request.dry_run, done = std::move(done)](Result<Part> part) mutable {
         if (!part) {
           done(std::unexpected(part.error()));
           return;
         }
         auto removal = std::make_shared<Removal>();
         removal->done = std::move(done);
         if (part->next) {
           removal->answer.next = part->next->value;
         }
         if (!dry) {
           removal->left = std::move(part->candidates);
           remove_slice(removal);
           return;
         }
         for (const Candidate& job : part->candidates) {
           const bool runs = job.state == JobState::running || job.state == JobState::paused;
           (runs ? removal->answer.running : removal->answer.removed).push_back(job.id.value);
           if (job.state == JobState::queued) {
             removal->answer.cancelled.push_back(job.id.value);
           }
         }
         removal->done(std::move(removal->answer));
       });
}

void Keeper::remove_slice(const std::shared_ptr<Removal>& removal) {
  if (removal->left.empty()) {
    if (!removal->answer.removed.empty()) {
      sweep_snapshots();
    }
    removal->done(std::move(removal->answer));
    return;
  }
  const std::size_t size = std::min(kSlice, removal->left.size());
  auto slice = std::make_shared<std::vector<Candidate>>(
      removal->left.end() - static_cast<std::ptrdiff_t>(size), removal->left.end());
  removal->left.resize(removal->left.size() - size);
  event::Remove event;
  event.ended = removal->ended;
  for (const Candidate& job : *slice) {
    event.jobs.push_back(job.id);
  }
  engine_.handle(std::move(event), [this, removal, slice](Result<Answer> answer) {
    if (!answer) {
      removal->done(std::unexpected(answer.error()));
      return;
    }
    const auto& removed = std::get<Removed>(*answer);
    const auto add = [](std::vector<std::uint64_t>& to, const std::vector<JobId>& ids) {
      for (const JobId id : ids) {
        to.push_back(id.value);
      }
    };
    add(removal->answer.removed, removed.removed);
    add(removal->answer.cancelled, removed.cancelled);
    add(removal->answer.running, removed.running);
    add(removal->answer.needed, removed.needed);
    sweep_wanted_ = sweep_wanted_ || !removed.removed.empty();
    std::vector<Candidate> gone;
    for (const Candidate& job : *slice) {
      if (std::ranges::binary_search(removed.removed, job.id)) {
        gone.push_back(job);
      }
    }
    delete_logs(gone, [this, removal](std::uint64_t logs) {
      removal->answer.logs += logs;
      remove_slice(removal);
    });
  });
}

void Keeper::delete_logs(const std::vector<Candidate>& gone,
                         std::function<void(std::uint64_t)> done) {
  std::vector<std::string> files;
  std::vector<std::string> reports;
  std::set<std::string> directories;
  for (const Candidate& job : gone) {
    for (std::uint32_t number = 1; number <= job.attempts; ++number) {
      reports.push_back(report_path(config_.logs, job.id.value, number));
      if (job.own_logs) {
        files.push_back(own_log_path(config_.logs, job.id, number));
      }
    }
    if (job.attempts == 0) {
      continue;
    }
    // Its directory goes unless somebody may yet write there.
    const std::uint64_t first = job.id.value / 1000 * 1000;
    std::string directory = std::filesystem::path(reports.back()).parent_path();
    if (engine_.state().last_job.value >= first + 1000 && !directories.contains(directory)) {
      bool needed = false;
      for (std::uint64_t id = first; id < first + 1000 && !needed; ++id) {
        needed = engine_.state().jobs.contains(JobId{id});
      }
      if (!needed) {
        directories.insert(std::move(directory));
      }
    }
  }
  if (reports.empty()) {
    done(0);
    return;
  }
  files_.post([this, files = std::move(files), reports = std::move(reports),
               directories = std::move(directories), done = std::move(done)]() mutable {
    std::uint64_t deleted = 0;
    for (const std::string& file : files) {
      deleted += ::unlink(file.c_str()) == 0 ? 1 : 0;
      // There only if its supervisor was killed, or its disk full at the end.
      for (const std::string_view suffix : {kOldTailSuffix, kTailSuffix}) {
        ::unlink((file + std::string(suffix)).c_str());
      }
    }
    for (const std::string& report : reports) {
      ::unlink(report.c_str());
    }
    for (const std::string& directory : directories) {
      ::rmdir(directory.c_str());  // stays unless it is empty
    }
    loop_.post([done = std::move(done), deleted] { done(deleted); });
  });
}

// --- by age and number

void Keeper::start() {
  sweep_snapshots();
  schedule(std::min(config_.every, Millis(30'000)));
}

void Keeper::stop() {
  stopping_ = true;
  timer_.reset();
  pause_.reset();
}

void Keeper::job_ended() {
  if (++ended_ == kManyEnds && !in_round_ && !stopping_) {
    schedule(kPause);
  }
}

void Keeper::schedule(Millis delay) {
  timer_ = loop_.after(delay, [this] { begin_round(); });
}

/// A clock that jumps ahead must not make everything old.
Millis Keeper::wall_now() const {
  const Now now = read_clock();
  return std::min(now.wall, started_.wall + (now.mono - started_.mono));
}

void Keeper::begin_round() {
  if (stopping_ || std::exchange(in_round_, true)) {
    return;
  }
  ended_ = 0;
  const Millis now = read_clock().mono;
  auto round = std::make_shared<Round>();
  while (marks_.size() > 1 && marks_[1].first + config_.key_age <= now) {
    marks_.pop_front();
  }
  if (!marks_.empty() && marks_.front().first + config_.key_age <= now) {
    round->keys_upto = marks_.front().second;
  }
  if (marks_.empty() || marks_.back().first + config_.key_age / 4 <= now) {
    marks_.emplace_back(now, engine_.state().last_job);
  }
  remove_old(round);
}

void Keeper::remove_old(const std::shared_ptr<Round>& round) {
  // Asked for each time: the rules may change meanwhile.
  const Rules& rules = engine_.state().rules;
  round->cutoff = rules.keep_finished > Millis(0) ? wall_now() - rules.keep_finished : Millis(0);
  round->keep_jobs = rules.keep_jobs;
  read(
      [cutoff = round->cutoff,
       keep = round->keep_jobs](StoreReader& reader) -> Result<std::vector<Candidate>> {
        std::vector<Candidate> old;
        const auto take = [&](const std::vector<JobRow>& rows) {
          for (const JobRow& row : rows) {
            old.push_back({row.id, row.state, attempts_with_files(row), row.log.empty()});
          }
        };
        if (cutoff > Millis(0)) {
          TRY_ASSIGN(const auto rows, reader.oldest_finished(cutoff, kSlice));
          take(rows);
        }
        TRY_ASSIGN(const StateCounts counts, reader.counts());
        std::uint64_t ended = 0;
        for (const JobState state : kEnded) {
          ended += counts[static_cast<std::size_t>(state)];
        }
        if (old.empty() && keep > 0 && ended > keep) {
          TRY_ASSIGN(
              const auto rows,
              reader.oldest_finished(std::nullopt, std::min<std::uint64_t>(kSlice, ended - keep)));
          take(rows);
        }
        return old;
      },
      [this, round](Result<std::vector<Candidate>> old) {
        if (!old || old->empty()) {
          trim_history(round);
          return;
        }
        auto removal = std::make_shared<Removal>();
        removal->left = std::move(*old);
        removal->ended = true;  // they may live again by now
        removal->done = [this, round](const Result<RemoveAnswer>& answer) {
          if (stopping_) {
            return;
          }
          if (!answer || answer->removed.empty()) {
            trim_history(round);  // those that are left are needed yet
            return;
          }
          round->removed += answer->removed.size();
          pause_ = loop_.after(kPause, [this, round] { remove_old(round); });
        };
        remove_slice(removal);
      });
}

void Keeper::trim(Trim what, std::function<void()> then) {
  if (stopping_) {
    return;
  }
  const auto next = [this, then = std::move(then)] {
    if (!stopping_) {
      pause_ = loop_.after(kPause, then);
    }
  };
  if (what.empty()) {
    next();
  } else {
    store_.trim(std::move(what), [next](const Status&) { next(); });
  }
}

void Keeper::trim_history(const std::shared_ptr<Round>& round) {
  if (round->cutoff <= Millis(0)) {
    trim_keys(round);
    return;
  }
  read(
      [line = round->line, cutoff = round->cutoff](StoreReader& reader) mutable {
        auto found = reader.loose_history(line, cutoff, kLook);
        return std::pair(std::move(found), line);
      },
      [this, round](auto result) {
        auto& [found, line] = result;
        round->line = line;
        Trim what;
        if (found) {
          what.history = std::move(*found);
        }
        const bool more = found.has_value() && line.has_value();
        trim(std::move(what),
             [this, round, more] { more ? trim_history(round) : trim_keys(round); });
      });
}

void Keeper::trim_keys(const std::shared_ptr<Round>& round) {
  if (!round->keys_upto) {
    sweep_environments(round);
    return;
  }
  read(
      [key = round->key, upto = round->keys_upto](StoreReader& reader) mutable {
        auto found = reader.loose_keys(key, upto, kLook / 5);
        return std::pair(std::move(found), key);
      },
      [this, round](auto result) {
        auto& [found, key] = result;
        round->key = key;
        Trim what;
        if (found) {
          what.keys = std::move(*found);
        }
        const bool more = found.has_value() && key.has_value();
        trim(std::move(what),
             [this, round, more] { more ? trim_keys(round) : sweep_environments(round); });
      });
}

void Keeper::sweep_environments(const std::shared_ptr<Round>& round) {
  if (!std::exchange(sweep_wanted_, false)) {
    end_round(round);
    return;
  }
  Trim begin;
  begin.begin_environments = true;
  trim(std::move(begin), [this, round] { look_for_environments(round); });
}

void Keeper::look_for_environments(const std::shared_ptr<Round>& round) {
  read(
      [round](StoreReader& reader) -> Result<std::vector<std::int64_t>> {
        TRY(reader.environments_used(round->payload, kLook, round->used));
        if (round->payload) {
          return std::vector<std::int64_t>();
        }
        TRY_ASSIGN(auto ids, reader.environment_ids());
        std::erase_if(ids, [&](std::int64_t id) { return round->used.contains(id); });
        return ids;
      },
      [this, round](Result<std::vector<std::int64_t>> unused) {
        if (unused && round->payload) {
          pause_ = loop_.after(kPause, [this, round] { look_for_environments(round); });
          return;
        }
        Trim what;
        if (unused) {
          what.environments = std::move(*unused);
        }
        trim(std::move(what), [this, round] { end_round(round); });
      });
}

void Keeper::end_round(const std::shared_ptr<Round>& round) {
  if (round->removed > 0) {
    spdlog::info("event=retention removed={}", round->removed);
  }
  in_round_ = false;
  sweep_snapshots();
  schedule(config_.every);
}

// --- snapshots

void Keeper::sweep_snapshots() {
  if (stopping_ || config_.snapshots.empty()) {
    return;
  }
  files_.post([this] {
    auto found = stored_snapshots(config_.snapshots);
    if (!found.empty()) {
      loop_.post([this, found = std::move(found)]() mutable {
        if (!stopping_) {
          judge_snapshots(std::move(found));
        }
      });
    }
  });
}

void Keeper::judge_snapshots(std::vector<StoredSnapshot> found) {
  read(
      [found = std::move(found)](StoreReader& reader) -> Result<std::vector<std::string>> {
        std::vector<std::string> gone;
        for (const StoredSnapshot& one : found) {
          TRY_ASSIGN(const auto jobs, reader.has_jobs(one.owner, one.key));
          if (jobs ? !*jobs : one.abandoned) {
            gone.push_back(one.key);
          }
        }
        return gone;
      },
      [this](Result<std::vector<std::string>> gone) {
        if (!gone || gone->empty()) {
          return;
        }
        files_.post([this, keys = std::move(*gone)] {
          for (const std::string& key : keys) {
            remove_snapshot(config_.snapshots, key);
          }
        });
      });
}

// --- backups

Result<BackupView> Keeper::backup(const BackupRequest& request) {
  if (backup_.running) {
    if (backup_.path == request.path) {
      return backup_;
    }
    return fail(ErrorCode::conflict,
                fmt::format("a backup to {} is under way; wait for its end", backup_.path));
  }
  backup_ = {};
  backup_.path = request.path;
  backup_.running = true;
  copier_.post([this, request, file = config_.database] {
    Millis told{0};
    auto size = backup_store(file, request.path, request.replace, [&](const BackupProgress& at) {
      if (const Millis now = read_clock().mono; now - told >= Millis(100)) {
        told = now;
        loop_.post([this, at] {
          backup_.pages = at.pages;
          backup_.total = at.total;
        });
      }
      return !stopping_;
    });
    loop_.post([this, size = std::move(size)] {
      backup_.running = false;
      backup_.pages = backup_.total;
      backup_.size = size.value_or(0);
      backup_.error = size ? std::string() : size.error().message;
      backup_.code = size ? std::string() : std::string(to_string(size.error().code));
      spdlog::info("event=backup path={} bytes={} error={}", log_value(backup_.path), backup_.size,
                   log_value(backup_.error));
    });
  });
  return backup_;
}

void Keeper::inspect(const std::string& backup, std::function<void(Status)> done) {
  copier_.post([this, backup, file = config_.database, done = std::move(done)]() mutable {
    Status fine = inspect_backup(backup, file);
    loop_.post([fine = std::move(fine), done = std::move(done)] { done(fine); });
  });
}

}  // namespace berth
