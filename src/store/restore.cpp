// Starting from a backup.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>

#include <fmt/format.h>

#include "base/failpoint.hpp"
#include "base/fd.hpp"
#include "store/backup.hpp"
#include "store/schema.hpp"
#include "store/sqlite.hpp"

namespace berth {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFirstId = 16;
constexpr std::size_t kIds = 5;  ///< job, attempt, batch, queue, history

/// What a store says of itself.
struct Facts {
  std::string instance;
  std::array<std::uint64_t, kIds> highest{};
};

fs::path with_suffix(fs::path file, const std::string& suffix) {
  return file += suffix;
}

void remove_database(const fs::path& file) {
  std::error_code ignored;
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    fs::remove(with_suffix(file, suffix), ignored);
  }
}

Result<Facts> read_facts(Db& db) {
  Facts facts;
  TRY_ASSIGN(facts.instance, db.text("SELECT value FROM meta WHERE name='instance_id'"));
  TRY_ASSIGN(
      Stmt counters,
      db.prepare("SELECT what-16, n FROM counters WHERE batch=0 AND what BETWEEN 16 AND 20"));
  while (true) {
    TRY_ASSIGN(const bool row, counters.step());
    if (!row) {
      break;
    }
    facts.highest.at(counters.get<std::size_t>(0)) = counters.get<std::uint64_t>(1);
  }
  TRY_ASSIGN(const auto seq, db.integer("SELECT coalesce(max(seq),0) FROM history"));
  facts.highest[kIds - 1] = std::max(facts.highest[kIds - 1], static_cast<std::uint64_t>(seq));
  return facts;
}

/// The store that is to be replaced: asked what it has issued, and closed so that all of it is in
/// one file.
Result<Facts> close_present(const fs::path& file) {
  TRY_ASSIGN(Db db, open_for_writing(file, {}));
  return read_facts(db);
}

Status duplicate(const fs::path& from, const fs::path& to) {
  const Fd in(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in) {
    return fail_errno(fmt::format("cannot open {}", from.native()), errno);
  }
  const Fd out(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!out) {
    return fail_errno(fmt::format("cannot create {}", to.native()), errno);
  }
  std::array<char, 1 << 16> buffer{};
  while (true) {
    const ssize_t got = ::read(in.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return fail_errno(fmt::format("cannot read {}", from.native()), errno);
    }
    if (got == 0) {
      break;
    }
    for (ssize_t done = 0; done < got;) {
      const ssize_t put =
          ::write(out.get(), buffer.data() + done, static_cast<std::size_t>(got - done));
      if (put < 0 && errno != EINTR) {
        return fail_errno(fmt::format("cannot write {}", to.native()), errno);
      }
      done += std::max<ssize_t>(put, 0);
    }
  }
  if (::fsync(out.get()) != 0) {
    return fail_errno(fmt::format("cannot sync {}", to.native()), errno);
  }
  return {};
}

/// The checked copy, of the present version, all of it in one file.
Status prepare_draft(const fs::path& draft, const fs::path& backup, Restored& report,
                     const IssuedIds& issued, const std::optional<Facts>& present) {
  TRY_ASSIGN(report.version, version_of(draft, backup));
  TRY_ASSIGN(Db db, open_for_writing(draft, {}));
  TRY(check_integrity(db));
  TRY_ASSIGN(Facts facts, read_facts(db));
  report.same_instance = present && present->instance == facts.instance;
  TRY(db.exec("BEGIN IMMEDIATE"));
  if (present) {
    for (std::size_t i = 0; i < kIds; ++i) {
      facts.highest.at(i) = std::max(facts.highest.at(i), present->highest.at(i));
    }
  }
  facts.highest[0] = std::max(facts.highest[0], issued.job.value);
  facts.highest[1] = std::max(facts.highest[1], issued.attempt.value);
  TRY_ASSIGN(Stmt raise, db.prepare("INSERT INTO counters VALUES(0,?1,?2) ON CONFLICT DO UPDATE SET"
                                    " n=max(n,excluded.n)"));
  for (std::size_t i = 0; i < kIds; ++i) {
    if (facts.highest.at(i) != 0) {
      TRY(raise.run(kFirstId + static_cast<std::int64_t>(i), facts.highest.at(i)));
    }
  }
  if (!report.same_instance) {
    TRY_ASSIGN(const std::string instance, random_instance_id());
    TRY_ASSIGN(Stmt rename, db.prepare("UPDATE meta SET value=?1 WHERE name='instance_id'"));
    TRY(rename.run(instance));
  }
  TRY(db.exec("COMMIT"));
  const auto count = [&](const char* states) -> Result<std::uint64_t> {
    TRY_ASSIGN(const auto n, db.integer(fmt::format("SELECT coalesce(sum(n),0) FROM counters WHERE"
                                                    " batch=0 AND what IN ({})",
                                                    states)));
    return static_cast<std::uint64_t>(n);
  };
  TRY_ASSIGN(report.jobs, count("0,1,2,3,4,5,6"));
  TRY_ASSIGN(report.waiting, count("0"));
  TRY_ASSIGN(report.running, count("1,2"));
  return {};
}

std::string time_stamp(Millis wall) {
  const std::time_t seconds = wall.count() / 1000;
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%S", &parts);
  return {text.data(), size};
}

/// A name that nothing has yet.
fs::path free_name(const fs::path& file, Millis wall) {
  const fs::path wanted = with_suffix(file, ".before-restore-" + time_stamp(wall));
  std::error_code ec;
  fs::path name = wanted;
  for (int n = 2; fs::exists(fs::symlink_status(name, ec)); ++n) {
    name = with_suffix(wanted, fmt::format("-{}", n));
  }
  return name;
}

/// A second name for the present file, so that it is there under one of the two at every instant.
Status keep_present(const fs::path& file, const fs::path& kept) {
  if (::link(file.c_str(), kept.c_str()) == 0) {
    return {};
  }
  return duplicate(file, kept);  // not every file system has second names
}

Status refuse_store_in_use(const fs::path& backup) {
  std::error_code ec;
  if (fs::file_size(with_suffix(backup, "-wal"), ec) > 0 && !ec) {
    return fail(
        ErrorCode::refused,
        fmt::format("{0}: {0}-wal lies beside it, so it is a store in use or a part of one, "
                    "not a backup; make one with berth backup",
                    backup.native()));
  }
  return {};
}

}  // namespace

Status inspect_backup(const fs::path& backup, const fs::path& file) {
  std::error_code ec;
  if (fs::equivalent(backup, file, ec)) {  // opening and closing it would drop its locks
    return fail(ErrorCode::refused,
                fmt::format("{} is what is there now, not a backup", backup.native()));
  }
  TRY(refuse_store_in_use(backup));
  TRY_ASSIGN([[maybe_unused]] const auto version, version_of(backup, backup));
  return {};
}

Result<Restored> restore_store(const fs::path& backup, const fs::path& file,
                               const IssuedIds& issued, Millis wall) {
  std::error_code ec;
  Restored report;
  TRY(refuse_store_in_use(backup));
  TRY_ASSIGN(const Fd lock, lock_store(file));
  const fs::path draft = with_suffix(file, ".restore");
  remove_database(draft);
  const auto discard = [&](Error error) {
    remove_database(draft);
    return std::unexpected(std::move(error));
  };
  if (Status copied = duplicate(backup, draft); !copied) {
    return discard(std::move(copied.error()));
  }
  failpoint("restore_copied");

  std::optional<Facts> present;
  const bool there = fs::exists(file, ec);
  if (there) {
    if (auto facts = close_present(file)) {
      present = std::move(*facts);
    } else {
      report.unreadable = facts.error().message;
    }
  }
  if (Status prepared = prepare_draft(draft, backup, report, issued, present); !prepared) {
    return discard(std::move(prepared.error()));
  }
  failpoint("restore_prepared");

  // Closing it has put all of it into one file. If a log is left all the same, its store cannot be
  // read; it goes before its store does, or it would be taken for that of the new one.
  const fs::path kept = free_name(file, wall);
  const fs::path log = with_suffix(file, "-wal");
  if (there) {
    if (Status linked = keep_present(file, kept); !linked) {
      return discard(std::move(linked.error()));
    }
    report.kept = kept.native();
  }
  if (fs::exists(log, ec) && std::rename(log.c_str(), with_suffix(kept, "-wal").c_str()) != 0) {
    return discard(
        {ErrorCode::io, fmt::format("cannot rename {}: {}", log.native(), std::strerror(errno))});
  }
  fs::remove(with_suffix(file, "-shm"), ec);
  failpoint("restore_kept");
  if (std::rename(draft.c_str(), file.c_str()) != 0) {
    return discard(
        {ErrorCode::io, fmt::format("cannot rename {}: {}", draft.native(), std::strerror(errno))});
  }
  TRY(sync_directory_of(file));
  failpoint("restore_swapped");
  return report;
}

}  // namespace berth
