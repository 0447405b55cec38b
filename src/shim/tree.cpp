#include "shim/tree.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace berth::shim {
namespace {

constexpr int kStopRoundsMax = 200;
constexpr std::int64_t kStopMillisMax = 500;
constexpr std::uint64_t kYoungMillis = 1000;  ///< on its way to exec no longer than that
constexpr std::int64_t kHoldMillisMax = 100;

/// Calls `visit(number)` for each entry of a directory whose name is a number.
template <class Visit>
bool for_each_number(const char* path, Visit visit) {
  int dir = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0) {
    return false;
  }
  struct Entry {
    ino64_t ino;
    off64_t off;
    unsigned short size;
    unsigned char type;
    char name[1];
  };
  alignas(Entry) char buffer[4096];
  for (;;) {
    const long got = ::syscall(SYS_getdents64, dir, buffer, sizeof buffer);
    if (got <= 0) {
      break;
    }
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const Entry*>(buffer + at);
      at += entry->size;
      if (const long number = std::strtol(entry->name, nullptr, 10); number > 0) {
        visit(static_cast<pid_t>(number));
      }
    }
  }
  close_fd(dir);
  return true;
}

/// Calls `visit(pid)` for each number in the file. False when there is no such file.
template <class Visit>
bool for_each_child(const char* path, Visit visit) {
  int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return false;
  }
  char buffer[2048];
  pid_t pid = 0;
  for (;;) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got <= 0) {
      break;
    }
    for (ssize_t i = 0; i < got; ++i) {
      if (buffer[i] >= '0' && buffer[i] <= '9') {
        pid = pid * 10 + (buffer[i] - '0');
      } else if (pid != 0) {
        visit(pid);
        pid = 0;
      }
    }
  }
  close_fd(fd);
  return true;
}

int by_pid(const void* a, const void* b) {
  return static_cast<const ProcStat*>(a)->pid - static_cast<const ProcStat*>(b)->pid;
}

/// Signals a process and, where that is certain to hit only this attempt, its whole group at once.
///
/// A group is signalled atomically with respect to fork, which ends chains that fork and exit
/// faster than anybody can look. It is certain for the group of a direct child: as long as the
/// child has not been reaped, and only we reap it, no stranger can get its group's number.
void signal_with_groups(const ProcStat& process, int signal, pid_t& last_group) {
  if (process.group == last_group) {
    return;  // reached with its neighbour, who shares the group; the next round checks
  }
  if (process.parent == ::getpid() && process.group > 1 && process.group != ::getpgrp()) {
    last_group = process.group;
    ::kill(-process.group, signal);
  }
  signal_process(process, signal);
}

/// What a process would do about a signal; unknown counts as neither.
struct Disposition {
  bool caught = false;   ///< it has a handler
  bool blocked = false;  ///< it hears of it later
};

bool in_mask(std::string_view status, std::string_view field, int signal) {
  constexpr std::size_t kDigits = 16;
  const std::size_t at = status.find(field);
  if (at == std::string_view::npos || at + field.size() + kDigits >= status.size()) {
    return false;
  }
  const std::uint64_t mask = std::strtoull(status.data() + at + field.size(), nullptr, 16);
  return (mask >> static_cast<unsigned>(signal - 1) & 1U) != 0;
}

Disposition disposition(pid_t pid, int signal) {
  Text path;
  path.add("/proc/").add(static_cast<std::uint64_t>(pid)).add("/status");
  char text[4096];
  const ssize_t size = read_file(path.c_str(), text, sizeof text);
  if (size <= 0) {
    return {};
  }
  const std::string_view status(text, static_cast<std::size_t>(size));
  return {.caught = in_mask(status, "\nSigCgt:\t", signal),
          .blocked = in_mask(status, "\nSigBlk:\t", signal)};
}

void wait_a_millisecond() {
  constexpr timespec kMillisecond{0, 1'000'000};
  ::nanosleep(&kMillisecond, nullptr);
}

bool is_stopped(pid_t pid) {
  ProcStat process;
  return read_stat(pid, process) && (process.state == 'T' || process.state == 't');
}

bool is_young(const ProcStat& process) {
  const auto ticks_per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  const auto now = static_cast<std::uint64_t>(now_ms(CLOCK_BOOTTIME));
  return process.start_ticks * 1000 / ticks_per_second + kYoungMillis > now;
}

/// Warns one that was born a moment ago, and so may be on its way from fork to exec: until then it
/// has the handlers of its parent, and told of the signal just before it loses them it would die of
/// it. Held still it cannot get there between the look and the signal; one that has everything
/// blocked, as spawning functions have it on that way, is looked at again. False when it has none.
bool warn_young(const ProcStat& process, int signal) {
  const std::int64_t until = now_ms(CLOCK_MONOTONIC) + kHoldMillisMax;
  for (;;) {
    const bool hold = !is_stopped(process.pid);
    if (hold) {
      signal_process(process, SIGSTOP);
      while (!is_stopped(process.pid) && now_ms(CLOCK_MONOTONIC) < until) {
        wait_a_millisecond();
      }
    }
    const Disposition seen = disposition(process.pid, signal);
    const bool late = now_ms(CLOCK_MONOTONIC) >= until;
    const bool tell = seen.caught && (!seen.blocked || late);
    if (tell) {
      signal_process(process, signal);
    }
    if (hold) {
      signal_process(process, SIGCONT);
    }
    if (tell || !seen.caught) {
      return tell;
    }
    wait_a_millisecond();
  }
}

}  // namespace

const Outside* Tree::outside = nullptr;
bool Tree::look_at_all_processes = false;

Tree::~Tree() {
  std::free(items_);
}

void Tree::swap(Tree& other) {
  std::swap(items_, other.items_);
  std::swap(size_, other.size_);
  std::swap(capacity_, other.capacity_);
}

bool Tree::add(const ProcStat& process) {
  if (size_ == capacity_) {
    const std::size_t wanted = capacity_ == 0 ? 64 : capacity_ * 2;
    void* grown = std::realloc(items_, wanted * sizeof *items_);
    if (grown == nullptr) {
      return false;
    }
    items_ = static_cast<ProcStat*>(grown);
    capacity_ = wanted;
  }
  items_[size_++] = process;
  return true;
}

void Tree::add_children(pid_t pid) {
  Text tasks;
  tasks.add("/proc/").add(static_cast<std::uint64_t>(pid)).add("/task");
  for_each_number(tasks.c_str(), [&](pid_t thread) {
    Text path;
    path.add(tasks.view()).add("/").add(static_cast<std::uint64_t>(thread)).add("/children");
    const bool there = for_each_child(path.c_str(), [&](pid_t child) {
      ProcStat process;
      if (read_stat(child, process) && (process.parent == pid || process.parent == ::getpid())) {
        add(process);
      }
    });
    if (!there && pid == ::getpid()) {
      look_at_all_processes = true;
    }
  });
}

void Tree::scan_all() {
  for_each_number("/proc", [this](pid_t pid) {
    ProcStat process;
    if (read_stat(pid, process)) {
      add(process);
    }
  });
  // Members move to the front, [0, members), until no process outside has its parent inside.
  const pid_t self = ::getpid();
  std::size_t members = 0;
  for (bool grown = true; grown;) {
    grown = false;
    for (std::size_t i = members; i < size_; ++i) {
      bool inside = items_[i].parent == self;
      for (std::size_t m = 0; m < members && !inside; ++m) {
        inside = items_[m].pid == items_[i].parent;
      }
      if (inside) {
        std::swap(items_[i], items_[members++]);
        grown = true;
      }
    }
  }
  size_ = members;
}

void Tree::sort_unique() {
  if (size_ < 2) {
    return;
  }
  std::qsort(items_, size_, sizeof *items_, by_pid);
  std::size_t kept = 1;
  for (std::size_t i = 1; i < size_; ++i) {
    if (items_[i].pid != items_[kept - 1].pid) {
      items_[kept++] = items_[i];
    }
  }
  size_ = kept;
}

void Tree::scan() {
  size_ = 0;
  if (!look_at_all_processes) {
    add_children(::getpid());
    for (std::size_t i = 0; i < size_; ++i) {
      add_children(items_[i].pid);
    }
  }
  if (look_at_all_processes) {  // possibly found out just now
    size_ = 0;
    scan_all();
  }
  if (ProcStat process; outside != nullptr && outside->process(process)) {
    add(process);
  }
  sort_unique();
}

bool Tree::contains(const ProcStat& process) const {
  const void* found =
      size_ == 0 ? nullptr : std::bsearch(&process, items_, size_, sizeof *items_, by_pid);
  return found != nullptr &&
         static_cast<const ProcStat*>(found)->start_ticks == process.start_ticks;
}

std::size_t Tree::alive() const {
  std::size_t count = 0;
  for (const ProcStat& process : *this) {
    count += process.dead() ? 0U : 1U;
  }
  return count;
}

void Tree::names(Text& out) const {
  constexpr int kNamesMax = 5;
  int named = 0;
  for (const ProcStat& process : *this) {
    if (process.dead()) {
      continue;
    }
    if (named == kNamesMax) {
      out.add(", …");
      return;
    }
    out.add(named++ == 0 ? "" : ", ").add(process.name);
    out.add("[").add(static_cast<std::uint64_t>(process.pid)).add("]");
  }
}

void terminate_all() {
  // Twice, so that a child born during the first look hears of it as well. Not until stable: what
  // a process starts in answer to TERM is its way of ending, and has the grace period.
  Tree told;
  Tree tree;
  for (int round = 0; round < 2; ++round) {
    tree.scan();
    for (const ProcStat& process : tree) {
      if (!told.contains(process)) {
        signal_process(process, SIGTERM, SIGCONT);
      }
    }
    told.swap(tree);
  }
}

bool warn_all(int signal) {
  Tree tree;
  tree.scan();
  bool told = false;
  for (const ProcStat& process : tree) {
    if (process.dead() || !disposition(process.pid, signal).caught) {
      continue;
    }
    if (is_young(process)) {
      told = warn_young(process, signal) || told;
    } else {
      signal_process(process, signal);
      told = true;
    }
  }
  return told;
}

void stop_all() {
  Tree stopped;
  Tree tree;
  const std::int64_t until = now_ms(CLOCK_MONOTONIC) + kStopMillisMax;
  for (int round = 0; round < kStopRoundsMax && now_ms(CLOCK_MONOTONIC) < until; ++round) {
    tree.scan();
    bool fresh = false;
    pid_t group = 0;
    for (const ProcStat& process : tree) {
      if (!stopped.contains(process)) {
        fresh = true;
        signal_with_groups(process, SIGSTOP, group);
      }
    }
    if (!fresh) {
      return;
    }
    stopped.swap(tree);
  }
}

void continue_all() {
  Tree tree;
  tree.scan();
  for (const ProcStat& process : tree) {
    signal_process(process, SIGCONT);
  }
}

void kill_all() {
  stop_all();
  Tree tree;
  tree.scan();
  pid_t group = 0;
  for (const ProcStat& process : tree) {
    signal_with_groups(process, SIGKILL, group);
  }
}

}  // namespace berth::shim
