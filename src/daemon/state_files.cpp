#include "daemon/state_files.hpp"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "base/crc32.hpp"
#include "daemon/batch_reader.hpp"
#include "daemon/log.hpp"
#include "proc/procfs.hpp"
#include "proc/survivors.hpp"
#include "submit/submission.hpp"

namespace berth {
namespace {

constexpr std::size_t kPage = 1'000;
constexpr std::size_t kTraitsKept = 1'000;
constexpr Millis kNextPid{100};
constexpr Millis kLastWords{1'500};
/// Telling of a large batch takes long; it may not take all the time.
constexpr int kShare = 10;

std::optional<std::uint64_t> read_cursor(const std::string& file) {
  const std::string text = read_small_file(file);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

/// What there was before anybody asked for such files is not told any more.
std::uint64_t end_of_history(StoreReader& reader) {
  HistoryQuery last;
  last.descending = true;
  last.limit = 1;
  const auto rows = reader.history(last);
  return rows && !rows->empty() ? rows->front().seq : 0;
}

std::string error_type(const AttemptRow& attempt) {
  if (attempt.revoked) {
    return "revoked";
  }
  if (attempt.verdict.killed || !attempt.verdict.failure) {
    return "killed";
  }
  return *attempt.verdict.failure == FailureClass::gpu_oom
             ? "oom"
             : std::string(to_string(*attempt.verdict.failure));
}

void tell_trouble(const std::string& dir, const std::string& error) {
  if (error.empty()) {
    spdlog::info("event=state_files_ok dir={}", log_value(dir));
  } else {
    spdlog::warn("event=state_files_failed dir={} why={} detail=\"jobs are not affected\"",
                 log_value(dir), log_value(error));
  }
}

}  // namespace

StateFiles::StateFiles(StoreReader reader, StateFilesConfig config)
    : reader_(std::move(reader)), config_(std::move(config)) {
  const auto known = read_cursor(config_.cursor);
  cursor_ = known ? *known : end_of_history(reader_);
  remembered_ = known.value_or(0);
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "state reader");
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    run();
  });
}

StateFiles::~StateFiles() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
  writers_.clear();  // they call changed() until then
}

void StateFiles::changed() {
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(dirty_, true)) {
      return;
    }
  }
  wake_.notify_one();
}

void StateFiles::run() {
  std::unique_lock lock(mutex_);
  for (bool last = false; !last;) {
    const auto ready = [this] { return dirty_ || stopping_; };
    if (waiting_.empty()) {
      wake_.wait(lock, ready);
    } else {
      wake_.wait_for(lock, kNextPid, ready);
    }
    last = stopping_;
    dirty_ = false;
    lock.unlock();
    const Millis begun = read_clock().mono;
    const Status status = look();
    const std::string error = status ? std::string() : status.error().message;
    if (error != std::exchange(last_error_, error) && !error.empty()) {
      spdlog::warn("event=state_files_unread why={}", log_value(error));
    }
    const Millis took = read_clock().mono - begun;
    lock.lock();
    if (!last) {
      wake_.wait_for(lock, std::max(config_.pause, took * kShare), [this] { return stopping_; });
    }
  }
  lock.unlock();
  for (const auto& [place, writer] : writers_) {
    writer->finish(kLastWords);
  }
  remember_cursor();
}

Status StateFiles::look() {
  before_ = cursor_;
  TRY_ASSIGN(auto news, read_news());
  for (const BatchId batch : std::exchange(waiting_, {})) {
    news.try_emplace(batch);
  }
  Texts texts;
  for (const auto& [batch, rows] : news) {
    if (auto told = tell(batch, rows, texts); !told) {
      cursor_ = before_;  // to be read again
      return told;
    }
  }
  for (auto& [place, batches] : texts) {
    writer(place).post(std::move(batches), cursor_);
  }
  remember_cursor();
  return {};
}

Result<StateFiles::News> StateFiles::read_news() {
  News news;
  HistoryQuery query;
  query.after = cursor_;
  query.limit = kPage;
  for (;;) {
    TRY_ASSIGN(HistoryPage page, reader_.history_page(query));
    for (HistoryRow& row : page.rows) {
      if (!row.batch) {
        continue;
      }
      TRY_ASSIGN(const BatchTraits* traits, traits_of(row.batch));
      if (!traits->state_dir.empty()) {
        news[row.batch].push_back(std::move(row));
      }
    }
    query.after = std::max(query.after, page.last);
    if (!page.more) {
      break;
    }
  }
  cursor_ = query.after;
  return news;
}

Result<const BatchTraits*> StateFiles::traits_of(BatchId batch) {
  auto it = traits_.find(batch);
  if (it == traits_.end()) {
    TRY_ASSIGN(auto traits, reader_.traits(batch));
    if (traits_.size() >= kTraitsKept) {
      traits_.clear();
    }
    it = traits_.emplace(batch, std::move(traits).value_or(BatchTraits{})).first;
  }
  return &it->second;
}

Status StateFiles::tell(BatchId batch, const std::vector<HistoryRow>& rows, Texts& texts) {
  TRY_ASSIGN(const BatchTraits* traits, traits_of(batch));
  TRY_ASSIGN(BatchReport report, read_batch(reader_, batch, *traits));
  TRY(read_attempts(report, rows));
  const Millis wall = read_clock().wall;
  BatchFiles files;
  files.log = traits->log;
  for (const HistoryRow& row : rows) {
    if (auto text = log_line(report, row); !text.empty()) {
      files.lines.push_back({row.seq, std::move(text)});
    }
  }
  if (!files.lines.empty()) {
    // By the time of what it follows: lines of others may come behind it.
    files.lines.push_back({files.lines.back().seq, status_line(report, rows.back().wall)});
  }
  if (has_state_files(*traits)) {
    files.pid = traits->pid;
    files.state = state_json(report, wall);
    add_entries(files, report);
  }
  texts[{traits->state_dir, !has_state_files(*traits)}].emplace(batch, std::move(files));
  return {};
}

Status StateFiles::read_attempts(BatchReport& report, const std::vector<HistoryRow>& rows) {
  std::set<JobId> jobs;
  for (const HistoryRow& row : rows) {
    if (row.attempt) {
      jobs.insert(row.job);
    }
  }
  for (const BatchJob& job : report.jobs) {
    if (job.row.state == JobState::running || job.row.state == JobState::paused) {
      jobs.insert(job.row.id);
    }
  }
  for (const JobId job : jobs) {
    TRY_ASSIGN(auto attempts, reader_.attempts(job));
    for (AttemptRow& attempt : attempts) {
      report.attempts.emplace(attempt.id, std::move(attempt));
    }
  }
  return {};
}

void StateFiles::add_entries(BatchFiles& files, const BatchReport& report) {
  for (const auto& [id, attempt] : report.attempts) {
    UniEntry entry;
    entry.uni_id = attempt_marker(config_.instance, id);
    entry.retry_count = attempt.number - 1;
    entry.pid = config_.pid(id);
    if (!attempt.ended) {
      if (!entry.pid) {
        waiting_.insert(report.id);
      }
    } else if (attempt.verdict.failure || attempt.verdict.killed || attempt.revoked) {
      entry.state = ReportedState::abnormal_exit;
      entry.error_type = error_type(attempt);
      if (attempt.verdict.failure == FailureClass::exit && config_.reported_error) {
        if (std::string said = config_.reported_error(attempt); !said.empty()) {
          entry.error_type = std::move(said);
        }
      }
    } else {
      entry.state = ReportedState::normal_exit;
    }
    std::string key = entry.uni_id;
    files.entries.emplace(std::move(key), std::move(entry));
  }
}

DirectoryWriter& StateFiles::writer(const Place& place) {
  auto& writer = writers_[place];
  if (!writer) {
    StateDirectoryOptions options;
    options.dir = place.dir;
    if (place.log_only) {
      // Nothing but the log is to lie there.
      options.lock = fmt::format("{}.{:08x}.lock", config_.cursor, crc32(place.dir));
    }
    options.instance = config_.instance;
    options.note = [](const std::string& what) {
      spdlog::warn("event=state_files_odd what={}", log_value(what));
    };
    writer = std::make_unique<DirectoryWriter>(
        std::move(options), DirectoryWriter::Hooks{tell_trouble, [this] { changed(); }}, before_);
  }
  return *writer;
}

void StateFiles::remember_cursor() {
  std::uint64_t safe = cursor_;
  for (const auto& [place, writer] : writers_) {
    safe = std::min(safe, writer->behind().value_or(safe));
  }
  if (safe == remembered_) {
    return;
  }
  const std::string fresh = config_.cursor + ".new";
  std::ofstream out(fresh, std::ios::trunc);
  out << safe << '\n';
  out.close();
  if (out && std::rename(fresh.c_str(), config_.cursor.c_str()) == 0) {
    remembered_ = safe;
  }
}

}  // namespace berth
