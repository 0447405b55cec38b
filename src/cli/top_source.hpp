#pragma once
// Where `berth top` has its facts from: a thread that asks the daemon and reads logs, so that keys
// are answered at once even if the daemon is not there or a driver hangs.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/paths.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"
#include "cli/top_keys.hpp"
#include "cli/top_model.hpp"

namespace berth::cli {

struct TopMessage {
  std::string text;
  bool bad = false;
};

/// All methods are called by one thread, the one that draws.
class TopSource {
 public:
  static Result<std::unique_ptr<TopSource>> start(InstancePaths paths, Millis every);
  /// Ends at once, also amid a request.
  ~TopSource();
  TopSource(const TopSource&) = delete;
  TopSource& operator=(const TopSource&) = delete;

  /// Readable when there is news.
  [[nodiscard]] int news_fd() const { return news_.get(); }
  struct News {
    std::optional<TopData> data;
    std::optional<TopSubject> subject;
    std::vector<TopMessage> messages;
  };
  [[nodiscard]] News take();

  /// Does it in turn, tells what became of it, and asks for news at once.
  void send(const TopCommand& command);
  /// Which job is looked at closely; 0: none.
  void look_at(std::uint64_t job, bool log);
  /// No requests of its own accord while frozen.
  void freeze(bool frozen);

 private:
  class Worker;
  struct Shared;
  explicit TopSource(Fd news);

  Fd news_;
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace berth::cli
