#include "daemon/log_evidence.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "api/report.hpp"
#include "base/fd.hpp"
#include "base/log_tail.hpp"
#include "daemon/state_directory.hpp"

namespace berth {
namespace {

/// More than this many reads that hang at once are not worth a thread.
constexpr std::size_t kThreadsMax = 8;

/// The last bytes of a file, none of them before `from`. None: there is no such regular file.
std::optional<std::string> end_of_file(const std::string& path, std::uint64_t from) {
  // Nobody may make us wait at the other end of a pipe.
  const Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  // A file that has become shorter was written anew.
  std::uint64_t at = from <= size ? from : 0;
  at = std::max(at, size - std::min(size, kLogEvidenceSize));
  std::string text(size - at, '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t more =
        ::pread(file.get(), text.data() + got, text.size() - got, static_cast<off_t>(at + got));
    if (more <= 0) {
      break;
    }
    got += static_cast<std::size_t>(more);
  }
  text.resize(got);
  return text;
}

}  // namespace

std::string read_log_end(const LogPlace& place) {
  // What came last first. Tails are there only if the supervisor could not join them to the log.
  std::string text;
  for (const std::string_view suffix : {kTailSuffix, kOldTailSuffix}) {
    const auto tail = end_of_file(place.path + std::string(suffix), 0);
    text.insert(0, tail.value_or(std::string()));
  }
  if (text.empty()) {
    text = end_of_file(place.path, place.from).value_or(std::string());
  }
  if (text.size() > kLogEvidenceSize) {
    text.erase(0, text.size() - kLogEvidenceSize);
  }
  return text;
}

FoundEvidence read_evidence(const EvidencePlaces& places) {
  FoundEvidence found;
  if (!places.report.empty()) {
    found.report = last_state(decode_reports(end_of_file(places.report, 0).value_or("")));
  }
  if (!places.state_file.empty()) {
    found.report = worse_of(std::move(found.report), read_entry(places.state_file, places.uni_id));
  }
  const bool failed = places.failed || found.report.state == ReportedState::abnormal_exit;
  if (failed && !places.log.path.empty()) {
    found.log_end = read_log_end(places.log);
  }
  return found;
}

/// What threads that may outlive us have in common with us.
struct LogEvidence::Shared {
  struct Task {
    std::uint64_t ticket = 0;
    EvidencePlaces places;
  };

  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Task> tasks;
  std::size_t threads = 0;
  std::size_t idle = 0;
  Loop* loop = nullptr;  ///< none: nobody wants to know any more
  Read read;
  std::function<void(std::uint64_t, FoundEvidence)> finish;

  static void work(const std::shared_ptr<Shared>& self) {
    std::unique_lock lock(self->mutex);
    while (self->loop != nullptr) {
      if (self->tasks.empty()) {
        ++self->idle;
        self->wake.wait(lock);
        --self->idle;
        continue;
      }
      const Task task = std::move(self->tasks.front());
      self->tasks.pop_front();
      lock.unlock();
      auto found = std::make_shared<FoundEvidence>(self->read(task.places));
      lock.lock();
      if (self->loop != nullptr) {
        self->loop->post([finish = self->finish, ticket = task.ticket, found] {
          finish(ticket, std::move(*found));
        });
      }
    }
  }
};

LogEvidence::LogEvidence(Loop& loop, Millis patience, Read read)
    : loop_(loop), patience_(patience), shared_(std::make_shared<Shared>()) {
  shared_->loop = &loop;
  shared_->read = std::move(read);
  shared_->finish = [this](std::uint64_t ticket, FoundEvidence found) {
    finish(ticket, std::move(found));
  };
}

LogEvidence::~LogEvidence() {
  {
    const std::scoped_lock lock(shared_->mutex);
    shared_->loop = nullptr;
  }
  shared_->wake.notify_all();
}

void LogEvidence::read(EvidencePlaces places, Done done) {
  const std::uint64_t ticket = ++last_ticket_;
  Waiting& waiting = waiting_[ticket];
  waiting.done = std::move(done);
  waiting.timer = loop_.after(patience_, [this, ticket] { finish(ticket, {}); });
  const std::scoped_lock lock(shared_->mutex);
  shared_->tasks.push_back({ticket, std::move(places)});
  if (shared_->idle < shared_->tasks.size() && shared_->threads < kThreadsMax) {
    ++shared_->threads;
    std::thread([shared = shared_] {
      ::pthread_setname_np(::pthread_self(), "log evidence");
      sigset_t all;
      sigfillset(&all);
      ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
      Shared::work(shared);
    }).detach();
  }
  shared_->wake.notify_one();
}

void LogEvidence::finish(std::uint64_t ticket, FoundEvidence found) {
  const auto waiting = waiting_.extract(ticket);
  if (!waiting) {
    return;  // too late
  }
  {
    const std::scoped_lock lock(shared_->mutex);
    std::erase_if(shared_->tasks, [ticket](const auto& task) { return task.ticket == ticket; });
  }
  waiting.mapped().done(std::move(found));
}

}  // namespace berth
