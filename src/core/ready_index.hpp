#pragma once
// Which queued job to look at next, without ever walking the backlog.
//
// Jobs stand in lanes. A lane is the part of a queue that belongs to one owner and batch; inside a
// lane jobs are ordered by priority, turn and rank, and grouped by shape.
// One lane more, the express lane, belongs to no queue: it is never closed and comes before all
// others. Only the head of each (lane, shape) of a lane with room is exposed; of a serial lane only
// its very first job is. So a decision looks at one job per shape that does not fit, plus one per
// job it starts.

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.hpp"

namespace berth {

/// The ranks of two jobs that stand where they were submitted are at least this far apart.
inline constexpr std::int64_t kRankGap = std::int64_t{1} << 20;

/// Where a job stands that nobody has moved: by submission.
[[nodiscard]] constexpr std::int64_t usual_rank(JobId id) {
  return static_cast<std::int64_t>(id.value) * kRankGap;
}

struct OrderKey {
  bool ordinary = true;    ///< false: in the express lane
  bool fresh = true;       ///< false: has waited so long that it goes before the others
  std::int64_t since = 0;  ///< of those, who has waited longest goes first
  std::int32_t priority = 5;
  std::int64_t turn = 0;  ///< by the rule `order`; 0 for fifo
  std::int64_t rank = 0;
  JobId job;
  friend auto operator<=>(const OrderKey&, const OrderKey&) = default;
};

struct LaneKey {
  QueueId queue;
  BatchId batch;  ///< none: of jobs without a batch
  std::uint32_t owner = 0;
  friend auto operator<=>(const LaneKey&, const LaneKey&) = default;
};

class ReadyIndex {
 public:
  struct Head {
    OrderKey key;
    LaneKey lane;
    friend auto operator<=>(const Head&, const Head&) = default;
  };
  using Heads = std::set<Head>;

  enum class Gate : std::uint8_t {
    open,
    closed,  ///< its jobs stand in line, but none may start
    hidden,  ///< as if its jobs were not there
  };

  /// `gate` matters only when this is the lane's first job; later set_gate decides.
  void add(LaneKey lane, Gate gate, ShapeId shape, OrderKey key);
  void remove(LaneKey lane, ShapeId shape, OrderKey key);

  /// Only an open lane exposes anything. Lanes without jobs do not exist and need no closing.
  void set_gate(LaneKey lane, Gate gate);
  /// Of a serial queue only the very first job is exposed, whichever lane it stands in.
  void set_serial(QueueId queue, bool serial);

  /// Exposed heads by shape. Shapes without any are absent.
  [[nodiscard]] const std::map<ShapeId, Heads>& heads() const { return heads_; }
  /// The job that follows `key` in the same lane and shape, if the queue is not serial.
  [[nodiscard]] const OrderKey* next(LaneKey lane, ShapeId shape, OrderKey key) const;
  /// The first job of a queue, over all its lanes and shapes.
  [[nodiscard]] const OrderKey* first(QueueId queue) const;
  /// The last one.
  [[nodiscard]] const OrderKey* last(QueueId queue) const;
  /// The last one of a queue that comes before `key`.
  [[nodiscard]] const OrderKey* before(QueueId queue, OrderKey key) const;
  /// How many of a queue come before `key`, counted no further than `most`.
  [[nodiscard]] std::uint64_t ahead(QueueId queue, OrderKey key, std::uint64_t most) const;
  /// The one behind the first of a lane and shape, whatever the queue exposes.
  [[nodiscard]] const OrderKey* second(LaneKey lane, ShapeId shape) const;
  /// The first job of every lane and shape that is not hidden, and how many there are.
  template <class Each>
  void for_each(const Each& each) const {
    for (const auto& [key, lane] : lanes_) {
      if (lane.gate != Gate::hidden) {
        for (const auto& [shape, jobs] : lane.by_shape) {
          each(*jobs.begin(), jobs.size());
        }
      }
    }
  }
  [[nodiscard]] std::vector<LaneKey> lanes_of(QueueId queue) const;
  [[nodiscard]] std::vector<LaneKey> lanes_of(BatchId batch) const;

 private:
  struct Lane {
    Gate gate = Gate::open;
    std::map<ShapeId, std::set<OrderKey>> by_shape;
  };
  struct Front {
    OrderKey key;
    LaneKey lane;
    ShapeId shape;
    friend auto operator<=>(const Front&, const Front&) = default;
  };

  /// Of one lane and shape another job is the first, or none any more.
  void replace_first(LaneKey key, const Lane& lane, ShapeId shape,
                     const std::optional<OrderKey>& before, const std::optional<OrderKey>& after);
  void show(const Front& front);
  void hide(const Front& front);
  /// All that an open lane of a queue that is not serial exposes.
  void show_all(LaneKey key, const Lane& lane);
  void hide_all(LaneKey key, const Lane& lane);
  /// Brings what a serial queue exposes in line with its first job.
  void refresh_serial(QueueId queue);

  std::map<LaneKey, Lane> lanes_;
  std::map<BatchId, std::set<LaneKey>> batch_lanes_;
  /// By queue, the first job of every lane and shape that is not hidden: a job comes and goes
  /// without a look at the others.
  std::map<QueueId, std::set<Front>> fronts_;
  std::map<QueueId, std::optional<Front>> serial_;  ///< and what each of them exposes
  std::map<ShapeId, Heads> heads_;
};

}  // namespace berth
