#pragma once
// What must hold of every State, recomputed the slow and obvious way.

#include <string>

#include "core/state.hpp"

namespace berth::testing {

/// The first counter or index that disagrees with its recomputation, in words; empty if none.
[[nodiscard]] std::string broken_counter(const State& state);

/// The same for what ReadyIndex exposes.
[[nodiscard]] std::string broken_index(const State& state);

/// The same for promises: two whole claims on a card, a share beside a whole one, shares beyond
/// what the card has, an attempt without its claims, a claim without its attempt.
[[nodiscard]] std::string broken_claim(const State& state);

/// The same for limits: more running than a queue, batch, the instance or the host allows, given
/// that limits were never lowered below what ran.
[[nodiscard]] std::string broken_limit(const State& state);

/// Counters, index and claims: what holds whatever happens.
[[nodiscard]] std::string broken_invariant(const State& state);

}  // namespace berth::testing
