#include "cli/last_job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <vector>

#include "cli/describe.hpp"
#include "cli/terminal.hpp"

namespace berth::cli {

Result<JobView> last_job(Daemon& daemon) {
  JobQuery query;
  query.descending = true;
  TRY_ASSIGN(auto jobs, daemon.jobs(query, 1));
  if (jobs.empty()) {
    return fail(ErrorCode::not_found, "there are no jobs yet; try: berth add python train.py");
  }
  note(fmt::format("job {} {}, the last one", jobs.front().id, shorten(label(jobs.front()), 50)));
  return std::move(jobs.front());
}

namespace {

constexpr std::uint64_t kFarthest = 1'000'000;

/// The ids of this user's jobs, the newest first, so many that `back` is among them if it exists.
Result<std::vector<std::uint64_t>> own_jobs(std::uint64_t back) {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  JobQuery query;
  query.descending = true;
  for (std::size_t most = back + 100;; most = SIZE_MAX) {
    TRY_ASSIGN(const auto jobs, daemon.jobs(query, most));
    std::vector<std::uint64_t> ids;
    for (const JobView& job : jobs) {
      if (job.owner == ::getuid()) {
        ids.push_back(job.id);
      }
    }
    if (ids.size() > back || jobs.size() < most) {
      return ids;
    }
  }
}

/// How far back "@~3" at this place is; moves behind it.
Result<std::uint64_t> read_back(std::string_view text, std::size_t& at) {
  ++at;
  if (at == text.size() || text[at] != '~') {
    return 0;
  }
  std::uint64_t back = 0;
  const char* begin = text.data() + at + 1;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), back);
  if (error != std::errc() || end == begin || back > kFarthest) {
    return fail(ErrorCode::invalid,
                fmt::format("'{}': write @ for the last job and @~1 for the one before it",
                            printable(text)));
  }
  at = static_cast<std::size_t>(end - text.data());
  return back;
}

}  // namespace

Result<IdSet> parse_ids(const std::string& text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '@') {
      plain += text[at++];
      continue;
    }
    TRY_ASSIGN(const std::uint64_t back, read_back(text, at));
    TRY_ASSIGN(const auto own, own_jobs(back));
    if (own.empty()) {
      return fail(ErrorCode::not_found, "there are no jobs yet; try: berth add python train.py");
    }
    if (back >= own.size()) {
      return fail(ErrorCode::not_found,
                  fmt::format("there is no job @~{}; you have submitted {}", back, own.size()));
    }
    plain += fmt::format("{}", own[back]);
  }
  return IdSet::parse(plain);
}

}  // namespace berth::cli
