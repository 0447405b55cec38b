#pragma once
// Everything the attempt has become: all descendants of this process, and whom it has named.
//
// The supervisor is a child subreaper, so whoever forks, detaches, changes session, name or
// environment remains below it; and what is left below it is known exactly, by wait(2).

#include <sys/types.h>

#include <cstddef>

#include "shim/outside.hpp"
#include "shim/sys.hpp"

namespace berth::shim {

/// One look at the descendants, ascending by pid. Costs heap only while it holds something.
class Tree {
 public:
  Tree() = default;
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree();

  /// Looks again. A process that forks meanwhile may be missed: callers repeat until stable.
  void scan();
  void swap(Tree& other);

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const ProcStat* begin() const { return items_; }
  [[nodiscard]] const ProcStat* end() const { return items_ + size_; }
  [[nodiscard]] bool contains(const ProcStat& process) const;
  /// Processes that are more than a zombie.
  [[nodiscard]] std::size_t alive() const;
  /// "python[812] sleep[813] …" of the first few that are alive.
  void names(Text& out) const;

  /// One who belongs to the attempt though it is no descendant of ours; its own descendants do not:
  /// a server may have work of others. None: nullptr.
  static const Outside* outside;
  /// For machines whose kernel has no /proc/<pid>/task/<tid>/children, and for tests.
  static bool look_at_all_processes;

 private:
  bool add(const ProcStat& process);
  void add_children(pid_t pid);
  void scan_all();
  void sort_unique();

  ProcStat* items_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

/// TERM to everything, then CONT, so that what is stopped can obey.
void terminate_all();

/// To those that have a handler for it: whoever has none is not to die of a warning. False when
/// nobody has one.
bool warn_all(int signal);

/// Stops everything until a look finds nothing new. Bounded: what cannot be stopped does not hold
/// it up.
void stop_all();

void continue_all();

/// One round of: stop until stable, then KILL all. The caller repeats it until wait(2) says that
/// nothing is left.
void kill_all();

}  // namespace berth::shim
