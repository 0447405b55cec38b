// berth log: what a job has written. The file is read here, with the user's own rights, not by the
// daemon.

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "base/fd.hpp"
#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/describe.hpp"

namespace berth::cli {
namespace {

constexpr int kPollMs = 200;
constexpr int kPollsPerLook = 3;  ///< the daemon is asked less often than the file

/// Copies what is left of the file to standard output.
Status copy(int fd, const std::string& path) {
  std::array<char, 64 * 1024> buffer{};
  while (true) {
    const ssize_t size = ::read(fd, buffer.data(), buffer.size());
    if (size == 0) {
      std::fflush(stdout);
      return {};
    }
    if (size < 0) {
      if (errno == EINTR) {
        continue;
      }
      return fail_errno(fmt::format("cannot read '{}'", path), errno);
    }
    print({buffer.data(), static_cast<std::size_t>(size)});
  }
}

Result<Fd> open_log(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));  // NOLINT
  if (!fd) {
    return fail_errno(fmt::format("cannot open the log '{}'", printable(path)), errno);
  }
  return fd;
}

/// The attempt with this number, or the last one; null if there is none.
const AttemptView* find(const JobDetail& detail, const std::optional<std::uint32_t>& number) {
  const AttemptView* found = nullptr;
  for (const AttemptView& attempt : detail.attempts) {
    if (!number || attempt.number == *number) {
      found = &attempt;
    }
  }
  return found;
}

Result<std::uint64_t> last_job(Daemon& daemon) {
  JobQuery query;
  query.descending = true;
  TRY_ASSIGN(const auto jobs, daemon.jobs(query, 1));
  if (jobs.empty()) {
    return fail(ErrorCode::not_found, "there are no jobs yet; try: berth add python train.py");
  }
  return jobs.front().id;
}

/// Prints the attempts' logs as they grow, one after the other, until the job has ended.
Outcome follow(Daemon& daemon, const std::string& target, const LogOptions& options) {
  std::uint64_t current = 0;  // attempt being read
  std::string path;
  Fd fd;
  for (unsigned round = 0;; ++round) {
    if (round % kPollsPerLook == 0) {
      TRY_ASSIGN(const JobDetail detail, daemon.get<JobDetail>(target));
      const AttemptView* attempt = find(detail, options.attempt);
      if (attempt != nullptr && attempt->id != current) {
        if (fd) {
          TRY(copy(fd.get(), path));
          warn(fmt::format("attempt {} of job {}", attempt->number, detail.job.id));
        }
        current = attempt->id;
        // A log the user named is one file for all attempts: it goes on where it is.
        if (path != attempt->log) {
          path = attempt->log;
          fd.reset();
        }
      }
      if (!fd && !path.empty()) {
        fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));  // NOLINT: may not be there yet
      }
      const bool over = is_terminal(detail.job.state) ||
                        (options.attempt && attempt != nullptr && attempt->ended_at);
      if (over) {
        if (!fd && !path.empty()) {
          TRY_ASSIGN(fd, open_log(path));
        }
        if (fd) {
          TRY(copy(fd.get(), path));
        } else {
          return fail(ErrorCode::not_found,
                      fmt::format("job {} never started: {}", detail.job.id, remark(detail.job)));
        }
        return 0;
      }
    }
    if (fd) {
      TRY(copy(fd.get(), path));
    }
    ::poll(nullptr, 0, kPollMs);
  }
}

}  // namespace

Outcome run_log(const LogOptions& options) {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  std::uint64_t id = options.id.value_or(0);
  if (!options.id) {
    TRY_ASSIGN(id, last_job(daemon));
  }
  const std::string target = fmt::format("/api/jobs/{}", id);
  if (options.follow) {
    return follow(daemon, target, options);
  }
  TRY_ASSIGN(const JobDetail detail, daemon.get<JobDetail>(target));
  const AttemptView* attempt = find(detail, options.attempt);
  if (attempt == nullptr || attempt->log.empty()) {
    if (options.attempt) {
      return fail(ErrorCode::not_found, fmt::format("job {} has no attempt {}; it has had {}", id,
                                                    *options.attempt, detail.attempts.size()));
    }
    const std::string note = remark(detail.job);
    return fail(ErrorCode::not_found,
                fmt::format("job {} has no log: it is {}{}", id, to_string(detail.job.state),
                            note.empty() ? "" : ": " + note));
  }
  TRY_ASSIGN(const Fd fd, open_log(attempt->log));
  TRY(copy(fd.get(), attempt->log));
  struct stat status{};
  if (!attempt->message.empty() && ::fstat(fd.get(), &status) == 0 && status.st_size == 0) {
    warn(fmt::format("job {} has written nothing: {}", id, printable(attempt->message)));
  }
  return 0;
}

}  // namespace berth::cli
