#pragma once
// Tells of batches in the files of the schedulers they were written for (BatchTraits::state_dir).
//
// It reads from the store what has become durable, on a thread of its own, and hands the texts to
// one writer for each directory. Neither can hold up the loop or do a job any harm; and since
// everything comes from the store, a restarted daemon goes on where the last one ended.

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/time.hpp"
#include "daemon/batch_report.hpp"
#include "daemon/directory_writer.hpp"
#include "store/reader.hpp"

namespace berth {

struct StateFilesConfig {
  std::string cursor;    ///< a file of the instance: up to where history has been told
  std::string instance;  ///< its id
  Millis pause{250};     ///< between two looks at least
  /// Of an attempt that runs or has just ended; none: not known yet, or no longer. Called on its
  /// thread.
  std::function<std::optional<std::uint64_t>(AttemptId)> pid;
  /// What an attempt has said of its end with `berth report`; empty: nothing. Called on its thread.
  std::function<std::string(const AttemptRow&)> reported_error;
};

class StateFiles {
 public:
  StateFiles(StoreReader reader, StateFilesConfig config);
  /// Writes what it can within a second or two.
  ~StateFiles();
  StateFiles(const StateFiles&) = delete;
  StateFiles& operator=(const StateFiles&) = delete;

  /// Something has become durable. Cheap, from any thread.
  void changed();

 private:
  /// What is new, of batches that have such files.
  using News = std::map<BatchId, std::vector<HistoryRow>>;

  void run();
  [[nodiscard]] Status look();
  [[nodiscard]] Result<News> read_news();
  [[nodiscard]] Result<const BatchTraits*> traits_of(BatchId batch);
  /// What there is to write, by directory. Of some batches a log alone, which others share no lock
  /// for.
  struct Place {
    std::string dir;
    bool log_only = false;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  using Texts = std::map<Place, std::map<BatchId, BatchFiles>>;

  [[nodiscard]] Status tell(BatchId batch, const std::vector<HistoryRow>& rows, Texts& texts);
  [[nodiscard]] Status read_attempts(BatchReport& report, const std::vector<HistoryRow>& rows);
  void add_entries(BatchFiles& files, const BatchReport& report);
  DirectoryWriter& writer(const Place& place);
  void remember_cursor();

  StoreReader reader_;
  StateFilesConfig config_;
  std::uint64_t cursor_ = 0;  ///< history up to here has been read
  std::uint64_t before_ = 0;  ///< and up to here it has been handed to the writers
  std::uint64_t remembered_ = 0;
  std::map<BatchId, BatchTraits> traits_;
  std::map<Place, std::unique_ptr<DirectoryWriter>> writers_;
  std::set<BatchId> waiting_;  ///< an attempt of theirs has no pid yet
  std::string last_error_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool dirty_ = true;
  bool stopping_ = false;
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace berth
