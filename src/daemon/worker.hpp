#pragma once
// A thread for calls that block with nothing to poll. Tasks run in order; results go back through
// Loop::post.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace berth {

class Worker {
 public:
  explicit Worker(const char* name);
  /// Finishes what has been posted, then ends.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void post(std::function<void()> task);
  /// How many tasks have not begun yet.
  [[nodiscard]] std::size_t backlog();

  /// For those whose tasks nobody misses: what has not begun is dropped, and what is under way can
  /// see by its token that it is to end.
  void give_up();
  [[nodiscard]] std::stop_token token() const { return giving_up_.get_token(); }

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::stop_source giving_up_;
  std::jthread thread_;
};

}  // namespace berth
