#include "core/ready_index.hpp"

#include <iterator>

#include "base/assert.hpp"

namespace berth {

void ReadyIndex::add(LaneKey key, Gate gate, ShapeId shape, OrderKey order) {
  auto [it, fresh] = lanes_.try_emplace(key);
  Lane& lane = it->second;
  if (fresh) {
    lane.gate = gate;
    if (key.batch) {
      batch_lanes_[key.batch].insert(key.queue);
    }
  }
  const bool inserted = lane.by_shape[shape].insert(order).second;
  BERTH_ASSERT(inserted);
  refresh(key, lane, shape);
}

void ReadyIndex::remove(LaneKey key, ShapeId shape, OrderKey order) {
  const auto it = lanes_.find(key);
  BERTH_ASSERT(it != lanes_.end());
  Lane& lane = it->second;
  const auto jobs = lane.by_shape.find(shape);
  BERTH_ASSERT(jobs != lane.by_shape.end() && jobs->second.erase(order) == 1);
  if (jobs->second.empty()) {
    lane.by_shape.erase(jobs);
  }
  refresh(key, lane, shape);
  if (lane.by_shape.empty()) {
    lanes_.erase(it);
    if (key.batch) {
      const auto queues = batch_lanes_.find(key.batch);
      queues->second.erase(key.queue);
      if (queues->second.empty()) {
        batch_lanes_.erase(queues);
      }
    }
  }
}

void ReadyIndex::set_gate(LaneKey key, Gate gate) {
  const auto it = lanes_.find(key);
  if (it == lanes_.end() || it->second.gate == gate) {
    return;
  }
  it->second.gate = gate;
  if (serial_.contains(key.queue)) {
    refresh_queue(key.queue);
  } else {
    refresh_all(key, it->second, nullptr);
  }
}

void ReadyIndex::set_serial(QueueId queue, bool serial) {
  if (serial == serial_.contains(queue)) {
    return;
  }
  if (serial) {
    serial_.insert(queue);
  } else {
    serial_.erase(queue);
  }
  refresh_queue(queue);
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
  const OrderKey* best = nullptr;
  for (auto it = lanes_.lower_bound({queue, {}}); it != lanes_.end() && it->first.queue == queue;
       ++it) {
    if (it->second.gate == Gate::hidden) {
      continue;
    }
    for (const auto& [shape, jobs] : it->second.by_shape) {
      if (!jobs.empty() && (best == nullptr || *jobs.begin() < *best)) {
        best = &*jobs.begin();
      }
    }
  }
  return best;
}

const OrderKey* ReadyIndex::last(QueueId queue) const {
  const OrderKey* best = nullptr;
  for (auto it = lanes_.lower_bound({queue, {}}); it != lanes_.end() && it->first.queue == queue;
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
  for (auto it = lanes_.lower_bound({queue, {}}); it != lanes_.end() && it->first.queue == queue;
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

std::vector<LaneKey> ReadyIndex::lanes_of(QueueId queue) const {
  std::vector<LaneKey> result;
  for (auto it = lanes_.lower_bound({queue, {}}); it != lanes_.end() && it->first.queue == queue;
       ++it) {
    result.push_back(it->first);
  }
  return result;
}

std::vector<LaneKey> ReadyIndex::lanes_of(BatchId batch) const {
  std::vector<LaneKey> result;
  if (const auto it = batch_lanes_.find(batch); it != batch_lanes_.end()) {
    for (const QueueId queue : it->second) {
      result.push_back({queue, batch});
    }
  }
  return result;
}

void ReadyIndex::refresh(LaneKey key, Lane& lane, ShapeId shape) {
  if (serial_.contains(key.queue)) {
    refresh_queue(key.queue);
    return;
  }
  const auto jobs = lane.by_shape.find(shape);
  const bool any = lane.gate == Gate::open && jobs != lane.by_shape.end();
  expose(key, lane, shape, any ? &*jobs->second.begin() : nullptr);
}

void ReadyIndex::refresh_queue(QueueId queue) {
  const OrderKey* only = serial_.contains(queue) ? first(queue) : nullptr;
  for (const LaneKey key : lanes_of(queue)) {
    refresh_all(key, lanes_.at(key), only);
  }
}

void ReadyIndex::refresh_all(LaneKey key, Lane& lane, const OrderKey* serial_first) {
  std::set<ShapeId> shapes;
  for (const auto& [shape, order] : lane.exposed) {
    shapes.insert(shape);
  }
  for (const auto& [shape, jobs] : lane.by_shape) {
    shapes.insert(shape);
  }
  const bool serial = serial_.contains(key.queue);
  for (const ShapeId shape : shapes) {
    const auto jobs = lane.by_shape.find(shape);
    const OrderKey* head = nullptr;
    if (lane.gate == Gate::open && jobs != lane.by_shape.end()) {
      head = &*jobs->second.begin();
      if (serial && head != serial_first) {
        head = nullptr;
      }
    }
    expose(key, lane, shape, head);
  }
}

void ReadyIndex::expose(LaneKey key, Lane& lane, ShapeId shape, const OrderKey* head) {
  const auto old = lane.exposed.find(shape);
  if (old != lane.exposed.end()) {
    if (head != nullptr && old->second == *head) {
      return;
    }
    const auto heads = heads_.find(shape);
    heads->second.erase({old->second, key});
    if (heads->second.empty()) {
      heads_.erase(heads);
    }
    lane.exposed.erase(old);
  }
  if (head != nullptr) {
    heads_[shape].insert({*head, key});
    lane.exposed.emplace(shape, *head);
  }
}

}  // namespace berth
