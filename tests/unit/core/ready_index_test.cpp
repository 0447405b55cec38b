#include "core/ready_index.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace berth {
namespace {

using Gate = ReadyIndex::Gate;

constexpr ShapeId kSmall{1};
constexpr ShapeId kLarge{2};

LaneKey lane(std::uint64_t queue, std::uint64_t batch = 0) {
  return {QueueId{queue}, BatchId{batch}, 0};
}
OrderKey job(std::uint64_t id, std::int32_t priority = 5) {
  return {true, true, 0, priority, 0, usual_rank(JobId{id}), JobId{id}};
}

/// Exposed jobs, shape by shape: "1:4,7 2:5".
std::string exposed(const ReadyIndex& index) {
  std::string out;
  for (const auto& [shape, heads] : index.heads()) {
    out += fmt::format("{}{}:", out.empty() ? "" : " ", shape.value);
    const char* comma = "";
    for (const ReadyIndex::Head& head : heads) {
      out += fmt::format("{}{}", comma, head.key.job.value);
      comma = ",";
    }
  }
  return out;
}

TEST(ReadyIndex, ExposesTheFirstOfEachLaneAndShape) {
  ReadyIndex index;
  index.add(lane(1), Gate::open, kSmall, job(1));
  index.add(lane(1), Gate::open, kSmall, job(2));
  index.add(lane(1), Gate::open, kLarge, job(3));
  index.add(lane(2), Gate::open, kSmall, job(4));
  EXPECT_EQ(exposed(index), "1:1,4 2:3");
}

TEST(ReadyIndex, TakesJobsOfManyShapesIntoASerialQueueWithoutALookAtTheOthers) {
  constexpr std::uint64_t kJobs = 50'000;  // each looked at for each other one: minutes
  ReadyIndex index;
  index.set_serial(QueueId{1}, true);
  for (std::uint64_t id = 1; id <= kJobs; ++id) {
    index.add(lane(1), Gate::open, ShapeId{id}, job(id));
  }
  for (std::uint64_t id = 1; id < kJobs; ++id) {
    ASSERT_EQ(index.first(QueueId{1})->job, JobId{id});
    index.remove(lane(1), ShapeId{id}, job(id));
  }
  EXPECT_EQ(exposed(index), fmt::format("{0}:{0}", kJobs));
}

TEST(ReadyIndex, PutsPriorityBeforeSubmission) {
  ReadyIndex index;
  index.add(lane(1), Gate::open, kSmall, job(1));
  index.add(lane(1), Gate::open, kSmall, job(2, 1));
  EXPECT_EQ(exposed(index), "1:2");
  EXPECT_EQ(index.next(lane(1), kSmall, job(2, 1))->job, JobId{1});
  EXPECT_EQ(index.next(lane(1), kSmall, job(1)), nullptr);
}

TEST(ReadyIndex, RemovingAHeadExposesTheNext) {
  ReadyIndex index;
  index.add(lane(1), Gate::open, kSmall, job(1));
  index.add(lane(1), Gate::open, kSmall, job(2));
  index.remove(lane(1), kSmall, job(1));
  EXPECT_EQ(exposed(index), "1:2");
  index.remove(lane(1), kSmall, job(2));
  EXPECT_EQ(exposed(index), "");
  EXPECT_TRUE(index.lanes_of(QueueId{1}).empty());
}

TEST(ReadyIndex, AClosedLaneExposesNothing) {
  ReadyIndex index;
  index.add(lane(1), Gate::closed, kSmall, job(1));
  index.add(lane(2), Gate::open, kSmall, job(2));
  EXPECT_EQ(exposed(index), "1:2");
  index.set_gate(lane(1), Gate::open);
  EXPECT_EQ(exposed(index), "1:1,2");
  index.set_gate(lane(2), Gate::closed);
  EXPECT_EQ(exposed(index), "1:1");
}

TEST(ReadyIndex, ALaneThatBecomesEmptyForgetsThatItWasClosed) {
  ReadyIndex index;
  index.add(lane(1), Gate::closed, kSmall, job(1));
  index.remove(lane(1), kSmall, job(1));
  index.add(lane(1), Gate::open, kSmall, job(2));
  EXPECT_EQ(exposed(index), "1:2");
}

TEST(ReadyIndex, OfASerialQueueOnlyTheVeryFirstIsExposed) {
  ReadyIndex index;
  index.set_serial(QueueId{1}, true);
  index.add(lane(1), Gate::open, kSmall, job(2));
  index.add(lane(1), Gate::open, kLarge, job(1));
  index.add(lane(1, 7), Gate::open, kSmall, job(3));
  EXPECT_EQ(exposed(index), "2:1");
  EXPECT_EQ(index.next(lane(1), kLarge, job(1)), nullptr);
  index.remove(lane(1), kLarge, job(1));
  EXPECT_EQ(exposed(index), "1:2");
  index.add(lane(1, 7), Gate::open, kLarge, job(4, 0));
  EXPECT_EQ(exposed(index), "2:4");
  index.set_serial(QueueId{1}, false);
  EXPECT_EQ(exposed(index), "1:2,3 2:4");
}

TEST(ReadyIndex, AClosedLaneBlocksTheSerialQueueWhoseFirstJobStandsInIt) {
  ReadyIndex index;
  index.set_serial(QueueId{1}, true);
  index.add(lane(1, 7), Gate::closed, kSmall, job(1));
  index.add(lane(1), Gate::open, kSmall, job(2));
  EXPECT_EQ(exposed(index), "");
  EXPECT_EQ(index.first(QueueId{1})->job, JobId{1});
  index.set_gate(lane(1, 7), Gate::open);
  EXPECT_EQ(exposed(index), "1:1");
}

TEST(ReadyIndex, KnowsTheLanesOfABatchWhileTheyHaveJobs) {
  ReadyIndex index;
  index.add(lane(1, 7), Gate::open, kSmall, job(1));
  index.add(lane(2, 7), Gate::open, kSmall, job(2));
  index.add(lane(2, 8), Gate::open, kSmall, job(3));
  EXPECT_EQ(index.lanes_of(BatchId{7}), (std::vector{lane(1, 7), lane(2, 7)}));
  index.remove(lane(1, 7), kSmall, job(1));
  EXPECT_EQ(index.lanes_of(BatchId{7}), std::vector{lane(2, 7)});
  index.remove(lane(2, 7), kSmall, job(2));
  EXPECT_TRUE(index.lanes_of(BatchId{7}).empty());
}

TEST(ReadyIndex, RankGoesBeforeSubmission) {
  ReadyIndex index;
  const OrderKey moved{true, true, 0, 5, 0, usual_rank(JobId{2}) - 1, JobId{9}};
  index.add(lane(1), Gate::open, kSmall, job(1));
  index.add(lane(1), Gate::open, kSmall, job(2));
  index.add(lane(1, 7), Gate::open, kLarge, moved);
  EXPECT_EQ(index.before(QueueId{1}, job(2))->job, JobId{9});
  EXPECT_EQ(index.before(QueueId{1}, job(1)), nullptr);
  EXPECT_EQ(index.first(QueueId{1})->job, JobId{1});
  EXPECT_EQ(index.last(QueueId{1})->job, JobId{2});
  EXPECT_EQ(index.last(QueueId{2}), nullptr);
  index.set_serial(QueueId{1}, true);
  index.remove(lane(1), kSmall, job(1));
  EXPECT_EQ(exposed(index), "2:9");
}

TEST(ReadyIndex, TheExpressLaneComesFirstAndBelongsToNoQueue) {
  ReadyIndex index;
  const OrderKey express{false, true, 0, 9, 0, usual_rank(JobId{4}), JobId{4}};
  index.set_serial(QueueId{1}, true);
  index.add(lane(1), Gate::open, kSmall, job(1, 0));
  index.add(lane(0), Gate::open, kSmall, express);
  EXPECT_EQ(exposed(index), "1:4,1");
  index.set_gate(lane(1), Gate::closed);
  EXPECT_EQ(exposed(index), "1:4");
  EXPECT_EQ(index.first(QueueId{1})->job, JobId{1});
  EXPECT_EQ(index.lanes_of(QueueId{1}), std::vector{lane(1)});
}

/// What the index promises, computed by looking at everything every time.
class Reference {
 public:
  using Place = std::tuple<LaneKey, ShapeId, OrderKey>;
  std::set<Place> jobs;
  std::map<LaneKey, Gate> gates;  ///< of lanes with jobs
  std::set<QueueId> serial;

  [[nodiscard]] std::optional<OrderKey> first(QueueId queue) const {
    std::optional<OrderKey> least;
    for (const auto& [key, shape, order] : jobs) {
      if (key.queue == queue && gates.at(key) != Gate::hidden && (!least || order < *least)) {
        least = order;
      }
    }
    return least;
  }

  [[nodiscard]] std::map<ShapeId, ReadyIndex::Heads> heads() const {
    std::map<std::pair<LaneKey, ShapeId>, OrderKey> least;
    for (const auto& [key, shape, order] : jobs) {
      auto& kept = least.try_emplace({key, shape}, order).first->second;
      kept = std::min(kept, order);
    }
    std::map<ShapeId, ReadyIndex::Heads> out;
    for (const auto& [where, order] : least) {
      const auto& [key, shape] = where;
      if (gates.at(key) == Gate::open &&
          (!serial.contains(key.queue) || first(key.queue) == order)) {
        out[shape].insert({order, key});
      }
    }
    return out;
  }
};

TEST(ReadyIndex, AgreesWithAReferenceThatLooksAtEverything) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&random](std::size_t n) { return random() % n; };
    constexpr std::array gates = {Gate::open, Gate::open, Gate::closed, Gate::hidden};
    ReadyIndex index;
    Reference reference;
    std::uint64_t last = 0;
    for (int step = 0; step < 400; ++step) {
      const LaneKey where = lane(1 + below(3), below(3));
      switch (below(6)) {
        case 0:
        case 1:
        case 2: {
          const ShapeId shape{1 + below(3)};
          const OrderKey key = job(++last, static_cast<std::int32_t>(below(3)));
          const Gate gate =
              reference.gates.try_emplace(where, gates[below(gates.size())]).first->second;
          index.add(where, gate, shape, key);
          reference.jobs.emplace(where, shape, key);
          break;
        }
        case 3:
          if (!reference.jobs.empty()) {
            const auto it = std::next(reference.jobs.begin(),
                                      static_cast<std::ptrdiff_t>(below(reference.jobs.size())));
            const auto [from, shape, key] = *it;
            reference.jobs.erase(it);
            index.remove(from, shape, key);
            if (std::ranges::none_of(reference.jobs,
                                     [&](const auto& j) { return std::get<0>(j) == from; })) {
              reference.gates.erase(from);
            }
          }
          break;
        case 4: {
          const Gate gate = gates[below(gates.size())];
          index.set_gate(where, gate);
          if (const auto it = reference.gates.find(where); it != reference.gates.end()) {
            it->second = gate;
          }
          break;
        }
        default: {
          const bool serial = below(2) == 0;
          index.set_serial(where.queue, serial);
          serial ? void(reference.serial.insert(where.queue))
                 : void(reference.serial.erase(where.queue));
        }
      }
      ASSERT_EQ(index.heads(), reference.heads()) << "step " << step;
      const OrderKey* first = index.first(where.queue);
      ASSERT_EQ(first ? std::optional(*first) : std::nullopt, reference.first(where.queue));
    }
  }
}

}  // namespace
}  // namespace berth
