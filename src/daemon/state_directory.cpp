#include "daemon/state_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/failpoint.hpp"
#include "base/fd.hpp"
#include "base/random.hpp"
#include "base/time.hpp"
#include "base/whole_file.hpp"
#include "base/write_all.hpp"

namespace berth {
namespace {

constexpr std::uint64_t kFileMax = 64UL * 1024 * 1024;
constexpr std::size_t kLinesKept = 2'000;  ///< of a log that cannot be written
/// Whoever writes in place needs a moment; who needs longer has left it broken.
constexpr int kLooks = 6;
constexpr std::chrono::milliseconds kBetweenLooks{50};
constexpr int kTries = 1'000;  ///< to get a word in edgeways

std::unexpected<Error> io_error(std::string_view what, const std::string& path) {
  const int error = errno;
  return fail(
      error == ENOSPC || error == EDQUOT ? ErrorCode::no_space : ErrorCode::io,
      fmt::format("cannot {} '{}': {}", what, path, std::generic_category().message(error)));
}

/// None: there is no such file. An error: it is there, and is no file one could read.
Result<std::optional<std::string>> read_file(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) {
    return errno == ENOENT ? Result<std::optional<std::string>>(std::nullopt)
                           : io_error("read", path);
  }
  struct stat status{};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<std::uint64_t>(status.st_size) > kFileMax) {
    return fail(ErrorCode::io, fmt::format("'{}' is no file of reasonable size", path));
  }
  std::string text;
  char buffer[65536];
  ssize_t got = 0;
  while ((got = ::read(file.get(), buffer, sizeof buffer)) > 0 && text.size() <= kFileMax) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  if (got < 0) {
    return io_error("read", path);
  }
  return std::optional(std::move(text));
}

/// Beside `path`, under a name of its own; returns that.
Result<std::string> write_beside(const std::string& path, std::string_view text) {
  std::string fresh = fmt::format("{}.{:08x}.tmp", path, random_number());
  const Fd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file) {
    return io_error("write", fresh);
  }
  if (!write_all(file.get(), text)) {
    auto error = io_error("write", path);
    ::unlink(fresh.c_str());
    return error;
  }
  return fresh;
}

/// Readers see the old file or the new one.
Status replace_file(const std::string& path, std::string_view text) {
  TRY_ASSIGN(const std::string fresh, write_beside(path, text));
  if (::rename(fresh.c_str(), path.c_str()) != 0) {
    auto error = io_error("write", path);
    ::unlink(fresh.c_str());
    return error;
  }
  return {};
}

/// Which version of a file somebody has seen.
struct Version {
  ino_t inode = 0;  ///< 0: there was none
  off_t size = 0;
  std::int64_t modified_ns = 0;
  friend bool operator==(const Version&, const Version&) = default;
};

Version version_of(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return {};
  }
  return {
      status.st_ino, status.st_size,
      static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec};
}

bool exchange(const std::string& a, const std::string& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

/// Replaces a file that scripts write without asking for the lock, and only if it is still the one
/// that was `seen`: what a script has said meanwhile must not be lost. Whether it was.
Result<bool> replace_seen(const std::string& path, std::string_view text, const Version& seen) {
  TRY_ASSIGN(const std::string fresh, write_beside(path, text));
  bool done = false;
  bool known_how = true;
  if (seen.inode == 0) {
    done = ::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0;
    known_how = done || errno == EEXIST;
  } else if (exchange(fresh, path)) {
    done = version_of(fresh) == seen;
    if (!done) {
      exchange(fresh, path);
    }
  } else {
    known_how = errno == ENOENT;  // it has gone meanwhile
  }
  if (!known_how) {
    // The file system cannot do that: then looking just before has to be enough.
    done = version_of(path) == seen && ::rename(fresh.c_str(), path.c_str()) == 0;
    if (!done && version_of(path) == seen) {
      auto error = io_error("write", path);
      ::unlink(fresh.c_str());
      return error;
    }
  }
  ::unlink(fresh.c_str());
  return done;
}

Status make_directory(const std::string& path) {
  // Not its parents: when somebody has removed the whole project, it stays removed.
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
    return io_error("make the directory", path);
  }
  return {};
}

/// A piece of history that is being appended to a log. Whoever comes after a crash in the middle of
/// it can tell from the size whether it has arrived.
struct Append {
  std::uint64_t seq = 0;   ///< what will have been told
  std::uint64_t file = 0;  ///< its inode
  std::uint64_t size = 0;  ///< before
  std::uint64_t bytes = 0;
};

/// How far history has been told of one batch.
struct Told {
  std::uint64_t seq = 0;
  std::optional<Append> begun;
};

/// "SEQ" or "SEQ SEQ FILE SIZE BYTES".
std::optional<Told> parse_told(std::string_view text) {
  std::vector<std::uint64_t> numbers;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    std::uint64_t number = 0;
    if (std::from_chars(word.data(), word.data() + word.size(), number).ec != std::errc()) {
      return std::nullopt;
    }
    numbers.push_back(number);
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  constexpr std::size_t kWithAppend = 5;
  if (numbers.size() == kWithAppend) {
    return Told{numbers[0], Append{numbers[1], numbers[2], numbers[3], numbers[4]}};
  }
  return numbers.empty() ? std::nullopt : std::optional(Told{numbers[0], std::nullopt});
}

/// Holds the lock of the directory. Its file also remembers up to where history has been told.
class Lock {
 public:
  [[nodiscard]] static Result<Lock> take(const std::string& path) {
    Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!file) {
      return io_error("open", path);
    }
    TRY(lock_file(file, path));
    return Lock(std::move(file), path);
  }

  /// By "batch@instance".
  [[nodiscard]] std::map<std::string, Told> told() const {
    std::map<std::string, Told> found;
    const auto text = read_file(path_);
    std::string_view rest = text && *text ? std::string_view(**text) : std::string_view();
    for (auto end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      const std::string_view one = rest.substr(0, end);
      const auto space = std::min(one.find(' '), one.size() - 1);
      if (const auto told = one.empty() ? std::nullopt : parse_told(one.substr(space + 1))) {
        found[std::string(one.substr(0, space))] = *told;
      }
      rest.remove_prefix(end + 1);
    }
    return found;
  }

  [[nodiscard]] Status tell(const std::map<std::string, Told>& told) {
    std::string text;
    for (const auto& [whose, upto] : told) {
      text += fmt::format("{} {}", whose, upto.seq);
      if (const auto& begun = upto.begun) {
        text += fmt::format(" {} {} {} {}", begun->seq, begun->file, begun->size, begun->bytes);
      }
      text += '\n';
    }
    if (::lseek(file_.get(), 0, SEEK_SET) != 0 || !write_all(file_.get(), text) ||
        ::ftruncate(file_.get(), static_cast<off_t>(text.size())) != 0) {
      return io_error("write", path_);
    }
    return {};
  }

 private:
  Lock(Fd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  Fd file_;
  std::string path_;
};

/// The entries of others, our own put in. What is broken is kept aside: it is somebody's.
Status write_entries(const StateDirectoryOptions& options, const std::vector<UniEntry>& entries) {
  const std::string path = uni_id_file(options.dir);
  int broken = 0;
  for (int tries = 0; tries < kTries && broken < kLooks; ++tries) {
    const Version seen = version_of(path);
    TRY_ASSIGN(const auto text, read_file(path));
    const std::string old = text.value_or(std::string());
    if (const auto merged = merge_entries(old, entries)) {
      if (*merged == old) {
        return {};
      }
      TRY_ASSIGN(const bool done, replace_seen(path, *merged, seen));
      if (done) {
        return {};
      }
      continue;
    }
    ++broken;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  if (broken < kLooks) {
    return fail(ErrorCode::busy, fmt::format("'{}' is written by others all the time", path));
  }
  const std::string aside = fmt::format("{}.broken-{}", path, read_clock().wall.count());
  if (::rename(path.c_str(), aside.c_str()) != 0) {
    return io_error("put aside", path);
  }
  if (options.note) {
    options.note(fmt::format("'{}' was no JSON object; it is kept as '{}', and a new one begins",
                             path, aside));
  }
  return replace_file(path, merge_entries("", entries).value_or("{}\n"));
}

/// Two batches of one process have a file each, while both run.
std::string state_path(const std::string& dir, std::uint64_t pid, BatchId batch) {
  std::string path = fmt::format("{}/state/{}.json", dir, pid);
  const auto text = read_file(path);
  boost::system::error_code wrong;
  const auto value = text && *text ? boost::json::parse(**text, wrong) : boost::json::value();
  if (!wrong && value.is_object()) {
    const auto& object = value.get_object();
    const auto* state = object.if_contains("state");
    const auto* other = object.if_contains("batch");
    const bool runs = state != nullptr && *state == "running";
    if (runs && other != nullptr && *other != batch.value) {
      return fmt::format("{}/state/{}-{}.json", dir, pid, batch.value);
    }
  }
  return path;
}

/// The log itself, then the older ones.
std::string log_path(const std::string& path, unsigned number) {
  return number == 0 ? path : fmt::format("{}.{}", path, number);
}

void rotate(const std::string& path, unsigned keep) {
  for (unsigned number = keep; number > 0; --number) {
    [[maybe_unused]] const int missing =
        ::rename(log_path(path, number - 1).c_str(), log_path(path, number).c_str());
  }
}

/// What became of an append that nobody has seen the end of. One that was cut short is taken away.
Status settle(Told& told, const std::string& path, unsigned keep) {
  const auto begun = std::exchange(told.begun, std::nullopt);
  if (!begun) {
    return {};
  }
  for (unsigned number = 0; number <= keep; ++number) {
    const std::string log = log_path(path, number);
    struct stat status{};
    if (::stat(log.c_str(), &status) != 0 || status.st_ino != begun->file) {
      continue;
    }
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (size >= begun->size + begun->bytes) {
      told.seq = begun->seq;
    } else if (size > begun->size &&
               ::truncate(log.c_str(), static_cast<off_t>(begun->size)) != 0) {
      return io_error("cut", log);
    }
    return {};
  }
  told.seq = begun->seq;  // the log has been rotated away or removed, and with it what there was
  return {};
}

Result<Fd> open_log(const std::string& path, const StateDirectoryOptions& options,
                    std::size_t more) {
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0 && status.st_size > 0 &&
      static_cast<std::uint64_t>(status.st_size) + more > options.log_size) {
    rotate(path, options.log_keep);
  }
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                 0644));
  if (!file) {
    return io_error("write", path);
  }
  return file;
}

/// A line of a batch, in a log that may have lines of others.
struct BatchLine {
  BatchId batch;
  const StateLogLine* line = nullptr;
};

/// `lines` are of one batch.
Status append_lines(const StateDirectoryOptions& options, Lock& lock, const std::string& log,
                    std::span<const BatchLine> lines) {
  const std::string path = fmt::format("{}/{}", options.dir, log);
  auto told = lock.told();
  Told& upto = told[fmt::format("{}@{}", lines.front().batch.value, options.instance)];
  TRY(settle(upto, path, options.log_keep));
  std::string text;
  for (const BatchLine& one : lines) {
    if (one.line->seq > upto.seq) {
      text += one.line->text;
    }
  }
  if (text.empty()) {
    return {};
  }
  TRY_ASSIGN(const Fd file, open_log(path, options, text.size()));
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) {
    return io_error("write", path);
  }
  const std::uint64_t last = lines.back().line->seq;
  upto.begun = Append{last, status.st_ino, static_cast<std::uint64_t>(status.st_size), text.size()};
  TRY(lock.tell(told));
  if (!write_all(file.get(), text)) {
    return io_error("write", path);
  }
  failpoint("state_log_written");
  upto = {last, std::nullopt};
  return lock.tell(told);
}

Status write_logs(const StateDirectoryOptions& options, Lock& lock,
                  const std::map<BatchId, BatchFiles>& batches) {
  std::map<std::string, std::vector<BatchLine>> logs;
  for (const auto& [batch, files] : batches) {
    for (const StateLogLine& line : files.lines) {
      if (!files.log.empty()) {
        logs[files.log].push_back({batch, &line});
      }
    }
  }
  for (auto& [log, lines] : logs) {
    std::ranges::stable_sort(lines, {}, [](const BatchLine& one) { return one.line->seq; });
    for (std::span<const BatchLine> rest = lines; !rest.empty();) {
      const auto other = std::ranges::find_if(
          rest, [&rest](const BatchLine& one) { return one.batch != rest.front().batch; });
      const auto count = static_cast<std::size_t>(other - rest.begin());
      TRY(append_lines(options, lock, log, rest.first(count)));
      rest = rest.subspan(count);
    }
  }
  return {};
}

}  // namespace

void BatchFiles::add(BatchFiles newer) {
  pid = newer.pid;
  log = std::move(newer.log);
  if (!newer.state.empty()) {
    state = std::move(newer.state);
  }
  std::ranges::move(newer.lines, std::back_inserter(lines));
  while (lines.size() > kLinesKept) {
    lines.pop_front();
  }
  for (auto& [id, entry] : newer.entries) {
    const auto old = entries.find(id);
    if (old != entries.end() && !entry.pid) {
      entry.pid = old->second.pid;
    }
    entries.insert_or_assign(id, std::move(entry));
  }
}

std::string uni_id_file(const std::string& state_dir) {
  return state_dir + "/uni_id.json";
}

Status write_state_directory(const StateDirectoryOptions& options,
                             const std::map<BatchId, BatchFiles>& batches) {
  TRY(make_directory(options.dir));
  TRY_ASSIGN(Lock lock,
             Lock::take(options.lock.empty() ? uni_id_file(options.dir) + ".lock" : options.lock));
  std::vector<UniEntry> entries;
  for (const auto& [batch, files] : batches) {
    for (const auto& [id, entry] : files.entries) {
      entries.push_back(entry);
    }
  }
  if (!entries.empty()) {
    TRY(write_entries(options, entries));
  }
  for (const auto& [batch, files] : batches) {
    if (files.pid != 0 && !files.state.empty()) {
      TRY(make_directory(options.dir + "/state"));
      TRY(replace_file(state_path(options.dir, files.pid, batch), files.state));
    }
  }
  return write_logs(options, lock, batches);
}

SelfReport read_entry(const std::string& file, std::string_view uni_id) {
  // Whoever holds the lock may be in the middle of it; who never lets go is passed by.
  const Fd lock(::open((file + ".lock").c_str(), O_RDONLY | O_CLOEXEC));
  for (int look = 0; lock && look < kLooks && ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0; ++look) {
    std::this_thread::sleep_for(kBetweenLooks);
  }
  for (int look = 0; look < kLooks; ++look) {
    const auto text = read_file(file);
    if (!text || !*text) {
      return {};
    }
    if (merge_entries(**text, {})) {
      return entry_of(**text, uni_id);
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return {};
}

}  // namespace berth
