#pragma once
// The payload's own cgroup v2, where one may be had. Everything here fails silently: supervision
// does not depend on it.

#include <cstdint>
#include <string_view>

#include "shim/sys.hpp"

namespace berth::shim {

class AttemptCgroup {
 public:
  void make(std::string_view parent, std::uint64_t attempt);

  /// Writing "0" here moves the writer in; -1 without a cgroup.
  [[nodiscard]] int procs() const { return procs_; }

  /// KILL for every member, atomically.
  void kill();
  /// False when not known.
  [[nodiscard]] bool peak(std::uint64_t& bytes);
  /// How often the kernel ended a member for lack of memory.
  [[nodiscard]] std::uint64_t oom_kills();
  void remove();

 private:
  [[nodiscard]] ssize_t read(std::string_view file, char* buffer, std::size_t size);

  Text path_;
  int procs_ = -1;
};

}  // namespace berth::shim
