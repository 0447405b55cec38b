#pragma once
// Runs real supervisors in a directory of their own.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proc/launcher.hpp"
#include "proc/procfs.hpp"

namespace berth::test {

inline constexpr const char* kInstance = "unit-test";

class ShimTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* tmp = std::getenv("TMPDIR");
    std::string pattern = std::string(tmp != nullptr ? tmp : "/tmp") + "/berth-proc-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    dir_ = std::filesystem::canonical(pattern).string();
    ::chmod(dir_.c_str(), 0755);
    open_launcher();
  }
  void TearDown() override {
    for (auto& [id, shim] : running_) {
      (void)launcher_->control(shim, control::Kill{Millis(0)});
      (void)finish(AttemptId{id}, shim);
    }
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
  }

  void open_launcher(std::vector<std::string> shim_environment = {}, std::string cgroup = {}) {
    auto opened = Launcher::open(
        {dir_, BERTH_SHIM_PATH, kInstance, std::move(cgroup), std::move(shim_environment)});
    ASSERT_TRUE(opened) << opened.error().message;
    launcher_ = std::move(*opened);
  }

  [[nodiscard]] std::string path(const std::string& name) const { return dir_ + "/" + name; }

  LaunchSpec spec(std::vector<Command> commands) {
    LaunchSpec spec;
    spec.attempt = {next_attempt_++};
    spec.job = {1};
    spec.commands = std::move(commands);
    spec.environment = {"PATH=/usr/local/bin:/usr/bin:/bin",
                        "BERTH_ATTEMPT=" + attempt_marker(kInstance, spec.attempt)};
    spec.cwd = dir_;
    spec.log = path(std::to_string(spec.attempt.value) + ".log");
    spec.grace = Millis(300);
    return spec;
  }
  LaunchSpec shell(const std::string& script) { return spec({{true, {script}}}); }

  Shim start(const LaunchSpec& spec) {
    const Status prepared = launcher_->prepare(spec.attempt);
    EXPECT_TRUE(prepared) << prepared.error().message;
    auto shim = launcher_->spawn(spec);
    EXPECT_TRUE(shim) << shim.error().message;
    return shim ? std::move(*shim) : Shim{};
  }

  static bool ended_within(const Shim& shim, Millis patience) {
    pollfd wait{shim.pidfd.get(), POLLIN, 0};
    return ::poll(&wait, 1, static_cast<int>(patience.count())) == 1;
  }

  Recovery finish(AttemptId attempt, const Shim& shim, Millis patience = Millis(60'000)) {
    if (!shim.pidfd || !ended_within(shim, patience)) {
      ADD_FAILURE() << "the supervisor did not start, or did not end";
      return recovery::Ending{};
    }
    Recovery outcome = launcher_->collect(attempt, shim);
    for (int i = 0; i < 100 && std::holds_alternative<recovery::Ending>(outcome); ++i) {
      std::this_thread::sleep_for(Millis(20));
      outcome = launcher_->collect(attempt, shim);
    }
    return outcome;
  }

  Verdict run(const LaunchSpec& spec) {
    const Shim shim = start(spec);
    return verdict(finish(spec.attempt, shim));
  }

  static Verdict verdict(const Recovery& outcome) {
    if (const auto* ended = std::get_if<recovery::Ended>(&outcome)) {
      return ended->verdict;
    }
    ADD_FAILURE() << "no verdict, but alternative " << outcome.index();
    return {};
  }

  static std::string slurp(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
  [[nodiscard]] std::string log_of(const LaunchSpec& spec) const { return slurp(spec.log); }

  template <class Condition>
  static bool eventually(Condition holds, Millis patience = Millis(30'000)) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > until) {
        return false;
      }
      std::this_thread::sleep_for(Millis(5));
    }
    return true;
  }

  /// Processes that execute this very file, however they call themselves.
  static std::vector<pid_t> processes_of(const std::string& program) {
    std::vector<pid_t> found;
    for (const ProcStat& process : list_processes()) {
      std::error_code error;
      const auto exe =
          std::filesystem::read_symlink("/proc/" + std::to_string(process.pid) + "/exe", error);
      if (!error && exe == program) {
        found.push_back(process.pid);
      }
    }
    return found;
  }

  std::string dir_;
  std::unique_ptr<Launcher> launcher_;
  std::vector<std::pair<std::uint64_t, Shim>> running_;  ///< ended at the latest by TearDown
  std::uint64_t next_attempt_ = 1;
};

}  // namespace berth::test
