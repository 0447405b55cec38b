#include "gpu/process_facts.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace berth {
namespace {

/// A made-up /proc.
class ProcTree : public ::testing::Test {
 protected:
  ProcTree() {
    std::string path = ::testing::TempDir() + "berth-proc-XXXXXX";
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    root_ = path;
  }
  ~ProcTree() override { std::filesystem::remove_all(root_); }

  void add(unsigned pid, unsigned parent, const std::string& name = "python") const {
    const std::filesystem::path folder = root_ / std::to_string(pid);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "stat")
        << pid << " (" << name << ") S " << parent << " 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 "
        << pid * 100 << " 1 2 3\n";
    std::ofstream(folder / "status") << "Name:\t" << name << "\nUid:\t1000\t0\t0\t0\nGid:\t5\n";
    std::ofstream(folder / "comm") << name << "\n";
  }

  std::filesystem::path root_;
};

TEST(ProcessAge, CountsFromItsStart) {
  const auto ticks = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  EXPECT_EQ(age_of(0, Millis(5000)), Millis(5000));
  EXPECT_EQ(age_of(3 * ticks + ticks / 2, Millis(5000)), Millis(1500));
  EXPECT_EQ(age_of(6 * ticks, Millis(5000)), Millis(0)) << "started since the clock was read";
}

TEST(ProcessStatTest, FindsTheEndOfAnyName) {
  const std::string tail = " S 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 1 2\n";
  const ProcessStat expected{7, 4242};
  for (const char* name : {"python", "a b", "evil) S 1 1 1", "))))", "", "line\nbreak"}) {
    EXPECT_EQ(parse_process_stat("12 (" + std::string(name) + ")" + tail), expected) << name;
  }
}

TEST(ProcessStatTest, RefusesWhatIsNotWhole) {
  const std::string whole = "12 (x) S 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242";
  EXPECT_TRUE(parse_process_stat(whole));
  for (std::size_t length = 0; length + 4 < whole.size(); ++length) {
    EXPECT_FALSE(parse_process_stat(std::string_view(whole).substr(0, length))) << length;
  }
  EXPECT_FALSE(parse_process_stat("12 (x) S seven 1 1 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 4242 1"));
}

TEST_F(ProcTree, ReadsOwnerNameAndStart) {
  add(500, 400, "my) job");
  const auto facts = ProcessReader(root_).read(500);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->uid, 1000U) << "the real user, not the effective one";
  EXPECT_EQ(facts->name, "my) job");
  EXPECT_EQ(facts->stat, (ProcessStat{400, 50'000}));
  EXPECT_FALSE(ProcessReader(root_).read(501));
}

TEST_F(ProcTree, FollowsParentsToTheTop) {
  add(500, 400);
  add(400, 300);
  add(300, 1);
  add(1, 0);
  ProcessReader reader(root_);
  EXPECT_EQ(reader.ancestors(500), (std::vector<std::uint32_t>{400, 300, 1}));
  EXPECT_EQ(reader.ancestors(1), std::vector<std::uint32_t>{});
  EXPECT_EQ(reader.ancestors(999), std::vector<std::uint32_t>{});
}

TEST_F(ProcTree, EndsWhereAParentIsGoneOrParentsGoInCircles) {
  add(500, 400);
  add(600, 700);
  add(700, 600);
  ProcessReader reader(root_);
  EXPECT_EQ(reader.ancestors(500), (std::vector<std::uint32_t>{400}));
  EXPECT_EQ(reader.ancestors(600).size(), 64U);
}

TEST(ProcessReaderTest, ReadsThisProcess) {
  const auto self = static_cast<std::uint32_t>(::getpid());
  char old_name[17] = {};
  ::prctl(PR_GET_NAME, &old_name[0]);
  ::prctl(PR_SET_NAME, "x) R 1 (y");
  ProcessReader reader;
  const auto facts = reader.read(self);
  ::prctl(PR_SET_NAME, &old_name[0]);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->name, "x) R 1 (y");
  EXPECT_EQ(facts->uid, ::getuid());
  EXPECT_EQ(facts->stat.parent, static_cast<std::uint32_t>(::getppid()));
  EXPECT_EQ(reader.ancestors(self).front(), static_cast<std::uint32_t>(::getppid()));
}

}  // namespace
}  // namespace berth
