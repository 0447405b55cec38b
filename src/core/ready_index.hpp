#pragma once
// Which queued job to look at next, without ever walking the backlog.
//
// Jobs stand in lanes. A lane is a queue (or the part of a queue that belongs to a batch with a
// limit of its own); inside a lane jobs are ordered by priority, then rank, and grouped by shape.
// One lane more, the express lane, belongs to no queue: it is never closed and comes before all
// others. Only the head of each (lane, shape) of a lane with room is exposed; of a serial lane only
// its very first job is. So a decision looks at one job per shape that does not fit, plus one per
// job it starts.

#include <compare>
#include <cstdint>
#include <map>
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
  bool ordinary = true;  ///< false: in the express lane
  std::int32_t priority = 5;
  std::int64_t rank = 0;
  JobId job;
  friend auto operator<=>(const OrderKey&, const OrderKey&) = default;
};

struct LaneKey {
  QueueId queue;
  BatchId batch;  ///< none unless the batch has a limit; neither: the express lane
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
  [[nodiscard]] std::vector<LaneKey> lanes_of(QueueId queue) const;
  [[nodiscard]] std::vector<LaneKey> lanes_of(BatchId batch) const;

 private:
  struct Lane {
    Gate gate = Gate::open;
    std::map<ShapeId, std::set<OrderKey>> by_shape;
    std::map<ShapeId, OrderKey> exposed;
  };

  /// Brings `heads_` in line with what the lane should expose of one shape, or of all.
  void refresh(LaneKey key, Lane& lane, ShapeId shape);
  void refresh_all(LaneKey key, Lane& lane, const OrderKey* serial_first);
  void refresh_queue(QueueId queue);
  void expose(LaneKey key, Lane& lane, ShapeId shape, const OrderKey* head);

  std::map<LaneKey, Lane> lanes_;
  std::set<QueueId> serial_;
  std::map<BatchId, std::set<QueueId>> batch_lanes_;
  std::map<ShapeId, Heads> heads_;
};

}  // namespace berth
