#include "api/idset.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace berth {
namespace {

TEST(IdSetTest, ReadsListsAndRanges) {
  const auto set = IdSet::parse("7, 3,5-9 12-12");
  ASSERT_TRUE(set.has_value());
  EXPECT_EQ(set->to_string(), "3,5-9,12");
  EXPECT_EQ(set->size(), 7U);
  EXPECT_TRUE(set->contains(9));
  EXPECT_FALSE(set->contains(10));
  EXPECT_THAT(*set->expand(), ::testing::ElementsAre(3, 5, 6, 7, 8, 9, 12));
}

TEST(IdSetTest, SaysWhatIsWrong) {
  for (const auto* bad : {"", " , ", "x", "3,", "0", "-3", "3-", "3--5", "1.5", "all,3", "3-4-5",
                          "99999999999999999999"}) {
    if (std::string_view(bad) == "3,") {
      EXPECT_TRUE(IdSet::parse(bad).has_value());
      continue;
    }
    const auto set = IdSet::parse(bad);
    ASSERT_FALSE(set.has_value()) << bad;
    EXPECT_EQ(set.error().code, ErrorCode::invalid);
    EXPECT_THAT(set.error().message, ::testing::HasSubstr("5-9"));
  }
  EXPECT_THAT(IdSet::parse("9-5").error().message, ::testing::HasSubstr("write 5-9"));
}

TEST(IdSetTest, RefusesToExpandTheWholeWorld) {
  const auto set = IdSet::parse("1-18446744073709551615");
  ASSERT_TRUE(set.has_value());
  EXPECT_TRUE(set->contains(42));
  EXPECT_FALSE(set->expand().has_value());
  IdSet top;
  top.add(18446744073709551615ULL);
  top.add(18446744073709551614ULL);
  EXPECT_THAT(*top.expand(), ::testing::SizeIs(2));
}

RC_GTEST_PROP(IdSetProps, behaves_as_a_set_of_numbers, ()) {
  const auto ranges = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(1, 60), rc::gen::inRange(0, 8)));
  RC_PRE(!ranges.empty());
  IdSet set;
  std::set<std::uint64_t> model;
  for (const auto& [first, length] : ranges) {
    const auto begin = static_cast<std::uint64_t>(first);
    const auto end = begin + static_cast<std::uint64_t>(length);
    set.add(begin, end);
    for (auto id = begin; id <= end; ++id) {
      model.insert(id);
    }
  }
  RC_ASSERT(*set.expand() == std::vector(model.begin(), model.end()));
  for (std::uint64_t id = 1; id < 80; ++id) {
    RC_ASSERT(set.contains(id) == model.contains(id));
  }
  RC_ASSERT(*IdSet::parse(set.to_string()) == set);
}

}  // namespace
}  // namespace berth
