#include "sim/plant.hpp"

#include <array>
#include <utility>

namespace berth::sim {
namespace {

constexpr std::array kPlants = {
    std::pair{Plant::none, std::string_view("none")},
    std::pair{Plant::lost_exit, std::string_view("lost_exit")},
    std::pair{Plant::double_start, std::string_view("double_start")},
    std::pair{Plant::leaked_claim, std::string_view("leaked_claim")},
};

}  // namespace

std::string_view to_string(Plant plant) {
  return kPlants[static_cast<std::size_t>(plant)].second;
}

std::optional<Plant> plant_from(std::string_view text) {
  for (const auto& [plant, name] : kPlants) {
    if (name == text) {
      return plant;
    }
  }
  return std::nullopt;
}

bool leak_claims(const State& state, AttemptId attempt) {
  // The engine's State is no constant, only shown as one; a planted bug is the one thing that may
  // reach into it.
  bool any = false;
  for (Gpu& gpu : const_cast<State&>(state).gpus) {
    for (Claim& claim : gpu.claims) {
      if (claim.attempt == attempt) {
        claim.ended.reset();
        any = true;
      }
    }
  }
  return any;
}

}  // namespace berth::sim
