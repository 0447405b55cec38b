#include "daemon/loop.hpp"

#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

namespace berth {

namespace asio = boost::asio;

struct Loop::Impl {
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(io);
};

namespace {

/// A descriptor that is only waited on: giving it up must not close what belongs to the caller.
struct Watch {
  explicit Watch(asio::io_context& io, int fd) : descriptor(io, fd) {}
  ~Watch() { release(); }
  void release() {
    if (descriptor.is_open()) {
      descriptor.release();
    }
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  asio::posix::stream_descriptor descriptor;
};

struct Signals {
  explicit Signals(asio::io_context& io) : set(io) {}
  asio::signal_set set;
  std::function<void(int)> task;
};

void next_signal(const std::shared_ptr<Signals>& signals) {
  signals->set.async_wait(
      [weak = std::weak_ptr(signals)](const boost::system::error_code& error, int number) {
        if (const auto alive = weak.lock(); alive && !error) {
          alive->task(number);
          next_signal(alive);
        }
      });
}

}  // namespace

Loop::Loop() : impl_(std::make_unique<Impl>()) {}
Loop::~Loop() = default;

void Loop::run() {
  impl_->io.run();
}
void Loop::stop() {
  impl_->io.stop();
}
void Loop::post(Task task) {
  asio::post(impl_->io, std::move(task));
}
asio::io_context& Loop::io() {
  return impl_->io;
}

Loop::Handle Loop::after(Millis delay, Task task) {
  auto timer = std::make_shared<asio::steady_timer>(impl_->io, delay);
  timer->async_wait([task = std::move(task),
                     weak = std::weak_ptr(timer)](const boost::system::error_code& error) {
    if (!error && !weak.expired()) {
      task();
    }
  });
  Handle handle;
  handle.cancel_ = std::move(timer);
  return handle;
}

Loop::Handle Loop::when_readable(int fd, Task task) {
  auto watch = std::make_shared<Watch>(impl_->io, fd);
  watch->descriptor.async_wait(
      asio::posix::stream_descriptor::wait_read,
      [task = std::move(task),
       weak = std::weak_ptr(watch)](const boost::system::error_code& error) {
        if (const auto alive = weak.lock(); alive && !error) {
          alive->release();  // so that the task may watch the same descriptor again
          task();
        }
      });
  Handle handle;
  handle.cancel_ = std::move(watch);
  return handle;
}

Loop::Handle Loop::on_signals(std::initializer_list<int> signals, std::function<void(int)> task) {
  auto set = std::make_shared<Signals>(impl_->io);
  for (const int signal : signals) {
    set->set.add(signal);
  }
  set->task = std::move(task);
  next_signal(set);
  Handle handle;
  handle.cancel_ = std::move(set);
  return handle;
}

}  // namespace berth
