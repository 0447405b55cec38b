#include "base/failpoint.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>

#include <unistd.h>

namespace berth {
namespace detail {

bool failpoints_armed = false;

namespace {
std::string armed_name;
std::atomic<long> passes_left{0};
}  // namespace

void pass_failpoint(const char* name) {
  if (armed_name == name && passes_left.fetch_sub(1) == 1) {
    ::kill(::getpid(), SIGKILL);
    ::pause();
  }
}

}  // namespace detail

void arm_failpoints() {
  const char* spec = std::getenv("BERTH_CRASH_AT");
  if (spec == nullptr || *spec == '\0') {
    return;
  }
  std::string name = spec;
  long passes = 1;
  if (const auto colon = name.find(':'); colon != std::string::npos) {
    passes = std::strtol(name.c_str() + colon + 1, nullptr, 10);
    name.resize(colon);
  }
  detail::armed_name = name;
  detail::passes_left = passes;
  detail::failpoints_armed = true;
}

}  // namespace berth
