#include "cli/interrupt.hpp"

namespace berth::cli {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM};

volatile std::sig_atomic_t seen = 0;  ///< the signal

}  // namespace

CatchInterrupt::CatchInterrupt() {
  seen = 0;
  struct sigaction action{};
  action.sa_handler = [](int number) { seen = number; };
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &before_[i]);
  }
}

CatchInterrupt::~CatchInterrupt() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  seen = 0;
}

bool interrupted() {
  return seen != 0;
}

int interrupt_code() {
  return seen == 0 ? kInterrupted : 128 + seen;
}

}  // namespace berth::cli
