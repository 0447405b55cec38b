#include "daemon/settings_watch.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include <gtest/gtest.h>

namespace berth {
namespace {

namespace fs = std::filesystem;

/// A watch on a file of its own. Each step is taken when the one before has had its effect.
class SettingsWatchTest : public testing::Test {
 protected:
  SettingsWatchTest() {
    char name[] = "/tmp/berth-watch-XXXXXX";
    dir_ = ::mkdtemp(name);
    file_ = dir_ / "berth.yaml";
  }
  ~SettingsWatchTest() override {
    watch_.reset();
    readers_.reset();
    fs::remove_all(dir_);
  }

  void begin(const std::string& text) {
    write(text);
    watch_ = std::make_unique<SettingsWatch>(
        loop_, *readers_, file_.string(), read_settings(file_.string()),
        SettingsWatch::Hooks{[this](const Settings::Values& values, const auto& then) {
                               applied_.push_back(values);
                               then();
                               go_on();
                             },
                             [this](const std::string& problem) {
                               problems_.push_back(problem);
                               go_on();
                             }});
    watch_->start();
  }
  void write(const std::string& text) const { std::ofstream(file_) << text; }
  void go_on() {
    if (step_ == steps_.size()) {
      loop_.stop();
    } else {
      steps_[step_++]();
    }
  }
  /// Until the last step has had its effect; a minute at most.
  void run(std::vector<std::function<void()>> steps) {
    steps_ = std::move(steps);
    const auto patience = loop_.after(Millis(60'000), [this] { loop_.stop(); });
    // Behind the watch's own first reading, which must not meet a file that is half written.
    loop_.post([this] { watch_->reload([this] { go_on(); }); });
    loop_.run();
  }

  fs::path dir_, file_;
  Loop loop_;
  std::unique_ptr<Worker> readers_ = std::make_unique<Worker>("reader");
  std::unique_ptr<SettingsWatch> watch_;
  std::vector<Settings::Values> applied_;
  std::vector<std::string> problems_;
  std::vector<std::function<void()>> steps_;
  std::size_t step_ = 0;
};

TEST_F(SettingsWatchTest, AChangedFileIsTakenOver) {
  begin("gpu_left: 1\n");
  run({[this] { write("gpu_left: 2\nkeep_jobs: 7\n"); }});
  ASSERT_EQ(applied_.size(), 1U);
  EXPECT_EQ(applied_[0], (Settings::Values{{"gpu_left", "2"}, {"keep_jobs", "7"}}));
}

TEST_F(SettingsWatchTest, AFileInItsPlaceAndItsLossAreNoticed) {
  begin("gpu_left: 1\n");
  run({[this] {
         std::ofstream(dir_ / "draft") << "gpu_left: 3\n";
         fs::rename(dir_ / "draft", file_);
       },
       [this] { fs::remove(file_); }});
  ASSERT_EQ(applied_.size(), 2U);
  EXPECT_EQ(applied_[0], (Settings::Values{{"gpu_left", "3"}}));
  EXPECT_TRUE(applied_[1].empty());
}

TEST_F(SettingsWatchTest, ABrokenFileChangesNothingUntilItIsRepaired) {
  begin("gpu_left: 1\n");
  run({[this] { write("gpu_left: 2\nkeep_jobs: many\n"); },
       [this] {
         EXPECT_TRUE(applied_.empty());
         EXPECT_EQ(watch_->settings().problems, problems_);
         EXPECT_EQ(watch_->settings().values, (Settings::Values{{"gpu_left", "1"}}));
         write("gpu_left: 1\n");
       }});
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_TRUE(problems_[0].starts_with("berth.yaml:2: keep_jobs: expected"));
  EXPECT_TRUE(problems_[0].ends_with("the rules stay as they were")) << problems_[0];
  EXPECT_EQ(applied_.size(), 1U);
  EXPECT_TRUE(watch_->settings().problems.empty());
}

TEST_F(SettingsWatchTest, ReadingTheSameAgainDoesNothing) {
  begin("gpu_left: 1\n");
  run({[this] { watch_->reload([this] { go_on(); }); }});
  EXPECT_TRUE(applied_.empty());
}

}  // namespace
}  // namespace berth
