// The handshake holds in every interleaving, and each of its guards is needed.

#include <gtest/gtest.h>

#include "handshake_model.hpp"

namespace berth::model {
namespace {

std::string show(const Exploration& exploration) {
  std::string text = exploration.violation + "\n";
  for (const std::string& step : exploration.trace) {
    text += "  " + step + "\n";
  }
  return text;
}

TEST(HandshakeModel, HoldsInEveryInterleaving) {
  const Exploration all = explore({});
  EXPECT_EQ(all.violation, "") << show(all);
  // A model that has lost its steps would hold as well.
  EXPECT_GT(all.states, 1000U);
  EXPECT_GT(all.transitions, all.states);
  RecordProperty("states", static_cast<int>(all.states));
  RecordProperty("transitions", static_cast<int>(all.transitions));
}

struct Removal {
  const char* name;
  bool Guards::* guard;
  const char* violation;
};

class HandshakeGuard : public ::testing::TestWithParam<Removal> {};

TEST_P(HandshakeGuard, IsNeeded) {
  Guards guards;
  guards.*GetParam().guard = false;
  const Exploration found = explore(guards);
  EXPECT_EQ(found.violation, GetParam().violation) << show(found);
}

INSTANTIATE_TEST_SUITE_P(
    Guards, HandshakeGuard,
    ::testing::Values(
        Removal{"record_before_commit", &Guards::record_before_commit,
                "a crash of the daemon alone cost the job its attempt"},
        Removal{"commit_before_spawn", &Guards::commit_before_spawn, "the command ran twice"},
        Removal{"lock_inherited", &Guards::lock_inherited, "START and REVOKED in one record"},
        Removal{"start_before_run", &Guards::start_before_run,
                "a process of an attempt outlives its end"},
        Removal{"recovery_takes_lock", &Guards::recovery_takes_lock,
                "START and REVOKED in one record"},
        Removal{"missing_is_lost", &Guards::missing_is_lost, "the command ran twice"},
        Removal{"boot_is_checked", &Guards::boot_is_checked, "the command ran twice"},
        Removal{"survivors_are_ended", &Guards::survivors_are_ended,
                "a process of an attempt outlives its end"},
        Removal{"child_keeps_lock", &Guards::child_keeps_lock,
                "a process of an attempt outlives its end"},
        Removal{"commit_before_forget", &Guards::commit_before_forget, "an exit code was lost"}),
    [](const ::testing::TestParamInfo<Removal>& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace berth::model
