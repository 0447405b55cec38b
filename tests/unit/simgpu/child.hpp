#pragma once
// Child processes for tests, and a state directory of simulated GPUs that goes away with the test.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simgpu/state.hpp"

namespace berth::test {

inline constexpr std::chrono::seconds kPatience{30};  // for what happens at once on an idle machine

/// Killed and reaped when it goes out of scope.
class Child {
 public:
  struct Options {
    std::vector<std::pair<std::string, std::optional<std::string>>>
        environment;  ///< nullopt: unset
    std::optional<uid_t> uid;
  };

  explicit Child(std::vector<std::string> command) : Child(std::move(command), Options{}) {}
  Child(std::vector<std::string> command, const Options& options) {
    int in[2];
    int out[2];
    int err[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0 ||
        ::pipe2(err, O_CLOEXEC) != 0) {
      std::abort();
    }
    // Opened here: another user may not be able to reach the build directory.
    const int program = ::open(command.at(0).c_str(), O_RDONLY | O_CLOEXEC);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      ::dup2(err[1], 2);
      for (const auto& [name, value] : options.environment) {
        value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
      }
      if (options.uid && (::setgid(*options.uid) != 0 || ::setuid(*options.uid) != 0)) {
        ::_exit(126);
      }
      std::vector<char*> words;
      for (std::string& word : command) {
        words.push_back(word.data());
      }
      words.push_back(nullptr);
      ::fexecve(program, words.data(), environ);
      ::_exit(127);
    }
    ::close(program);
    for (const int fd : {in[0], out[1], err[1]}) {
      ::close(fd);
    }
    in_ = in[1];
    out_ = out[0];
    err_ = err[0];
  }
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        in_(std::exchange(other.in_, -1)),
        out_(std::exchange(other.out_, -1)),
        err_(std::exchange(other.err_, -1)) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
    for (const int fd : {in_, out_, err_}) {
      if (fd >= 0) {
        ::close(fd);
      }
    }
  }

  [[nodiscard]] unsigned pid() const { return static_cast<unsigned>(pid_); }
  void kill() const { ::kill(pid_, SIGKILL); }

  /// The exit code, or minus the signal.
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  /// Whether it ended, without reaping it: it stays a zombie.
  [[nodiscard]] bool wait_unreaped() const {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) == 0;
  }

  void write(const std::string& text) const {
    ASSERT_EQ(::write(in_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void close_input() { ::close(std::exchange(in_, -1)); }

  /// The next line of stdout with its newline; empty if none comes in time.
  [[nodiscard]] std::string read_line(std::chrono::milliseconds patience = kPatience) const {
    std::string line;
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!line.ends_with('\n')) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now());
      pollfd poll{out_, POLLIN, 0};
      char next = 0;
      if (left.count() <= 0 || ::poll(&poll, 1, static_cast<int>(left.count())) <= 0 ||
          ::read(out_, &next, 1) != 1) {
        return {};
      }
      line += next;
    }
    return line;
  }
  [[nodiscard]] std::string read_output() const { return read_all(out_); }
  [[nodiscard]] std::string read_errors() const { return read_all(err_); }

 private:
  static std::string read_all(int fd) {
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(fd, &buffer[0], sizeof buffer)) > 0;) {
      text.append(&buffer[0], static_cast<std::size_t>(got));
    }
    return text;
  }

  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  int err_ = -1;
};

/// A fresh set of cards, reachable by every user, and the one of this process's BERTH_SIM_DIR.
class SimGpus {
 public:
  explicit SimGpus(const std::string& spec) : root_(make_root()), directory(root_ + "/gpus") {
    const auto made = directory.init(spec);
    EXPECT_TRUE(made) << made.error();
    ::setenv("BERTH_SIM_DIR", directory.path().c_str(), 1);
  }
  SimGpus(const SimGpus&) = delete;
  SimGpus& operator=(const SimGpus&) = delete;
  ~SimGpus() { std::filesystem::remove_all(root_); }

  void set(unsigned index, const std::string& key, const std::string& value) const {
    const auto done = directory.set_card(index, key, value);
    ASSERT_TRUE(done) << done.error();
  }
  void set_driver(const std::string& key, const std::string& value) const {
    const auto done = directory.set_driver(key, value);
    ASSERT_TRUE(done) << done.error();
  }

  /// A process that has its memory by the time this returns.
  [[nodiscard]] Child hold(unsigned index, const std::string& memory,
                           std::vector<std::string> more = {},
                           std::optional<uid_t> uid = std::nullopt) const {
    std::vector<std::string> command{
        BERTH_SIMGPU, "hold", std::to_string(index), "--dir", directory.path(), "--memory", memory};
    command.insert(command.end(), more.begin(), more.end());
    Child child(command, {.environment = {}, .uid = uid});
    EXPECT_TRUE(child.read_line().starts_with("holding")) << child.read_errors();
    return child;
  }

 private:
  static std::string make_root() {
    std::string path = ::testing::TempDir() + "berth-simgpu-XXXXXX";
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    ::chmod(path.c_str(), 0755);
    return path;
  }
  std::string root_;

 public:
  simgpu::Directory directory;
};

}  // namespace berth::test
