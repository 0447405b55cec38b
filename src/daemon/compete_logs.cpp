// Logs that belong to processes of command files. Of the user's files only those are shown that a
// job or a binding says are logs; they are opened anew for each piece, as the user's own.

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "api/wire.hpp"
#include "base/utf8.hpp"
#include "compete/log_bindings.hpp"
#include "daemon/answers.hpp"
#include "daemon/attempt_env.hpp"
#include "daemon/compete_api.hpp"
#include "daemon/compete_json.hpp"

namespace berth {
namespace {

namespace fs = std::filesystem;

/// Of logs that users have named, the newest jobs are asked; `job` asks a certain one.
constexpr std::size_t kJobsAsked = 2'000;

/// "/a//b/./c" as "/a/b/c". What goes up again is refused: it has no business in a path to a log.
Result<std::string> clean_path(const std::string& text) {
  if (text.empty()) {
    return fail(ErrorCode::invalid, "log_path is missing");
  }
  const fs::path path(text);
  const bool up = std::ranges::any_of(path, [](const fs::path& part) { return part == ".."; });
  if (!path.is_absolute() || up || text.find('\0') != std::string::npos) {
    return fail(
        ErrorCode::invalid,
        fmt::format("log_path: expected an absolute path without '..', got '{}'", printable(text)));
  }
  return path.lexically_normal().native();
}

/// Whether the path is that of a log which berth has named, of a job there is.
Result<bool> is_own_log(StoreReader& reader, const std::string& logs, const std::string& path) {
  const std::string name = fs::path(path).filename().native();
  std::uint64_t job = 0;
  std::uint32_t attempt = 0;
  const char* end = name.data() + name.size();
  const auto [dot, bad_job] = std::from_chars(name.data(), end, job);
  if (bad_job != std::errc() || dot == end ||
      std::from_chars(dot + 1, end, attempt).ec != std::errc() ||
      own_log_path(logs, JobId{job}, attempt) != path) {
    return false;
  }
  TRY_ASSIGN(const auto row, reader.job(JobId{job}));
  return row.has_value();
}

}  // namespace

CompeteApi::Answer CompeteApi::log_answer(const std::string& path, EndLink end,
                                          const compete::LogPiece& piece) const {
  TRY_ASSIGN(const Fd file, shown_files().open(path, end));
  TRY_ASSIGN(const compete::LogText log, compete::read_log(file, path, piece));
  return ok(encode_log(path, log));
}

void CompeteApi::bind_log(const HttpRequest& request, Respond respond) {
  const auto query = CompeteQuery::read(
      request, {"mode", "config_index", "queue_id", "process_index", "log_path"}, true);
  answer(
      [this, query, places = places()]() -> Answer {
        TRY_ASSIGN(const CompeteQuery asked, query);
        compete::LogBinding binding;
        TRY_ASSIGN(binding.place, asked.place());
        TRY_ASSIGN(binding.log_path, clean_path(asked.text("log_path")));
        if (!is_utf8(binding.log_path)) {
          return fail(ErrorCode::invalid, "log_path: a JSON file can hold UTF-8 only");
        }
        TRY_ASSIGN([[maybe_unused]] const Fd there,
                   shown_files().open(binding.log_path, EndLink::follow));
        binding.bound_at = compete::iso_time(read_clock().wall);
        TRY(compete::LogBindings(places.log_bindings()).bind(binding));
        return ok(encode_bound(binding));
      },
      std::move(respond));
}

void CompeteApi::unbind_log(const HttpRequest& request, Respond respond) {
  const auto query =
      CompeteQuery::read(request, {"mode", "config_index", "queue_id", "process_index"}, true);
  answer(
      [query, places = places()]() -> Answer {
        TRY_ASSIGN(const CompeteQuery asked, query);
        TRY_ASSIGN(const compete::ProcessPlace place, asked.place());
        TRY_ASSIGN(const bool was, compete::LogBindings(places.log_bindings()).unbind(place));
        if (!was) {
          return fail(ErrorCode::not_found, fmt::format("no log is bound to process {} of queue {}",
                                                        place.process_index, place.queue_id));
        }
        return ok(R"({"success":true,"message":"no log belongs to it any more"})");
      },
      std::move(respond));
}

void CompeteApi::bound_log(const HttpRequest& request, Respond respond) {
  const auto query =
      CompeteQuery::read(request, {"mode", "config_index", "queue_id", "process_index", "tail",
                                   "tail_lines", "offset", "limit"});
  answer(
      [this, query, places = places()]() -> Answer {
        TRY_ASSIGN(const CompeteQuery asked, query);
        TRY_ASSIGN(const compete::ProcessPlace place, asked.place());
        TRY_ASSIGN(const compete::LogPiece piece, asked.piece());
        TRY_ASSIGN(const auto bindings, compete::LogBindings(places.log_bindings()).read());
        const auto bound = bindings.find(place.key());
        if (bound == bindings.end()) {
          return fail(ErrorCode::not_found,
                      fmt::format("no log is bound to process {} of queue {}; POST /api/log/bind "
                                  "does it",
                                  place.process_index, place.queue_id));
        }
        TRY_ASSIGN(const std::string path, clean_path(bound->second.log_path));
        return log_answer(path, EndLink::follow, piece);
      },
      std::move(respond));
}

void CompeteApi::read_log(const HttpRequest& request, Respond respond) {
  const auto query =
      CompeteQuery::read(request, {"log_path", "job", "tail", "tail_lines", "offset", "limit"});
  answer(
      [this, query, places = places()]() -> Answer {
        TRY_ASSIGN(const CompeteQuery asked, query);
        TRY_ASSIGN(const std::string path, clean_path(asked.text("log_path")));
        TRY_ASSIGN(const compete::LogPiece piece, asked.piece());
        TRY_ASSIGN(const auto job, asked.number("job", INT64_MAX));
        TRY_ASSIGN(const EndLink end, find_owner(places, path, job.value_or(0)));
        return log_answer(path, end, piece);
      },
      std::move(respond));
}

ShownFiles CompeteApi::shown_files() const {
  return {config_.owner, config_.dir, config_.logs.dir};
}

Result<EndLink> CompeteApi::find_owner(const compete::Places& places, const std::string& path,
                                       std::uint64_t job) {
  TRY_ASSIGN(const bool own, is_own_log(reader_, config_.logs.dir, path));
  if (own) {
    return EndLink::refuse;
  }
  // A file of bindings that cannot be read says nothing of the logs of jobs.
  const auto bindings = compete::LogBindings(places.log_bindings()).read();
  for (const auto& [key, binding] :
       bindings.value_or(std::map<std::string, compete::LogBinding>())) {
    if (const auto bound = clean_path(binding.log_path); bound && *bound == path) {
      return EndLink::follow;  // somebody has named just this path
    }
  }
  TRY_ASSIGN(const bool of_batch, is_batch_log(reader_, path));
  if (of_batch) {
    return EndLink::refuse;
  }
  const auto is_it = [&path](const std::string& log) {
    const auto clean = log.empty() ? Result<std::string>(log) : clean_path(log);
    return clean && *clean == path;
  };
  if (job != 0) {
    TRY_ASSIGN(const auto detail,
               read_detail(reader_, JobId{job}, config_.node, config_.logs, config_.dir));
    if (detail && std::ranges::any_of(detail->attempts, is_it, &AttemptView::log)) {
      return EndLink::refuse;
    }
  }
  JobFilter newest;
  newest.descending = true;
  newest.limit = kJobsAsked;
  TRY_ASSIGN(const auto rows, reader_.jobs(newest));
  for (const JobRow& row : rows) {
    if (!row.log.empty() && is_it(job_view(row, config_.node, config_.logs).log)) {
      return EndLink::refuse;
    }
  }
  TRY(bindings);
  // Whether there is such a file is nobody's business either.
  return fail(ErrorCode::refused,
              fmt::format("'{}' is the log of no job here, and bound to no process; POST "
                          "/api/log/bind binds it",
                          printable(path)));
}

}  // namespace berth
