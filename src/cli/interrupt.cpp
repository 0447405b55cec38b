#include "cli/interrupt.hpp"

namespace berth::cli {
namespace {

volatile std::sig_atomic_t seen = 0;

}  // namespace

CatchInterrupt::CatchInterrupt() {
  seen = 0;
  struct sigaction action{};
  action.sa_handler = [](int) { seen = 1; };
  ::sigaction(SIGINT, &action, &before_);
}

CatchInterrupt::~CatchInterrupt() {
  ::sigaction(SIGINT, &before_, nullptr);
}

bool interrupted() {
  return seen != 0;
}

}  // namespace berth::cli
