#include "base/sharded_map.hpp"

#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(ShardedMapTest, AgreesWithAMap) {
  std::mt19937 random(7);
  ShardedMap<std::uint64_t, int> sharded;
  std::map<std::uint64_t, int> map;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t key = random() % 3'000;
    switch (random() % 4) {
      case 0:
      case 1: {
        const bool fresh = sharded.emplace(key, step).second;
        EXPECT_EQ(fresh, map.emplace(key, step).second);
        break;
      }
      case 2:
        EXPECT_EQ(sharded.erase(key), map.erase(key));
        break;
      default: {
        const auto found = sharded.find(key);
        const auto expected = map.find(key);
        ASSERT_EQ(found == sharded.end(), expected == map.end());
        if (expected != map.end()) {
          EXPECT_EQ(found->second, expected->second);
        }
      }
    }
  }
  EXPECT_EQ(sharded.size(), map.size());
  const std::map<std::uint64_t, int> all(sharded.begin(), sharded.end());
  EXPECT_EQ(all, map);
}

TEST(ShardedMapTest, AnEmptyOneHasNoElements) {
  ShardedMap<std::uint64_t, std::string> map;
  EXPECT_TRUE(map.begin() == map.end());
  EXPECT_TRUE(map.extract(3).empty());
  map[3] = "three";
  EXPECT_EQ(map.extract(3).mapped(), "three");
  EXPECT_TRUE(map.empty());
  EXPECT_TRUE(map.begin() == map.end());
}

}  // namespace
}  // namespace berth
