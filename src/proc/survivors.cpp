#include "proc/survivors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <thread>
#include <unordered_map>

#include "base/fd.hpp"
#include "proc/procfs.hpp"

namespace berth {
namespace {

constexpr int kStopRoundsMax = 50;

bool carries(pid_t pid, const std::string& entry) {
  const std::string environ = read_small_file(fmt::format("/proc/{}/environ", pid));
  for (auto at = environ.find(entry); at != std::string::npos; at = environ.find(entry, at + 1)) {
    const auto end = at + entry.size();
    if ((at == 0 || environ[at - 1] == '\0') && (end == environ.size() || environ[end] == '\0')) {
      return true;
    }
  }
  return false;
}

std::set<pid_t> cgroup_members(const std::string& cgroup) {
  std::set<pid_t> members;
  if (cgroup.empty()) {
    return members;
  }
  const std::string text = read_small_file(cgroup + "/cgroup.procs");
  for (std::size_t at = 0; at < text.size();) {
    members.insert(std::atoi(text.c_str() + at));
    at = std::min(text.find('\n', at), text.size() - 1) + 1;
  }
  return members;
}

/// One look at all processes, answering questions about ancestry.
class Census {
 public:
  Census() : all_(list_processes()) {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      by_pid_.emplace(all_[i].pid, i);
    }
  }

  [[nodiscard]] const std::vector<ProcStat>& all() const { return all_; }

  /// Whether `is` holds for the process or one of its ancestors.
  template <class Predicate>
  [[nodiscard]] bool any_upwards(const ProcStat& process, Predicate is) const {
    const ProcStat* at = &process;
    for (std::size_t steps = 0; steps <= all_.size(); ++steps) {
      if (is(*at)) {
        return true;
      }
      const auto parent = by_pid_.find(at->parent);
      if (parent == by_pid_.end() || at->parent == at->pid) {
        return false;
      }
      at = &all_[parent->second];
    }
    return false;
  }

 private:
  std::vector<ProcStat> all_;
  std::unordered_map<pid_t, std::size_t> by_pid_;
};

}  // namespace

std::string attempt_marker(std::string_view instance, AttemptId attempt) {
  return fmt::format("{}.{}", instance, attempt.value);
}

std::vector<ProcStat> find_survivors(const SurvivorTraits& traits) {
  const std::string entry = fmt::format("{}={}", kMarkerVariable, traits.marker);
  const pid_t self = ::getpid();
  const bool self_carries = carries(self, entry);
  const std::set<pid_t> in_cgroup = cgroup_members(traits.cgroup);
  const Census census;

  std::set<pid_t> marked;
  for (const ProcStat& process : census.all()) {
    if (!process.dead() && process.pid != self && process.pid != 1 &&
        ((traits.session > 0 && process.session == traits.session) ||
         in_cgroup.contains(process.pid) || carries(process.pid, entry))) {
      marked.insert(process.pid);
    }
  }
  std::vector<ProcStat> found;
  if (marked.empty()) {
    return found;
  }
  const auto is_marked = [&](const ProcStat& p) { return marked.contains(p.pid); };
  const auto is_protected = [&](const ProcStat& p) {
    return (self_carries && p.pid == self) ||
           std::ranges::any_of(traits.live_shims, [&p](const ProcessIdentity& shim) {
             return shim.pid == p.pid && shim.start_ticks == p.start_ticks;
           });
  };
  for (const ProcStat& process : census.all()) {
    if (!process.dead() && process.pid != self && census.any_upwards(process, is_marked) &&
        !census.any_upwards(process, is_protected)) {
      found.push_back(process);
    }
  }
  return found;
}

SurvivorsEnded end_survivors(const SurvivorTraits& traits, Millis patience) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + patience;
  std::set<ProcessIdentity> stopped;
  SurvivorsEnded result;
  Millis pause{1};
  for (;;) {
    result.left = find_survivors(traits);
    if (result.left.empty()) {
      break;
    }
    for (int round = 0; round < kStopRoundsMax; ++round) {
      bool fresh = false;
      for (const ProcStat& process : result.left) {
        if (stopped.insert({process.pid, process.start_ticks}).second) {
          fresh = true;
          signal_pidfd(open_pidfd_of(process.pid, process.start_ticks), SIGSTOP);
        }
      }
      if (!fresh) {
        break;
      }
      result.left = find_survivors(traits);
    }
    if (!traits.cgroup.empty() && !cgroup_members(traits.cgroup).empty()) {
      const Fd kill(::open((traits.cgroup + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
      if (kill && ::write(kill.get(), "1", 1) < 0) {
        // The pidfds below reach the same processes.
      }
    }
    for (const ProcStat& process : result.left) {
      signal_pidfd(open_pidfd_of(process.pid, process.start_ticks), SIGKILL);
    }
    if (Clock::now() >= until) {
      break;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, Millis(100));
  }
  result.ended = stopped.size() - std::min(stopped.size(), result.left.size());
  if (result.left.empty() && !traits.cgroup.empty()) {
    ::rmdir(traits.cgroup.c_str());
  }
  return result;
}

}  // namespace berth
