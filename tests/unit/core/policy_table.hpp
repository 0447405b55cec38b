#pragma once
// What the tables of policies share: how a row is checked, and submissions with more than jobs.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "unit/core/world.hpp"

namespace berth::testing {

inline constexpr Millis kSecond{1'000};
inline constexpr Millis kMinute{60'000};
inline constexpr Millis kHour{3'600'000};
inline constexpr Millis kDay{86'400'000};

/// A table is a suite of its own: derive from this, so that rows are run by `expect_row`.
class PolicyTable : public ::testing::TestWithParam<Case> {
 protected:
  static void expect_row(const Case& row) {
    World world;
    row.given(world);
    EXPECT_EQ(world.decide(), row.starts);
    EXPECT_EQ(world.waits(), row.waits);
  }
};

inline std::string row_name(const ::testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

class SubmissionBuilder {
 public:
  explicit SubmissionBuilder(std::vector<JobSpec> jobs) { submit_.jobs = std::move(jobs); }
  operator event::Submit() const { return submit_; }  // NOLINT: a builder is its product

  SubmissionBuilder& owner(std::uint32_t uid) {
    submit_.owner = uid;
    return *this;
  }
  /// Of the batch that this makes it.
  SubmissionBuilder& rule(const std::string& key, std::string value) {
    submit_.batch_rules[key] = std::move(value);
    return *this;
  }
  SubmissionBuilder& named(std::string name) {
    submit_.batch_name = std::move(name);
    return *this;
  }

 private:
  event::Submit submit_;
};

[[nodiscard]] inline SubmissionBuilder a_submission(std::vector<JobSpec> jobs) {
  return SubmissionBuilder(std::move(jobs));
}

}  // namespace berth::testing
