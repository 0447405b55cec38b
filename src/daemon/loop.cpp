#include "daemon/loop.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

namespace berth {

namespace asio = boost::asio;

namespace {

std::chrono::nanoseconds read_nanoseconds(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

void run_timed(LoopStats& stats, const Loop::Task& task) {
  using std::chrono::duration_cast;
  using std::chrono::microseconds;
  const auto wall = read_nanoseconds(CLOCK_MONOTONIC);
  const auto own = read_nanoseconds(CLOCK_THREAD_CPUTIME_ID);
  task();
  const auto took = duration_cast<microseconds>(read_nanoseconds(CLOCK_THREAD_CPUTIME_ID) - own);
  ++stats.tasks;
  stats.over_limit += took > LoopStats::kLimit ? 1 : 0;
  stats.longest = std::max(stats.longest, took);
  stats.longest_wall = std::max(
      stats.longest_wall, duration_cast<microseconds>(read_nanoseconds(CLOCK_MONOTONIC) - wall));
}

}  // namespace

struct Loop::Impl {
  LoopStats stats;
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
  Signals(asio::io_context& io, LoopStats& loop_stats) : set(io), stats(loop_stats) {}
  asio::signal_set set;
  LoopStats& stats;
  std::function<void(int)> task;
};

void next_signal(const std::shared_ptr<Signals>& signals) {
  signals->set.async_wait(
      [weak = std::weak_ptr(signals)](const boost::system::error_code& error, int number) {
        if (const auto alive = weak.lock(); alive && !error) {
          run_timed(alive->stats, [&] { alive->task(number); });
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
  asio::post(impl_->io,
             [impl = impl_.get(), task = std::move(task)] { run_timed(impl->stats, task); });
}
void Loop::timed(const Task& task) {
  run_timed(impl_->stats, task);
}
const LoopStats& Loop::stats() const {
  return impl_->stats;
}
asio::io_context& Loop::io() {
  return impl_->io;
}

Loop::Handle Loop::after(Millis delay, Task task) {
  auto timer = std::make_shared<asio::steady_timer>(impl_->io, delay);
  timer->async_wait([impl = impl_.get(), task = std::move(task),
                     weak = std::weak_ptr(timer)](const boost::system::error_code& error) {
    if (!error && !weak.expired()) {
      run_timed(impl->stats, task);
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
      [impl = impl_.get(), task = std::move(task),
       weak = std::weak_ptr(watch)](const boost::system::error_code& error) {
        if (const auto alive = weak.lock(); alive && !error) {
          alive->release();  // so that the task may watch the same descriptor again
          run_timed(impl->stats, task);
        }
      });
  Handle handle;
  handle.cancel_ = std::move(watch);
  return handle;
}

Loop::Handle Loop::on_signals(std::initializer_list<int> signals, std::function<void(int)> task) {
  auto set = std::make_shared<Signals>(impl_->io, impl_->stats);
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
