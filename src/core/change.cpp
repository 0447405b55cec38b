#include "core/change.hpp"

#include <array>
#include <utility>

namespace berth {
namespace {

constexpr std::array kGivesWay = {
    std::pair{GivesWay::preempted, std::string_view("preempted")},
    std::pair{GivesWay::stranger, std::string_view("stranger")},
    std::pair{GivesWay::gpu_lost, std::string_view("gpu_lost")},
    std::pair{GivesWay::parked, std::string_view("parked")},
};

}  // namespace

std::string_view to_string(GivesWay why) {
  for (const auto& [value, name] : kGivesWay) {
    if (value == why) {
      return name;
    }
  }
  return "?";
}

std::optional<GivesWay> gives_way_from(std::string_view text) {
  for (const auto& [value, name] : kGivesWay) {
    if (name == text) {
      return value;
    }
  }
  return std::nullopt;
}

JobSpec changed(JobSpec spec, const change::JobSet& set) {
  spec.name = set.name.value_or(spec.name);
  spec.priority = set.priority.value_or(spec.priority);
  spec.request = set.request.value_or(spec.request);
  spec.retries = set.retries.value_or(spec.retries);
  spec.payload.time_limit = set.time_limit.value_or(spec.payload.time_limit);
  spec.payload.grace = set.grace.value_or(spec.payload.grace);
  spec.request.time = spec.payload.time_limit;
  return spec;
}

}  // namespace berth
