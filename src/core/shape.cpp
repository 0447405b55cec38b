#include "core/shape.hpp"

#include "base/assert.hpp"

namespace berth {

ShapeId Shapes::add(const ShapeKeyView& key, bool& fresh) {
  const auto known = ids_.find(key);
  fresh = known == ids_.end();
  if (!fresh) {
    ++at(known->second).jobs;
    return known->second;
  }
  if (free_.empty()) {
    shapes_.emplace_back();
    free_.push_back(ShapeId{shapes_.size()});
  }
  const ShapeId id = free_.back();
  free_.pop_back();
  at(id) = Shape{{key.request, key.queue, key.batch}, {}, 1};
  ids_.emplace(at(id).key, id);
  return id;
}

void Shapes::release(ShapeId id) {
  Shape& shape = at(id);
  BERTH_ASSERT(shape.jobs > 0);
  if (--shape.jobs == 0) {
    ids_.erase(shape.key);
    shape = {};
    free_.push_back(id);
  }
}

}  // namespace berth
