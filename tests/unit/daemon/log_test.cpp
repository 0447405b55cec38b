#include "daemon/log.hpp"
#include "base/assert.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/fd.hpp"

namespace berth {
namespace {

namespace fs = std::filesystem;

/// Standard error is a file as long as the test runs.
class LogTest : public ::testing::Test {
 protected:
  LogTest() {
    std::string name = (fs::temp_directory_path() / "berth-daemon-log-XXXXXX").native();
    dir_ = ::mkdtemp(name.data());
    file_ = dir_ / "daemon.log";
    const Fd log(::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));  // NOLINT
    BERTH_ASSERT(log.get() >= 0);
    ::dup2(log.get(), STDERR_FILENO);
    open_log("info");
  }
  ~LogTest() override {
    ::dup2(stderr_.get(), STDERR_FILENO);
    fs::remove_all(dir_);
  }
  static std::string read(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  Fd stderr_{::dup(STDERR_FILENO)};
  fs::path dir_;
  std::string file_;
};

TEST_F(LogTest, ValuesCannotEndTheirLine) {
  EXPECT_EQ(log_value("plain"), "\"plain\"");
  EXPECT_EQ(log_value("a \"b\" c:\\d\n\te\r\x01\x7f"), R"("a \"b\" c:\\d\n\te\r\x01\x7f")");
  EXPECT_EQ(log_value("f\u00fcr"), "\"f\u00fcr\"");
  spdlog::info("event=x why={}", log_value("one\ntwo \"three\""));
  spdlog::error("event=y forgotten=a\nlevel=info event=z");
  spdlog::debug("event=quiet");
  const std::string text = read(file_);
  EXPECT_EQ(std::ranges::count(text, '\n'), 2) << text;
  EXPECT_TRUE(text.starts_with("time=2")) << text;
  EXPECT_NE(text.find(fmt::format(" level=info pid={} event=x why=\"one\\ntwo \\\"three\\\"\"\n",
                                  ::getpid())),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(" level=error "), std::string::npos) << text;
  EXPECT_NE(text.find(" event=y forgotten=a\\nlevel=info event=z\n"), std::string::npos) << text;
}

TEST_F(LogTest, TheFileIsRotatedAndStandardErrorWithIt) {
  rotate_log({file_, 1000, 3});
  for (int i = 0; i < 100; ++i) {
    spdlog::info("event=n number={}", i);
  }
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, "last words\n", 11);
  EXPECT_TRUE(read(file_).ends_with("last words\n"));
  std::string all;
  for (const char* suffix : {".3", ".2", ".1", ""}) {
    const std::string text = read(file_ + suffix);
    EXPECT_GT(text.size(), 0U) << suffix;
    EXPECT_LE(text.size(), 1011U) << suffix;
    struct stat status{};
    ASSERT_EQ(::stat((file_ + suffix).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
    all += text;
  }
  EXPECT_FALSE(fs::exists(file_ + ".4"));
  // The youngest lines, none missing between.
  const auto at = all.find("number=") + 7;
  for (int i = std::atoi(all.c_str() + at); i < 100; ++i) {
    EXPECT_NE(all.find(fmt::format(" number={}\n", i)), std::string::npos) << i;
  }
}

TEST_F(LogTest, AnotherFileIsLeftAlone) {
  const std::string other = dir_ / "other.log";
  std::ofstream(other) << "mine\n";
  rotate_log({other, 10, 3});
  spdlog::info("event=a");
  spdlog::info("event=b");
  EXPECT_EQ(read(other), "mine\n");
  EXPECT_FALSE(fs::exists(other + ".1"));
  EXPECT_FALSE(fs::exists(file_ + ".1"));
}

}  // namespace
}  // namespace berth
