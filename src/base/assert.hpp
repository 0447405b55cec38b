#pragma once
// Broken invariants end the process, in release too: the store is ahead of nobody, so a restart
// recovers, and going on would not.

#include <cstdio>
#include <cstdlib>

namespace berth {

[[noreturn]] inline void assert_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "berth: invariant broken: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace berth

#define BERTH_ASSERT(expression) \
  ((expression) ? static_cast<void>(0) : ::berth::assert_failed(#expression, __FILE__, __LINE__))
