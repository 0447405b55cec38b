// A program that saves its work when told by USR1, and is busy starting others: each is on its way
// from fork to exec for a while, with the signal blocked and the handler still its parent's, as
// posix_spawn and vforking shells have it for some microseconds.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace {

constexpr useconds_t kOnItsWay = 30'000;

volatile std::sig_atomic_t told = 0;

void note(int /*signal*/) {
  told = 1;
}

[[noreturn]] void become_another(const sigset_t& before) {
  ::usleep(kOnItsWay);
  std::signal(SIGUSR1, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::execl("/bin/true", "true", nullptr);
  ::_exit(127);
}

}  // namespace

int main() {
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR1, &action, nullptr);
  sigset_t blocked;
  sigset_t before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR1);
  for (int count = 0; told == 0; ++count) {
    ::sigprocmask(SIG_BLOCK, &blocked, &before);
    const pid_t child = ::fork();
    if (child == 0) {
      become_another(before);
    }
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (count == 0) {
      std::puts("up");
      std::fflush(stdout);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      std::printf("a child ended with %d\n", status);
    }
  }
  std::puts("saved");
  return 7;
}
