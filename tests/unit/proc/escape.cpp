// Ways in which a job's processes get away from whoever wants to end them.
//
// escape TECHNIQUE READY: every process that has come to rest appends one byte to the file READY.

#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>

namespace {

std::string self_path;
std::string ready_path;

void say_ready() {
  const int fd = ::open(ready_path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0 || ::write(fd, "x", 1) != 1) {
    std::perror("escape: ready file");
  }
  ::close(fd);
}

[[noreturn]] void rest_quietly() {
  for (;;) {
    ::pause();
  }
}

[[noreturn]] void rest() {
  say_ready();
  rest_quietly();
}

/// Forks a child that runs `work` and rests.
pid_t child(const std::function<void()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    work();
    rest();
  }
  return pid;
}

/// Forks a grandchild whose parent is gone.
void orphan(const std::function<void()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    child(work);
    ::_exit(0);
  }
  ::waitpid(pid, nullptr, 0);
}

void ignore_everything() {
  for (int signal = 1; signal < NSIG; ++signal) {
    std::signal(signal, SIG_IGN);
  }
  std::signal(SIGCHLD, SIG_DFL);
}

void nothing() {}

void double_fork() {
  orphan(nothing);
}

void new_session() {
  child([] { ::setsid(); });
}

void daemonize() {
  orphan([] {
    ::setsid();
    orphan(nothing);
  });
  ::_exit(0);
}

void ignore_term() {
  ignore_everything();
  child(nothing);
  orphan([] { ::setsid(); });
}

void stopped() {
  const auto stop = [] {
    say_ready();
    ::raise(SIGSTOP);
  };
  child(stop);
  orphan(stop);
}

void fork_bomb() {
  // Doubles itself: 2^10 processes, of which each forks as fast as it can.
  ignore_everything();
  for (int generation = 0; generation < 10; ++generation) {
    if (::fork() < 0) {
      break;
    }
  }
}

void reparented_tree() {
  for (int branch = 0; branch < 3; ++branch) {
    if (::fork() == 0) {
      for (int leaf = 0; leaf < 3; ++leaf) {
        child([] { child(nothing); });
      }
      ::_exit(0);  // the middle of the tree disappears
    }
  }
}

char* original_arguments = nullptr;
std::size_t original_size = 0;

void renamed() {
  const auto rename = [] {
    ::prctl(PR_SET_NAME, "x) R 1 1 (");
    std::memset(original_arguments, ' ', original_size);
    std::memcpy(original_arguments, "init", 4);  // NOLINT(bugprone-not-null-terminated-result)
  };
  child(rename);
  orphan(rename);
}

void cleared_environment() {
  orphan([] {
    std::string self = self_path;
    std::string rest_word = "rest";
    std::string ready = ready_path;
    char* arguments[] = {self.data(), rest_word.data(), ready.data(), nullptr};
    char* environment[] = {nullptr};
    ::setsid();
    ::execve(self_path.c_str(), arguments, environment);
  });
}

void closed_descriptors() {
  orphan([] {
    say_ready();
    ::syscall(SYS_close_range, 0U, ~0U, 0U);
  });
}

void nested_subreaper() {
  child([] {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ignore_everything();
    orphan([] { ::setsid(); });
    orphan(nothing);
  });
}

void ptrace_stopped() {
  const pid_t tracee = ::fork();
  if (tracee == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    say_ready();
    ::raise(SIGSTOP);
    rest_quietly();
  }
  ::waitpid(tracee, nullptr, 0);
  // Never continued: it stays in its ptrace stop, and its tracer swallows every signal but KILL.
}

// NOLINTBEGIN(bugprone-unsafe-functions,clang-analyzer-unix.Vfork): this is what must not escape
void vfork_child() {
  orphan([] {
    ::setsid();
    if (::vfork() == 0) {
      for (;;) {
        ::pause();  // the parent is suspended until this one is gone
      }
    }
  });
  child([] {
    say_ready();
    if (::vfork() == 0) {
      for (;;) {
        ::pause();
      }
    }
  });
}
// NOLINTEND(bugprone-unsafe-functions,clang-analyzer-unix.Vfork)

void nohup_disown() {
  const std::string command = "nohup '" + self_path + "' rest '" + ready_path +
                              "' >/dev/null 2>&1 & disown; setsid '" + self_path + "' rest '" +
                              ready_path + "' & exit 0";
  ::execl("/bin/bash", "bash", "-c", command.c_str(), nullptr);
}

/// Lives in no process for longer than a fork takes.
[[noreturn]] void hop(bool with_session) {
  ignore_everything();
  say_ready();
  for (;;) {
    if (with_session) {
      ::setsid();
    }
    if (const pid_t next = ::fork(); next != 0) {
      if (next > 0) {
        ::_exit(0);
      }
      ::usleep(1000);
    }
  }
}

void hopping() {
  child([] { hop(false); });
}

void hopping_sessions() {
  child([] { hop(true); });
}

void own_groups() {
  for (int i = 0; i < 3; ++i) {
    child([] { ::setpgid(0, 0); });
  }
  child([] { ::setpgid(0, ::getsid(0)); });  // the supervisor's own group
}

void* thread_rests(void* /*unused*/) {
  orphan(nothing);
  rest();
}

void dead_main_thread() {
  child([] {
    pthread_t thread{};
    ::pthread_create(&thread, nullptr, thread_rests, nullptr);
    say_ready();
    ::pthread_exit(nullptr);  // shown as a zombie, yet alive
  });
}

void fork_on_term(int /*signal*/) {
  for (int i = 0; i < 5; ++i) {
    if (::fork() == 0) {
      ::setsid();
      ignore_everything();
      rest_quietly();
    }
  }
}

void multiply_on_term() {
  child([] { std::signal(SIGTERM, fork_on_term); });
}

void other_user() {
  orphan([] {
    if (::getuid() == 0) {
      (void)!::setuid(65534);
    }
    ignore_everything();
  });
}

struct Technique {
  void (*run)();
  int ready;  ///< processes that come to rest
};

const std::map<std::string, Technique> techniques = {
    {"rest", {nothing, 1}},
    {"double_fork", {double_fork, 2}},
    {"new_session", {new_session, 2}},
    {"daemonize", {daemonize, 2}},
    {"ignore_term", {ignore_term, 3}},
    {"stopped", {stopped, 3}},
    {"fork_bomb", {fork_bomb, 1000}},
    {"reparented_tree", {reparented_tree, 19}},
    {"renamed", {renamed, 3}},
    {"cleared_environment", {cleared_environment, 2}},
    {"closed_descriptors", {closed_descriptors, 2}},
    {"nested_subreaper", {nested_subreaper, 4}},
    {"ptrace_stopped", {ptrace_stopped, 2}},
    {"vfork_child", {vfork_child, 2}},
    {"nohup_disown", {nohup_disown, 2}},
    {"hopping", {hopping, 2}},
    {"hopping_sessions", {hopping_sessions, 2}},
    {"own_groups", {own_groups, 5}},
    {"dead_main_thread", {dead_main_thread, 4}},
    {"multiply_on_term", {multiply_on_term, 2}},
    {"other_user", {other_user, 2}},
};

}  // namespace

int main(int argc, char** argv) {
  const auto found = techniques.find(argc > 1 ? argv[1] : "");
  if (found != techniques.end() && argc == 2) {
    std::printf("%d\n", found->second.ready);
    return 0;
  }
  if (found == techniques.end() || argc != 3) {
    std::fprintf(stderr, "usage: escape TECHNIQUE [READY]\n");
    return 2;
  }
  original_arguments = argv[0];
  original_size = static_cast<std::size_t>(argv[2] + std::strlen(argv[2]) - argv[0]);
  self_path = argv[0];
  ready_path = argv[2];
  found->second.run();
  rest();
}
