#include "api/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace berth {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// Sets a variable for one test.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~ScopedEnv() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }
  ScopedEnv(const ScopedEnv&) = delete;
  ScopedEnv& operator=(const ScopedEnv&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

class PathsTest : public ::testing::Test {
 protected:
  PathsTest() {
    std::string name = (fs::temp_directory_path() / "berth-paths-XXXXXX").native();
    dir_ = ::mkdtemp(name.data());
  }
  ~PathsTest() override { fs::remove_all(dir_); }
  static mode_t mode(const fs::path& path) {
    struct stat st{};
    EXPECT_EQ(::stat(path.c_str(), &st), 0) << path;
    return st.st_mode & 07777U;
  }
  fs::path dir_;
};

TEST_F(PathsTest, BerthDirDecidesAndIsMadeAbsolute) {
  const ScopedEnv env("BERTH_DIR", "some/./where/");
  const auto paths = find_instance();
  ASSERT_TRUE(paths.has_value());
  EXPECT_EQ(paths->dir, fs::current_path() / "some/where");
  EXPECT_EQ(paths->socket, fs::current_path() / "some/where/sock");
}

TEST_F(PathsTest, WithoutItTheStateDirectoryIsUsedPerHost) {
  const ScopedEnv env("BERTH_DIR", nullptr);
  const ScopedEnv home("HOME", dir_.c_str());
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  {
    const ScopedEnv xdg("XDG_STATE_HOME", "relative/is/ignored");
    if (!on_network_file_system(dir_)) {
      EXPECT_EQ(find_instance()->dir, dir_ / ".local/state/berth" / host);
    }
  }
  const ScopedEnv xdg("XDG_STATE_HOME", (dir_ / "xdg").c_str());
  if (on_network_file_system(dir_)) {
    EXPECT_THAT(find_instance()->dir, ::testing::StartsWith("/var/tmp/berth-"));
  } else {
    EXPECT_EQ(find_instance()->dir, dir_ / "xdg/berth" / host);
  }
}

TEST_F(PathsTest, PrepareMakesPrivateDirectories) {
  const auto paths = instance_in(dir_ / "a/b");
  ASSERT_TRUE(prepare_instance(*paths).has_value());
  ASSERT_TRUE(prepare_instance(*paths).has_value());  // again is fine
  for (const auto* sub : {"a", "a/b", "a/b/attempts", "a/b/logs"}) {
    EXPECT_EQ(mode(dir_ / sub), 0700U) << sub;
  }
}

TEST_F(PathsTest, PrepareRefusesWhatOthersCouldChange) {
  const auto paths = instance_in(dir_);
  ::chmod(dir_.c_str(), 0770);
  const Status open = prepare_instance(*paths);
  ASSERT_FALSE(open.has_value());
  EXPECT_EQ(open.error().code, ErrorCode::refused);
  EXPECT_THAT(open.error().message, HasSubstr("chmod 700"));
  ::chmod(dir_.c_str(), 0755);  // readable is no danger: what is inside is private
  EXPECT_TRUE(prepare_instance(*paths).has_value());
}

TEST_F(PathsTest, PrepareRefusesSomebodyElsesDirectory) {
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(dir_.c_str(), 65534, 65534), 0);
    const Status status = prepare_instance(*instance_in(dir_));
    ASSERT_FALSE(status.has_value());
    EXPECT_THAT(status.error().message, HasSubstr("belongs to user 65534"));
  } else {
    const Status status = prepare_instance(*instance_in("/"));
    ASSERT_FALSE(status.has_value());
    EXPECT_THAT(status.error().message, HasSubstr("belongs to user 0"));
  }
}

TEST_F(PathsTest, PrepareRefusesLinksInPlaceOfItsOwnDirectories) {
  fs::create_directory(dir_ / "target");
  fs::create_directory_symlink(dir_ / "target", dir_ / "logs");
  const Status status = prepare_instance(*instance_in(dir_));
  ASSERT_FALSE(status.has_value());
  EXPECT_THAT(status.error().message, HasSubstr("not a directory"));
}

TEST_F(PathsTest, AFileInTheWayIsNamed) {
  const Status status = prepare_instance(*instance_in("/proc/self/cmdline/x"));
  ASSERT_FALSE(status.has_value());
  EXPECT_THAT(status.error().message, HasSubstr("/proc/self/cmdline"));
}

}  // namespace
}  // namespace berth
