#pragma once
// The daemon's one event loop, without the weight of Asio in every file that uses it.

#include <functional>
#include <memory>

#include "base/time.hpp"

namespace boost::asio {
class io_context;
}

namespace berth {

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

  [[nodiscard]] boost::asio::io_context& io();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth
