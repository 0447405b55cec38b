#include "ring/ring_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rapidcheck/gtest.h>
#include <algorithm>
#include <filesystem>
#include <fstream>

namespace berth {
namespace {

namespace fs = std::filesystem;

class RingFileTest : public testing::Test {
 protected:
  RingFileTest() {
    char name[] = "/tmp/berth-ring-XXXXXX";
    dir_ = ::mkdtemp(name);
  }
  ~RingFileTest() override { fs::remove_all(dir_); }

  [[nodiscard]] std::string path() const { return dir_ / "gpus.ring"; }
  RingFile ring(RingShape shape = small()) const {
    auto opened = RingFile::open(path(), shape);
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  static RingShape small() {
    return {{100, 50, 50}, {Millis(1'000), Millis(10'000), Millis(60'000)}};
  }

  fs::path dir_;
};

RingSample sample(std::int64_t second, std::uint64_t key = 7) {
  RingSample out;
  out.time = Millis(second * 1'000);
  out.key = key;
  out.memory = static_cast<Bytes>(second) << 20U;
  out.utilization = static_cast<std::uint32_t>(second % 101);
  out.temperature = 50;
  out.power_mw = 123'456;
  return out;
}

TEST_F(RingFileTest, WhatWasAddedIsReadAgain) {
  RingFile file = ring();
  RingSample unknown;
  unknown.time = Millis(3'000);
  unknown.key = 7;
  ASSERT_TRUE(file.add(sample(1)));
  ASSERT_TRUE(file.add(sample(2, 8)));
  ASSERT_TRUE(file.add(unknown));
  const auto found = file.read(7, Millis(0), Millis(10'000));
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, (std::vector{sample(1), unknown}));
  EXPECT_TRUE(file.read(9, Millis(0), Millis(10'000))->empty());
}

TEST_F(RingFileTest, AnotherProcessFindsItAndGoesOn) {
  for (std::int64_t second = 1; second <= 30; ++second) {
    RingFile file = ring();
    ASSERT_TRUE(file.add(sample(second)));
  }
  const auto found = ring().read(7, Millis(0), Millis(60'000));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), 30U);
}

TEST_F(RingFileTest, ItNeverGrowsAndOlderSamplesAreMeans) {
  RingFile file = ring();
  const auto size = fs::file_size(path());
  for (std::int64_t second = 1; second <= 1'000; ++second) {
    ASSERT_TRUE(file.add(sample(second)));
  }
  EXPECT_EQ(fs::file_size(path()), size);
  const auto found = file.read(7, Millis(0), Millis(1'000'000));
  ASSERT_TRUE(found);
  // The last 100 seconds each, before that every ten seconds of 500, before that every minute.
  EXPECT_EQ(found->back(), sample(1'000));
  const auto fine = std::ranges::count_if(
      *found, [](const RingSample& one) { return one.time > Millis(900'000); });
  EXPECT_EQ(fine, 100);
  EXPECT_LT(found->front().time, Millis(60'000));
  EXPECT_LT(found->size(), 200U);
  EXPECT_TRUE(std::ranges::is_sorted(*found, {}, &RingSample::time));
  // A mean is the mean.
  const auto coarse = file.read(7, Millis(800'000), Millis(809'999));
  ASSERT_EQ(coarse->size(), 1U);
  EXPECT_EQ(coarse->front().time, Millis(804'500));
  EXPECT_NEAR(static_cast<double>(*coarse->front().memory) / (1 << 20), 804.5, 0.1);
}

TEST_F(RingFileTest, NoTwoSamplesOfOneKeyAreCloserThanThePeriod) {
  RingFile file = ring();
  for (int i = 0; i < 50; ++i) {
    RingSample one = sample(5);
    one.time += Millis(i * 100);
    ASSERT_TRUE(file.add(one));
  }
  EXPECT_EQ(file.read(7, Millis(0), Millis(60'000))->size(), 5U);
}

TEST_F(RingFileTest, AFileThatWasCutLosesWhatItHeldThereAndNothingElse) {
  {
    RingFile file = ring();
    for (std::int64_t second = 1; second <= 60; ++second) {
      ASSERT_TRUE(file.add(sample(second)));
    }
  }
  fs::resize_file(path(), 4096 + 20 * 48 + 13);  // in the middle of a record
  RingFile file = ring();
  auto found = file.read(7, Millis(0), Millis(100'000));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), 20U);
  ASSERT_TRUE(file.add(sample(61)));
  EXPECT_EQ(file.read(7, Millis(0), Millis(100'000))->back(), sample(61));
}

TEST_F(RingFileTest, ADamagedRecordIsNotShown) {
  {
    RingFile file = ring();
    for (std::int64_t second = 1; second <= 9; ++second) {
      ASSERT_TRUE(file.add(sample(second)));
    }
  }
  std::fstream out(path(), std::ios::in | std::ios::out | std::ios::binary);
  out.seekp(4096 + 4 * 48 + 30);
  out.put('!');
  out.close();
  const auto found = ring().read(7, Millis(0), Millis(100'000));
  ASSERT_EQ(found->size(), 8U);
  EXPECT_EQ((*found)[4], sample(6));
}

TEST_F(RingFileTest, AFileOfAnotherKindOrShapeBeginsAnew) {
  std::ofstream(path()) << std::string(10'000, 'x');
  RingFile file = ring();
  EXPECT_TRUE(file.read(7, Millis(0), Millis(100'000))->empty());
  ASSERT_TRUE(file.add(sample(1)));
  EXPECT_TRUE(ring({{10, 10, 10}, small().periods}).read(7, Millis(0), Millis(9'999))->empty());
}

TEST_F(RingFileTest, ALinkInItsPlaceIsNotFollowed) {
  std::ofstream(dir_ / "other") << "precious";
  fs::create_symlink(dir_ / "other", path());
  EXPECT_FALSE(RingFile::open(path()));
  EXPECT_EQ(fs::file_size(dir_ / "other"), 8U);
}

TEST_F(RingFileTest, TheUsualShapeHoldsAWeekOfSixteenCards) {
  const RingShape usual;
  const Millis reach = usual.periods[2] * (usual.records[2] / 16);
  EXPECT_GE(reach, std::chrono::hours(24 * 7));
}

RC_GTEST_PROP(ThinOutTest, KeepsOrderAndTheNumberAskedFor, ()) {
  const auto times = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 10'000));
  const auto points = static_cast<std::size_t>(*rc::gen::inRange(1, 50));
  std::vector<RingSample> samples;
  for (const int time : times) {
    samples.push_back(sample(time));
  }
  std::ranges::sort(samples, {}, &RingSample::time);
  const auto few = thin_out(samples, Millis(0), Millis(10'000'000), points);
  RC_ASSERT(few.size() <= std::max<std::size_t>(points, 1) || few.size() == samples.size());
  RC_ASSERT(few.size() <= points);
  RC_ASSERT(few.empty() == samples.empty());
  RC_ASSERT(std::ranges::is_sorted(few, {}, &RingSample::time));
  if (!few.empty()) {
    RC_ASSERT(few.front().time >= samples.front().time);
    RC_ASSERT(few.back().time <= samples.back().time);
  }
}

}  // namespace
}  // namespace berth
