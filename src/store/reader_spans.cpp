// Which attempts ran when.

#include "store/encode.hpp"
#include "store/load.hpp"
#include "store/read_transaction.hpp"
#include "store/reader.hpp"

namespace berth {

Result<std::uint64_t> StoreReader::last_begun(Millis wall) {
  // Attempts are numbered in the order of the clock, so a handful of looks finds the last.
  TRY_ASSIGN(const auto last, db_.integer("SELECT coalesce(max(id),0) FROM attempts"));
  std::uint64_t low = 0;  // had begun
  std::uint64_t high = static_cast<std::uint64_t>(last) + 1;
  TRY_ASSIGN(Stmt row, db_.prepare("SELECT id, started FROM attempts WHERE id<=?1"
                                   " ORDER BY id DESC LIMIT 1"));
  while (low + 1 < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    row.bind(middle);
    TRY_ASSIGN(const bool there, row.step());
    if (!there || row.get<std::uint64_t>(0) <= low || row.get<Millis>(1) <= wall) {
      low = middle;
    } else {
      high = row.get<std::uint64_t>(0);
    }
  }
  return low;
}

Result<AttemptSpans> StoreReader::spans(Millis from, Millis to, std::size_t limit) {
  const ReadTransaction transaction(db_);
  TRY(transaction.status());
  TRY_ASSIGN(const std::uint64_t last, last_begun(to));
  TRY_ASSIGN(Stmt stmt,
             db_.prepare("SELECT a.id, a.job, a.number, a.gpus, a.gpu_memory, a.started, a.ended,"
                         " a.revoked, a.killed, a.failure, coalesce(j.name,'') FROM attempts a"
                         " LEFT JOIN jobs j ON j.id=a.job WHERE a.id<=?1 ORDER BY a.id DESC"
                         " LIMIT ?2"));
  stmt.bind(last, scan_budget);
  AttemptSpans found;
  std::size_t seen = 0;
  while (true) {
    TRY_ASSIGN(const bool more, stmt.step());
    if (!more) {
      found.more = seen >= scan_budget;
      return found;
    }
    ++seen;
    const auto ended = stmt.maybe<Millis>(6);
    if (ended && *ended < from) {
      continue;
    }
    if (found.spans.size() == limit) {
      found.more = true;
      return found;
    }
    AttemptSpan& span = found.spans.emplace_back();
    span.attempt.id = stmt.get<AttemptId>(0);
    span.attempt.job = stmt.get<JobId>(1);
    span.attempt.number = stmt.get<std::uint32_t>(2);
    TRY_ASSIGN(GpuSet gpus, decode_gpus(stmt.bytes(3)));
    span.attempt.gpus = std::move(gpus.uuids);
    span.attempt.gpu_indices = std::move(gpus.indices);
    span.attempt.gpu_memory = stmt.get<Bytes>(4);
    span.attempt.started = stmt.get<Millis>(5);
    span.attempt.ended = ended;
    span.attempt.revoked = stmt.get<bool>(7);
    span.attempt.verdict.killed = stmt.get<bool>(8);
    TRY_ASSIGN(span.attempt.verdict.failure, checked_failure(stmt.maybe<std::int64_t>(9)));
    span.name = stmt.text(10);
  }
}

}  // namespace berth
