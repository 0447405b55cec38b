#pragma once
// What decides whether a job fits somewhere. Jobs of one shape fit or wait together, which keeps a
// decision independent of the length of the backlog.

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "core/job.hpp"
#include "core/rules.hpp"

namespace berth {

/// Jobs of equal requests that stand under the same rules.
struct ShapeKey {
  Request request;
  QueueId queue;
  BatchId batch;
};

/// The same, of a request that lies elsewhere: a million jobs are looked up without a copy.
struct ShapeKeyView {
  const Request& request;
  QueueId queue;
  BatchId batch;
};

struct ShapeKeyLess {
  using is_transparent = void;
  bool operator()(const auto& a, const auto& b) const {
    return std::tie(a.queue, a.batch, a.request) < std::tie(b.queue, b.batch, b.request);
  }
};

struct Shape {
  ShapeKey key;
  Rules rules;             ///< of all layers
  std::uint64_t jobs = 0;  ///< alive; 0: the place is free
};

/// The shapes of all living jobs. A shape that no job has any more is forgotten.
class Shapes {
 public:
  [[nodiscard]] const Shape& at(ShapeId id) const { return shapes_[id.value - 1]; }
  [[nodiscard]] Shape& at(ShapeId id) { return shapes_[id.value - 1]; }

  /// The shape of one more job. `fresh`: its rules are still to be filled in.
  ShapeId add(const ShapeKeyView& key, bool& fresh);
  void release(ShapeId id);

  template <class Each>
  void for_each(const Each& each) {
    for (const auto& [key, id] : ids_) {
      each(id, at(id));
    }
  }
  template <class Each>
  void for_each(const Each& each) const {
    for (const auto& [key, id] : ids_) {
      each(id, at(id));
    }
  }
  [[nodiscard]] std::size_t size() const { return ids_.size(); }

 private:
  std::vector<Shape> shapes_;  ///< by id - 1
  std::vector<ShapeId> free_;
  std::map<ShapeKey, ShapeId, ShapeKeyLess> ids_;
};

}  // namespace berth
