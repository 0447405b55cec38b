#include "core/change.hpp"

namespace berth {

JobSpec changed(JobSpec spec, const change::JobSet& set) {
  spec.name = set.name.value_or(spec.name);
  spec.priority = set.priority.value_or(spec.priority);
  spec.request = set.request.value_or(spec.request);
  spec.retries = set.retries.value_or(spec.retries);
  spec.payload.time_limit = set.time_limit.value_or(spec.payload.time_limit);
  spec.payload.grace = set.grace.value_or(spec.payload.grace);
  return spec;
}

}  // namespace berth
