#include "core/ready_index.hpp"

#include <iterator>
#include <utility>

#include "base/assert.hpp"

namespace berth {

namespace {

std::optional<OrderKey> first_of(const std::map<ShapeId, std::set<OrderKey>>& by_shape,
                                 ShapeId shape) {
  const auto jobs = by_shape.find(shape);
  return jobs == by_shape.end() ? std::nullopt : std::optional(*jobs->second.begin());
}

}  // namespace

void ReadyIndex::add(LaneKey key, Gate gate, ShapeId shape, OrderKey order) {
  auto [it, fresh] = lanes_.try_emplace(key);
  Lane& lane = it->second;
  if (fresh) {
    lane.gate = gate;
    if (key.batch) {
      batch_lanes_[key.batch].insert(key);
    }
  }
  const auto before = first_of(lane.by_shape, shape);
  const bool inserted = lane.by_shape[shape].insert(order).second;
  BERTH_ASSERT(inserted);
  replace_first(key, lane, shape, before, first_of(lane.by_shape, shape));
}

void ReadyIndex::remove(LaneKey key, ShapeId shape, OrderKey order) {
  const auto it = lanes_.find(key);
  BERTH_ASSERT(it != lanes_.end());
  Lane& lane = it->second;
  const auto before = first_of(lane.by_shape, shape);
  const auto jobs = lane.by_shape.find(shape);
  BERTH_ASSERT(jobs != lane.by_shape.end() && jobs->second.erase(order) == 1);
  if (jobs->second.empty()) {
    lane.by_shape.erase(jobs);
  }
  replace_first(key, lane, shape, before, first_of(lane.by_shape, shape));
  if (lane.by_shape.empty()) {
    lanes_.erase(it);
    if (key.batch) {
      const auto lanes = batch_lanes_.find(key.batch);
      lanes->second.erase(key);
      if (lanes->second.empty()) {
        batch_lanes_.erase(lanes);
      }
    }
  }
}

void ReadyIndex::set_gate(LaneKey key, Gate gate) {
  const auto it = lanes_.find(key);
  if (it == lanes_.end() || it->second.gate == gate) {
    return;
  }
  Lane& lane = it->second;
  const Gate before = std::exchange(lane.gate, gate);
  if ((before == Gate::hidden) != (gate == Gate::hidden)) {
    auto& fronts = fronts_[key.queue];
    for (const auto& [shape, jobs] : lane.by_shape) {
      const Front front{*jobs.begin(), key, shape};
      gate == Gate::hidden ? void(fronts.erase(front)) : void(fronts.insert(front));
    }
    if (fronts.empty()) {
      fronts_.erase(key.queue);
    }
  }
  if (serial_.contains(key.queue)) {
    refresh_serial(key.queue);
  } else if (gate == Gate::open) {
    show_all(key, lane);
  } else if (before == Gate::open) {
    hide_all(key, lane);
  }
}

void ReadyIndex::set_serial(QueueId queue, bool serial) {
  if (serial == serial_.contains(queue)) {
    return;
  }
  const auto shown = serial_.find(queue);
  if (shown != serial_.end()) {
    if (shown->second) {
      hide(*shown->second);
    }
    serial_.erase(shown);
  }
  for (const LaneKey key : lanes_of(queue)) {
    const Lane& lane = lanes_.at(key);
    if (lane.gate == Gate::open) {
      serial ? hide_all(key, lane) : show_all(key, lane);
    }
  }
  if (serial) {
    serial_.emplace(queue, std::nullopt);
    refresh_serial(queue);
  }
}

const OrderKey* ReadyIndex::next(LaneKey key, ShapeId shape, OrderKey order) const {
  const auto it = lanes_.find(key);
  if (it == lanes_.end() || serial_.contains(key.queue)) {
    return nullptr;
  }
  const auto jobs = it->second.by_shape.find(shape);
  if (jobs == it->second.by_shape.end()) {
    return nullptr;
  }
  const auto after = jobs->second.upper_bound(order);
  return after == jobs->second.end() ? nullptr : &*after;
}

const OrderKey* ReadyIndex::first(QueueId queue) const {
  const auto fronts = fronts_.find(queue);
  return fronts == fronts_.end() ? nullptr : &fronts->second.begin()->key;
}

const OrderKey* ReadyIndex::last(QueueId queue) const {
  const OrderKey* best = nullptr;
  for (auto it = lanes_.lower_bound({queue, {}, 0}); it != lanes_.end() && it->first.queue == queue;
       ++it) {
    if (it->second.gate == Gate::hidden) {
      continue;
    }
    for (const auto& [shape, jobs] : it->second.by_shape) {
      if (best == nullptr || *best < *jobs.rbegin()) {
        best = &*jobs.rbegin();
      }
    }
  }
  return best;
}

const OrderKey* ReadyIndex::before(QueueId queue, OrderKey key) const {
  const OrderKey* best = nullptr;
  for (auto it = lanes_.lower_bound({queue, {}, 0}); it != lanes_.end() && it->first.queue == queue;
       ++it) {
    if (it->second.gate == Gate::hidden) {
      continue;
    }
    for (const auto& [shape, jobs] : it->second.by_shape) {
      const auto after = jobs.lower_bound(key);
      if (after != jobs.begin() && (best == nullptr || *best < *std::prev(after))) {
        best = &*std::prev(after);
      }
    }
  }
  return best;
}

std::uint64_t ReadyIndex::ahead(QueueId queue, OrderKey key, std::uint64_t most) const {
  std::uint64_t count = 0;
  for (auto it = lanes_.lower_bound({queue, {}, 0}); it != lanes_.end() && it->first.queue == queue;
       ++it) {
    if (it->second.gate == Gate::hidden) {
      continue;
    }
    for (const auto& [shape, jobs] : it->second.by_shape) {
      for (auto job = jobs.begin(); job != jobs.end() && *job < key; ++job) {
        if (++count >= most) {
          return most;
        }
      }
    }
  }
  return count;
}

const OrderKey* ReadyIndex::second(LaneKey key, ShapeId shape) const {
  const auto it = lanes_.find(key);
  if (it == lanes_.end()) {
    return nullptr;
  }
  const auto jobs = it->second.by_shape.find(shape);
  return jobs == it->second.by_shape.end() || jobs->second.size() < 2
             ? nullptr
             : &*std::next(jobs->second.begin());
}

std::vector<LaneKey> ReadyIndex::lanes_of(QueueId queue) const {
  std::vector<LaneKey> result;
  for (auto it = lanes_.lower_bound({queue, {}, 0}); it != lanes_.end() && it->first.queue == queue;
       ++it) {
    result.push_back(it->first);
  }
  return result;
}

std::vector<LaneKey> ReadyIndex::lanes_of(BatchId batch) const {
  std::vector<LaneKey> result;
  if (const auto it = batch_lanes_.find(batch); it != batch_lanes_.end()) {
    result.assign(it->second.begin(), it->second.end());
  }
  return result;
}

void ReadyIndex::replace_first(LaneKey key, const Lane& lane, ShapeId shape,
                               const std::optional<OrderKey>& before,
                               const std::optional<OrderKey>& after) {
  if (before == after || lane.gate == Gate::hidden) {
    return;
  }
  const bool shown = lane.gate == Gate::open && !serial_.contains(key.queue);
  auto& fronts = fronts_[key.queue];
  if (before) {
    const Front front{*before, key, shape};
    fronts.erase(front);
    if (shown) {
      hide(front);
    }
  }
  if (after) {
    const Front front{*after, key, shape};
    fronts.insert(front);
    if (shown) {
      show(front);
    }
  }
  if (fronts.empty()) {
    fronts_.erase(key.queue);
  }
  if (serial_.contains(key.queue)) {
    refresh_serial(key.queue);
  }
}

void ReadyIndex::show(const Front& front) {
  heads_[front.shape].insert({front.key, front.lane});
}

void ReadyIndex::hide(const Front& front) {
  const auto heads = heads_.find(front.shape);
  BERTH_ASSERT(heads != heads_.end() && heads->second.erase({front.key, front.lane}) == 1);
  if (heads->second.empty()) {
    heads_.erase(heads);
  }
}

void ReadyIndex::show_all(LaneKey key, const Lane& lane) {
  for (const auto& [shape, jobs] : lane.by_shape) {
    show({*jobs.begin(), key, shape});
  }
}

void ReadyIndex::hide_all(LaneKey key, const Lane& lane) {
  for (const auto& [shape, jobs] : lane.by_shape) {
    hide({*jobs.begin(), key, shape});
  }
}

void ReadyIndex::refresh_serial(QueueId queue) {
  const auto fronts = fronts_.find(queue);
  std::optional<Front> wanted;
  if (fronts != fronts_.end() && lanes_.at(fronts->second.begin()->lane).gate == Gate::open) {
    wanted = *fronts->second.begin();
  }
  std::optional<Front>& shown = serial_.at(queue);
  if (shown == wanted) {
    return;
  }
  if (shown) {
    hide(*shown);
  }
  if (wanted) {
    show(*wanted);
  }
  shown = wanted;
}

}  // namespace berth
