#pragma once
// A thread for calls that block with nothing to poll. Tasks run in order; results go back through
// Loop::post.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
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

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::jthread thread_;
};

}  // namespace berth
