#include "cli/top_source.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <exception>

#include "cli/server.hpp"
#include "cli/top_asker.hpp"

namespace berth::cli {
namespace {

constexpr Millis kLogEvery{250};
constexpr Millis kSoon{500};

}  // namespace

struct TopSource::Shared {
  explicit Shared(TopLink::Dial dial) : link(std::move(dial)) {}

  TopLink link;
  std::mutex mutex;
  std::condition_variable wake;
  // Wishes of the one who draws.
  bool stop = false;
  bool frozen = false;
  bool at_once = true;
  std::deque<TopCommand> commands;
  std::uint64_t job = 0;
  bool log = false;
  // What there is to tell.
  News news;
};

/// What the thread does. Holds the lock only to look for wishes and to leave what it has found.
class TopSource::Worker {
 public:
  Worker(Shared& shared, int news, Millis every)
      : shared_(shared), news_(news), every_(every), asker_(shared.link) {}

  void run() {
    while (true) {
      std::optional<TopCommand> command;
      bool round = false;
      {
        std::unique_lock lock(shared_.mutex);
        shared_.wake.wait_until(lock, until(), [&] { return wanted(); });
        if (shared_.stop) {
          return;
        }
        if (!shared_.commands.empty()) {
          command = std::move(shared_.commands.front());
          shared_.commands.pop_front();
        }
        const Millis now = read_clock().mono;
        round = !command && (shared_.at_once || (!shared_.frozen && now >= next_round_));
        shared_.at_once = shared_.at_once && command.has_value();
        if (asker_.subject().job != shared_.job || asker_.subject().log != shared_.log) {
          asker_.look_at(shared_.job, shared_.log);
          next_subject_ = now;
        }
        subject_wanted_ = asker_.subject().job != 0 && (round || now >= next_subject_);
      }
      work(command, round);
    }
  }

 private:
  /// With the lock held.
  [[nodiscard]] bool wanted() const {
    return shared_.stop || shared_.at_once || !shared_.commands.empty() ||
           asker_.subject().job != shared_.job || asker_.subject().log != shared_.log;
  }

  /// With the lock held.
  [[nodiscard]] std::chrono::steady_clock::time_point until() const {
    Millis next = shared_.frozen ? Millis::max() : next_round_;
    if (asker_.subject().job != 0 && !shared_.frozen) {
      next = std::min(next, next_subject_);
    }
    const Millis left = std::clamp(next - read_clock().mono, Millis(0), Millis(60'000));
    return std::chrono::steady_clock::now() + left;
  }

  void work(const std::optional<TopCommand>& command, bool round) {
    if (command) {
      const TopMessage message = asker_.carry_out(*command);
      soon_ = true;
      const std::scoped_lock lock(shared_.mutex);
      shared_.news.messages.push_back(message);
      shared_.at_once = true;
    }
    if (subject_wanted_) {
      asker_.ask_subject(round || !asker_.subject().log);
      next_subject_ = read_clock().mono + (asker_.subject().log ? kLogEvery : every_);
      const std::scoped_lock lock(shared_.mutex);
      shared_.news.subject = asker_.subject();
    }
    if (round) {
      asker_.ask_round();
      next_round_ = read_clock().mono + std::min(every_, soon_ ? kSoon : every_);
      soon_ = false;
      const std::scoped_lock lock(shared_.mutex);
      shared_.news.data = asker_.data();
    }
    if (command || subject_wanted_ || round) {
      ::eventfd_write(news_, 1);
    }
  }

  Shared& shared_;
  int news_;
  Millis every_;
  TopAsker asker_;
  Millis next_round_{0};
  Millis next_subject_{0};
  bool subject_wanted_ = false;
  bool soon_ = false;  ///< something is about to change: look again before long
};

TopSource::TopSource(Fd news) : news_(std::move(news)) {}

Result<std::unique_ptr<TopSource>> TopSource::start(InstancePaths paths, Millis every) {
  Fd news(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!news) {
    return fail_errno("cannot make an eventfd", errno);
  }
  std::unique_ptr<TopSource> source(new TopSource(std::move(news)));
  source->shared_ = std::make_shared<Shared>([socket = std::move(paths.socket)] {
    return chosen_server() ? HttpClient::connect(*chosen_server()) : HttpClient::connect(socket);
  });
  source->thread_ = std::thread([&shared = *source->shared_, fd = source->news_.get(), every] {
    try {
      Worker(shared, fd, every).run();
    } catch (const std::exception& error) {
      const std::scoped_lock lock(shared.mutex);
      shared.news.messages.push_back({fmt::format("no more news: {}", error.what()), true});
      ::eventfd_write(fd, 1);
    }
  });
  return source;
}

TopSource::~TopSource() {
  if (thread_.joinable()) {
    {
      const std::scoped_lock lock(shared_->mutex);
      shared_->stop = true;
    }
    shared_->wake.notify_one();
    shared_->link.close();
    thread_.join();
  }
}

TopSource::News TopSource::take() {
  eventfd_t count = 0;
  ::eventfd_read(news_.get(), &count);
  const std::scoped_lock lock(shared_->mutex);
  return std::exchange(shared_->news, News());
}

void TopSource::send(const TopCommand& command) {
  {
    const std::scoped_lock lock(shared_->mutex);
    if (command.what == TopCommand::What::refresh) {
      shared_->at_once = true;
    } else {
      shared_->commands.push_back(command);
    }
  }
  shared_->wake.notify_one();
}

void TopSource::look_at(std::uint64_t job, bool log) {
  {
    const std::scoped_lock lock(shared_->mutex);
    shared_->job = job;
    shared_->log = log;
  }
  shared_->wake.notify_one();
}

void TopSource::freeze(bool frozen) {
  {
    const std::scoped_lock lock(shared_->mutex);
    shared_->frozen = frozen;
  }
  shared_->wake.notify_one();
}

}  // namespace berth::cli
