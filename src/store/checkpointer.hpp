#pragma once
// Copies the write-ahead log back into the database, on a thread and a connection of its own, so
// that no commit waits for it.
//
// A pass copies what was in the log when it began; commits go on meanwhile and append. The log can
// start over only when a commit finds all of it copied, which under steady load never happens by
// itself. So when a pass has left little, the writer copies that little itself, between two
// commits. Should the log outgrow a hard limit all the same, the writer copies all of it and
// commits wait: slow is better than a full disk.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/result.hpp"
#include "store/sqlite.hpp"

namespace berth {

class Checkpointer {
 public:
  struct Options {
    int pages = 2000;            ///< in the log from which on it is copied
    int nearly = 250;            ///< so few left over are copied by the writer
    int hard = 2000 + 64 * 256;  ///< pages in the log from which on commits wait
    std::function<void()> done;  ///< after each pass of either thread; for tests
  };

  /// `writer` is the writer's connection, `own` one to the same file. `failed` is called on either
  /// thread with an error after which nothing may be written any more.
  Checkpointer(Options options, Db& writer, Db own, std::function<void(Error)> failed);
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;
  /// Waits for the pass under way.
  ~Checkpointer();

  /// On the writer's thread, after each commit is answered: the log now has this many pages.
  void after_commit(int pages);

 private:
  struct Pass {
    int code = 0;
    int log = 0;     ///< pages in the log
    int copied = 0;  ///< of those
  };
  [[nodiscard]] Pass pass(Db& db);
  void run();

  Options options_;
  Db& writer_;
  std::function<void(Error)> failed_;

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  bool wanted_ = false;
  bool busy_ = false;
  bool stop_ = false;
  bool dead_ = false;         ///< after an error nothing is copied any more
  std::optional<Pass> last_;  ///< of the thread, until the writer has looked at it
  int forced_at_ = 0;  ///< size of the log at the last forced pass: a reader may be in its way

  Db own_;  ///< the thread's alone
  std::thread thread_;
};

}  // namespace berth
