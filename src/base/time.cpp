#include "base/time.hpp"

#include <ctime>

namespace berth {
namespace {

Millis read(clockid_t clock) {
  timespec ts{};
  ::clock_gettime(clock, &ts);
  return std::chrono::duration_cast<Millis>(std::chrono::seconds(ts.tv_sec) +
                                            std::chrono::nanoseconds(ts.tv_nsec));
}

}  // namespace

Now read_clock() {
  return {read(CLOCK_BOOTTIME), read(CLOCK_REALTIME)};
}

}  // namespace berth
