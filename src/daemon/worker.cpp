#include "daemon/worker.hpp"

#include <pthread.h>

#include <csignal>
#include <utility>

namespace berth {

Worker::Worker(const char* name)
    : thread_([this, name] {
        ::pthread_setname_np(::pthread_self(), name);
        // Signals are the loop's business.
        sigset_t all;
        sigfillset(&all);
        ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
        run();
      }) {}

Worker::~Worker() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Worker::post(std::function<void()> task) {
  {
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

std::size_t Worker::backlog() {
  const std::scoped_lock lock(mutex_);
  return tasks_.size();
}

void Worker::give_up() {
  giving_up_.request_stop();
  // Ended outside the lock: what they hold may be anything.
  std::deque<std::function<void()>> dropped;
  const std::scoped_lock lock(mutex_);
  dropped.swap(tasks_);
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) {
      return;
    }
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace berth
