// Kill reaches everything the attempt has become, and nobody else.

#include <sys/wait.h>

#include "proc/cgroup.hpp"
#include "shim_fixture.hpp"

namespace berth::test {
namespace {

/// How the supervisor finds descendants: by children files, by all of /proc, or with a cgroup.
using Param = std::tuple<std::string, std::string>;

class EscapeTest : public ShimTest, public ::testing::WithParamInterface<Param> {
 protected:
  void SetUp() override {
    ShimTest::SetUp();
    const auto& [technique, way] = GetParam();
    if (way == "cgroup") {
      const auto parent = find_cgroup_parent(kInstance);
      if (!parent) {
        GTEST_SKIP() << "no cgroup may be made here";
      }
      cgroup_ = *parent;
      open_launcher({}, cgroup_);
    } else if (way == "proc") {
      open_launcher({"BERTH_SHIM_SCAN=all"});
    }
    program_ = path("escape");
    bystander_program_ = path("bystander");
    std::filesystem::copy_file(BERTH_ESCAPE_PATH, program_);
    std::filesystem::copy_file(BERTH_ESCAPE_PATH, bystander_program_);
    std::ofstream(path("ready")).close();
    ::chmod(path("ready").c_str(), 0666);
  }
  void TearDown() override {
    if (bystander_ > 0) {
      ::kill(bystander_, SIGKILL);
      ::waitpid(bystander_, nullptr, 0);
    }
    ShimTest::TearDown();
    if (!cgroup_.empty()) {
      ::rmdir(cgroup_.c_str());
    }
  }

  void start_bystanders(AttemptId victim) {
    // One of ours, under no supervisor, and another attempt's, which claims to be the victim's.
    bystander_ = ::fork();
    if (bystander_ == 0) {
      ::execl(bystander_program_.c_str(), "escape", "rest", path("bystander-ready").c_str(),
              nullptr);
      ::_exit(127);
    }
    LaunchSpec other = spec({{false, {bystander_program_, "rest", path("bystander-ready")}}});
    other.environment = {"BERTH_ATTEMPT=" + attempt_marker(kInstance, victim)};
    other.cgroup_parent = cgroup_;
    running_.emplace_back(other.attempt.value, start(other));
    ASSERT_TRUE(eventually([this] { return slurp(path("bystander-ready")).size() == 2; }));
  }

  int expected_ready(const std::string& technique) {
    FILE* out = ::popen((program_ + " " + technique).c_str(), "r");
    int count = 0;
    EXPECT_EQ(std::fscanf(out, "%d", &count), 1);
    ::pclose(out);
    return count;
  }

  std::string program_;
  std::string bystander_program_;
  std::string cgroup_;
  pid_t bystander_ = -1;
};

TEST_P(EscapeTest, NobodySurvivesAndNoInnocentIsHit) {
  const std::string technique = std::get<0>(GetParam());
  LaunchSpec job = spec({{false, {program_, technique, path("ready")}}});
  job.cgroup_parent = cgroup_;
  job.linger = true;  // a leader that leaves does not end the attempt: only the kill does
  start_bystanders(job.attempt);
  const Shim shim = start(job);
  const auto ready = static_cast<std::size_t>(expected_ready(technique));
  ASSERT_TRUE(eventually([&] { return slurp(path("ready")).size() >= ready; }))
      << slurp(path("ready")).size() << " of " << ready << " ready; log: " << log_of(job);

  constexpr Millis kGrace{200};
  const auto asked = std::chrono::steady_clock::now();
  ASSERT_TRUE(launcher_->control(shim, control::Kill{kGrace}));
  // A second suffices on an idle machine; this one may be busy.
  ASSERT_TRUE(ended_within(shim, kGrace + Millis(20'000)));
  const auto took = std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - asked);
  RecordProperty("millis_after_grace", static_cast<int>((took - kGrace).count()));
  EXPECT_EQ(processes_of(program_), std::vector<pid_t>{});
  const Verdict verdict = ShimTest::verdict(finish(job.attempt, shim));
  EXPECT_TRUE(verdict.killed);
  EXPECT_EQ(verdict.message, "killed on request");

  EXPECT_EQ(processes_of(bystander_program_).size(), 2U);
  if (!cgroup_.empty()) {
    EXPECT_FALSE(std::filesystem::exists(cgroup_ + "/a" + std::to_string(job.attempt.value)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Techniques, EscapeTest,
    ::testing::Combine(::testing::Values("double_fork", "new_session", "daemonize", "ignore_term",
                                         "stopped", "fork_bomb", "reparented_tree", "renamed",
                                         "cleared_environment", "closed_descriptors",
                                         "nested_subreaper", "ptrace_stopped", "vfork_child",
                                         "nohup_disown", "hopping", "hopping_sessions",
                                         "own_groups", "dead_main_thread", "multiply_on_term",
                                         "other_user"),
                       ::testing::Values("children", "proc", "cgroup")),
    [](const ::testing::TestParamInfo<Param>& test) {
      return std::get<0>(test.param) + "_by_" + std::get<1>(test.param);
    });

/// The supervisor itself is shot: recovery ends what it leaves behind.
class OrphanTest : public EscapeTest {};

TEST_P(OrphanTest, SurvivorsOfADeadSupervisorAreEndedAndNoInnocentIsHit) {
  const std::string technique = std::get<0>(GetParam());
  LaunchSpec job = spec({{false, {program_, technique, path("ready")}}});
  job.cgroup_parent = cgroup_;
  job.linger = true;
  start_bystanders(job.attempt);
  const Shim shim = start(job);
  const auto ready = static_cast<std::size_t>(expected_ready(technique));
  ASSERT_TRUE(eventually([&] { return slurp(path("ready")).size() >= ready; }));
  ASSERT_FALSE(processes_of(program_).empty());

  ::kill(shim.pid, SIGKILL);
  const Recovery outcome = finish(job.attempt, shim);
  const auto* lost = std::get_if<recovery::Lost>(&outcome);
  ASSERT_NE(lost, nullptr) << outcome.index();
  EXPECT_EQ(lost->verdict.failure, FailureClass::node_lost);
  EXPECT_TRUE(lost->verdict.message.starts_with("its supervisor died")) << lost->verdict.message;
  EXPECT_EQ(processes_of(program_), std::vector<pid_t>{});
  EXPECT_EQ(processes_of(bystander_program_).size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(
    Techniques, OrphanTest,
    ::testing::Combine(::testing::Values("double_fork", "new_session", "daemonize", "ignore_term",
                                         "stopped", "reparented_tree", "renamed", "own_groups",
                                         "nested_subreaper", "closed_descriptors", "nohup_disown"),
                       ::testing::Values("children", "cgroup")),
    [](const ::testing::TestParamInfo<Param>& test) {
      return std::get<0>(test.param) + "_by_" + std::get<1>(test.param);
    });

}  // namespace
}  // namespace berth::test
