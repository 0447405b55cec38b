#pragma once
// Places at which a test may end the process as a power cut would: with SIGKILL, at once.
//
// BERTH_CRASH_AT="after_commit" dies at the first pass of that point, "after_commit:7" at the
// seventh. Without the variable a point costs one predictable branch.

namespace berth {

/// Reads BERTH_CRASH_AT. Call once, before threads exist.
void arm_failpoints();

namespace detail {
extern bool failpoints_armed;
void pass_failpoint(const char* name);
}  // namespace detail

inline void failpoint(const char* name) {
  if (detail::failpoints_armed) [[unlikely]] {
    detail::pass_failpoint(name);
  }
}

}  // namespace berth
