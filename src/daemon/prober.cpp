#include "daemon/prober.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <csignal>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "daemon/spawn.hpp"
#include "gpu/host_facts.hpp"
#include "gpu/probe_wire.hpp"

namespace berth {

namespace {
constexpr Millis kRestMin{1'000};
constexpr Millis kRestMax{30'000};
constexpr Millis kPeriodMin{100};  ///< a look costs something, too
constexpr std::size_t kLineMax = 16 * 1024 * 1024;
}  // namespace

Prober::Prober(Loop& loop, ProberConfig config, Hooks hooks)
    : loop_(loop), config_(std::move(config)), hooks_(std::move(hooks)) {}

Prober::~Prober() {
  abandon();
}

void Prober::request() {
  if (resting_) {
    return;
  }
  if (outstanding_) {
    again_ = true;
    return;
  }
  ask();
}

void Prober::after_fresh(std::function<void()> then) {
  if (resting_) {
    then();
    return;
  }
  (outstanding_ ? next_waiters_ : waiters_).push_back(std::move(then));
  request();
}

void Prober::launch() {
  auto child = spawn_with_pipes(config_.program_fd, config_.arguments, config_.environment);
  if (!child) {
    fail(child.error().message);
    return;
  }
  pid_ = child->pid;
  pidfd_ = std::move(child->pidfd);
  to_probe_ = std::move(child->to_child);
  from_probe_ = std::move(child->from_child);
  buffer_.clear();
}

void Prober::ask() {
  timer_.reset();
  if (!from_probe_) {
    launch();
    if (!from_probe_) {
      return;
    }
  }
  const std::string line = fmt::format("sample {}\n", ++asked_);
  if (::write(to_probe_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    fail("the GPU probe has died");
    return;
  }
  outstanding_ = true;
  patience_ = loop_.after(config_.patience, [this] {
    fail(fmt::format(
        "the GPU driver has not answered for {}; nothing new starts on GPUs until it does",
        format_duration(config_.patience)));
  });
  output_watch_ = loop_.when_readable(from_probe_.get(), [this] { on_output(); });
}

void Prober::on_output() {
  char chunk[64 * 1024];
  const ssize_t n = ::read(from_probe_.get(), chunk, sizeof chunk);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
    output_watch_ = loop_.when_readable(from_probe_.get(), [this] { on_output(); });
    return;
  }
  if (n <= 0) {
    fail("the GPU probe has died");
    return;
  }
  buffer_.append(chunk, static_cast<std::size_t>(n));
  const auto end = buffer_.find('\n');
  if (end == std::string::npos) {
    if (buffer_.size() > kLineMax) {
      fail("the GPU probe answers without end");
      return;
    }
    output_watch_ = loop_.when_readable(from_probe_.get(), [this] { on_output(); });
    return;
  }
  const std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  answer(line);
}

void Prober::answer(const std::string& line) {
  auto reply = decode_probe_reply(line);
  if (!reply && reply.error().code == ErrorCode::not_found) {
    // No driver at all is not trouble: the machine has no GPUs.
    reply =
        ProbeReply{GpuSample{read_clock().mono, {}, "no NVIDIA driver", read_host_available()}, {}};
  }
  if (!reply) {
    fail(reply.error().message);
    return;
  }
  outstanding_ = false;
  patience_.reset();
  output_watch_.reset();
  rest_ = kRestMin;
  attribute(*reply);
  hooks_.emit(event::Sampled{std::move(reply->sample)});
  tell_waiters();
  if (outstanding_) {
    return;  // what was just seen has led to another look already
  }
  if (std::exchange(again_, false) || !waiters_.empty()) {
    ask();
  } else {
    look_again_later();
  }
}

void Prober::attribute(ProbeReply& reply) {
  decltype(owners_) seen;
  for (GpuFacts& gpu : reply.sample.gpus) {
    if (!gpu.processes) {
      continue;
    }
    for (GpuProcess& process : *gpu.processes) {
      const std::pair key{process.pid, process.start_time};
      process.attempt = hooks_.attempt_of_shim(process.pid);
      if (const auto chain = reply.ancestors.find(process.pid); chain != reply.ancestors.end()) {
        for (const std::uint32_t ancestor : chain->second) {
          if (process.attempt) {
            break;
          }
          process.attempt = hooks_.attempt_of_shim(ancestor);
        }
      }
      if (!process.attempt) {
        if (const auto known = owners_.find(key); known != owners_.end()) {
          process.attempt = known->second;
        }
      }
      if (process.attempt) {
        seen.emplace(key, process.attempt);
      }
    }
  }
  owners_ = std::move(seen);
}

void Prober::fail(const std::string& why) {
  abandon();
  outstanding_ = false;
  again_ = false;
  resting_ = true;
  // Later: this may be the consequence of an effect, whose outcome must not overtake it.
  loop_.post([this, why] {
    hooks_.emit(event::ProbeFailed{why, read_host_available()});
    tell_waiters();
    tell_waiters();
  });
  timer_ = loop_.after(rest_, [this] {
    resting_ = false;
    if (hooks_.wanted()) {
      ask();
    } else {
      look_again_later();  // or a job that comes later would wait for a look that nobody takes
    }
  });
  rest_ = std::min(rest_ * 2, kRestMax);
}

void Prober::abandon() {
  patience_.reset();
  output_watch_.reset();
  to_probe_.reset();
  from_probe_.reset();
  if (pid_ <= 0) {
    return;
  }
  ::kill(pid_, SIGKILL);
  // It is reaped when it dies; if it is stuck in the driver, that may be never.
  const pid_t pid = std::exchange(pid_, -1);
  Abandoned entry;
  entry.pidfd = std::move(pidfd_);
  if (entry.pidfd) {
    entry.watch = loop_.when_readable(entry.pidfd.get(), [this, pid] {
      ::waitpid(pid, nullptr, WNOHANG);
      abandoned_.erase(pid);
    });
    abandoned_.emplace(pid, std::move(entry));
  }
}

void Prober::look_again_later() {
  const Millis period =
      std::clamp(hooks_.within().value_or(config_.period), kPeriodMin, config_.period);
  timer_ = loop_.after(period, [this] {
    if (hooks_.wanted()) {
      request();
    } else {
      look_again_later();
    }
  });
}

void Prober::tell_waiters() {
  const auto waiters = std::exchange(waiters_, std::exchange(next_waiters_, {}));
  for (const auto& waiter : waiters) {
    waiter();
  }
}

}  // namespace berth
