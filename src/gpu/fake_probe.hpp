#pragma once
// A probe that says what a test tells it to.

#include <utility>

#include "base/time.hpp"
#include "gpu/probe.hpp"

namespace berth {

/// Healthy idle cards to begin with: "GPU-0", "GPU-1", … of equal memory.
class FakeProbe final : public Probe {
 public:
  explicit FakeProbe(unsigned cards = 0, Bytes memory = 24 * kGiB) {
    for (unsigned index = 0; index < cards; ++index) {
      GpuFacts facts;
      facts.uuid = "GPU-" + std::to_string(index);
      facts.index = index;
      facts.name = "Fake GPU";
      facts.memory_total = facts.memory_free = memory;
      facts.memory_used = 0;
      facts.utilization = 0;
      facts.processes.emplace();
      reply.sample.gpus.push_back(std::move(facts));
    }
  }

  /// Puts a process on a card and takes its memory from what is free.
  void add_process(std::size_t card, GpuProcess process,
                   std::vector<std::uint32_t> ancestors = {}) {
    GpuFacts& facts = reply.sample.gpus.at(card);
    const Bytes memory = process.memory.value_or(0);
    facts.memory_used = facts.memory_used.value_or(0) + memory;
    facts.memory_free = facts.memory_free.value_or(0) - memory;
    reply.ancestors[process.pid] = std::move(ancestors);
    facts.processes->push_back(std::move(process));
  }

  Result<ProbeReply> sample() override {
    ++samples;
    if (error) {
      return std::unexpected(*error);
    }
    reply.sample.begun_mono = mono;
    return reply;
  }

  ProbeReply reply;
  std::optional<Error> error;  ///< given instead of the reply
  Millis mono{0};              ///< when the next sample begins
  unsigned samples = 0;        ///< taken so far
};

}  // namespace berth
