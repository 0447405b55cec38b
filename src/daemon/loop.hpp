#pragma once
// The daemon's one event loop, without the weight of Asio in every file that uses it.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/time.hpp"

namespace boost::asio {
class io_context;
}

namespace berth {

/// How long tasks have held the loop. Processor time is what a task itself took; on a busy machine
/// the clock on the wall shows others' work too.
struct LoopStats {
  static constexpr std::chrono::microseconds kLimit{5'000};

  std::uint64_t tasks = 0;
  std::uint64_t over_limit = 0;  ///< took more processor time than kLimit
  std::chrono::microseconds longest{0};
  std::chrono::microseconds longest_wall{0};
};

class Loop {
 public:
  using Task = std::function<void()>;

  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Runs until stop(). Everything but post() belongs to the thread that is in here.
  void run();
  void stop();
  /// From any thread: runs the task on the loop's thread, later, in order.
  void post(Task task);

  /// Ends a watch or a timer when it goes; the task is then not called any more.
  class Handle {
   public:
    Handle() = default;
    explicit operator bool() const { return static_cast<bool>(cancel_); }
    void reset() { cancel_.reset(); }

   private:
    friend class Loop;
    std::shared_ptr<void> cancel_;
  };

  /// Calls the task once, after the delay.
  [[nodiscard]] Handle after(Millis delay, Task task);
  /// Calls the task once when the descriptor, which stays the caller's, becomes readable or hangs
  /// up.
  [[nodiscard]] Handle when_readable(int fd, Task task);
  /// Calls the task on every one of these signals.
  [[nodiscard]] Handle on_signals(std::initializer_list<int> signals,
                                  std::function<void(int)> task);

  /// Runs a task here and now, and counts it. For what reaches the loop's thread otherwise than
  /// through this class.
  void timed(const Task& task);
  [[nodiscard]] const LoopStats& stats() const;

  [[nodiscard]] boost::asio::io_context& io();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth
