#pragma once
// One consistent view of the store for as long as it lives. For the reader's files.

#include <cstdint>
#include <limits>

#include "store/sqlite.hpp"

namespace berth {

inline constexpr std::uint64_t kMaxRowId = std::numeric_limits<std::int64_t>::max();

class ReadTransaction {
 public:
  explicit ReadTransaction(Db& db) : db_(db), status_(db.exec("BEGIN")) {}
  ReadTransaction(const ReadTransaction&) = delete;
  ReadTransaction& operator=(const ReadTransaction&) = delete;
  ~ReadTransaction() { db_.rollback(); }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  Db& db_;
  Status status_;
};

}  // namespace berth
