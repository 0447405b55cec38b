#include "daemon/directory_writer.hpp"

#include <pthread.h>

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>
#include <utility>

namespace berth {

/// What a thread that may outlive us has in common with us.
struct DirectoryWriter::Shared {
  StateDirectoryOptions options;
  Hooks hooks;
  Millis again{0};

  std::mutex mutex;
  std::condition_variable wake;   ///< for the thread
  std::condition_variable quiet;  ///< for who waits for the end
  std::map<BatchId, BatchFiles> pending;
  std::uint64_t posted = 0;
  std::uint64_t written = 0;
  bool running = false;
  bool failing = false;
  bool abandoned = false;  ///< nobody wants to hear of it any more
  std::string last_error;

  static void work(const std::shared_ptr<Shared>& self) {
    std::unique_lock lock(self->mutex);
    while (!self->abandoned && !self->pending.empty()) {
      auto batches = std::exchange(self->pending, {});
      const std::uint64_t upto = self->posted;
      lock.unlock();
      const Status status = write_state_directory(self->options, batches);
      lock.lock();
      if (status) {
        self->written = upto;
      } else {
        self->take_back(std::move(batches));
      }
      self->tell(status);
      if (!status) {
        self->quiet.notify_all();
        self->wake.wait_for(lock, self->again);
      }
    }
    self->running = false;
    self->quiet.notify_all();
  }

  /// What could not be written is older than what has come since.
  void take_back(std::map<BatchId, BatchFiles> batches) {
    for (auto& [batch, files] : pending) {
      batches[batch].add(std::move(files));
    }
    pending = std::move(batches);
  }

  void tell(const Status& status) {
    failing = !status;
    const std::string error = status ? std::string() : status.error().message;
    if (abandoned) {
      return;
    }
    if (error != std::exchange(last_error, error) && hooks.trouble) {
      hooks.trouble(options.dir, error);
    }
    if (status && hooks.done) {
      hooks.done();
    }
  }
};

DirectoryWriter::DirectoryWriter(StateDirectoryOptions options, Hooks hooks, std::uint64_t written,
                                 Millis again)
    : shared_(std::make_shared<Shared>()) {
  shared_->options = std::move(options);
  shared_->hooks = std::move(hooks);
  shared_->again = again;
  shared_->written = shared_->posted = written;
}

DirectoryWriter::~DirectoryWriter() {
  {
    const std::scoped_lock lock(shared_->mutex);
    shared_->abandoned = true;
  }
  shared_->wake.notify_all();
}

void DirectoryWriter::post(std::map<BatchId, BatchFiles> batches, std::uint64_t seq) {
  const std::scoped_lock lock(shared_->mutex);
  for (auto& [batch, files] : batches) {
    shared_->pending[batch].add(std::move(files));
  }
  shared_->posted = seq;
  if (!shared_->running) {
    shared_->running = true;
    std::thread([shared = shared_] {
      ::pthread_setname_np(::pthread_self(), "state files");
      sigset_t all;
      sigfillset(&all);
      ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
      Shared::work(shared);
    }).detach();
  }
}

std::optional<std::uint64_t> DirectoryWriter::behind() const {
  const std::scoped_lock lock(shared_->mutex);
  return shared_->written == shared_->posted ? std::nullopt : std::optional(shared_->written);
}

void DirectoryWriter::finish(Millis patience) {
  std::unique_lock lock(shared_->mutex);
  shared_->quiet.wait_for(lock, patience, [this] { return !shared_->running || shared_->failing; });
}

}  // namespace berth
