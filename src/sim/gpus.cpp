#include "sim/gpus.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace berth::sim {

using Of = Timeline::Of;

Gpus::Gpus(Timeline& timeline, Random random, Machine& machine, std::vector<Bytes> memory)
    : timeline_(timeline), random_(random), machine_(machine) {
  for (std::size_t i = 0; i < memory.size(); ++i) {
    cards_.push_back({uuid(i), memory[i], {}, false});
    totals_.emplace(cards_.back().uuid, memory[i]);
  }
}

std::string Gpus::uuid(std::size_t card) {
  return fmt::format("GPU-{}", card);
}

void Gpus::look() {
  if (looking_) {
    again_ = true;
    return;
  }
  looking_ = true;
  timeline_.after(random_.millis(0, 5), Of::daemon, [this] { begin(); });
}

void Gpus::begin() {
  // The driver is read somewhere between the beginning and the end of a look.
  GpuSample sample = measure(timeline_.now().mono);
  const bool slow = !calm_ && random_.percent(2);
  const Millis takes = slow ? random_.millis(4'000, 9'000) : random_.millis(2, 250);
  if (random_.percent(50)) {
    timeline_.after(takes, Of::daemon, [this, sample] { finish(sample); });
    return;
  }
  timeline_.after(takes, Of::daemon, [this, begun = sample.begun_mono] { finish(measure(begun)); });
}

void Gpus::finish(const GpuSample& sample) {
  looking_ = false;
  const bool failed = !calm_ && random_.percent(4);
  if (std::exchange(again_, false) && !failed) {
    look();
  }
  if (failed) {
    tell_daemon(event::ProbeFailed{"the driver does not answer"});
  } else {
    tell_daemon(event::Sampled{sample});
  }
}

void Gpus::daemon_started() {
  looking_ = false;
  again_ = false;
  keep_looking();
}

void Gpus::daemon_died() {
  looking_ = false;
  again_ = false;
}

void Gpus::keep_looking() {
  timeline_.after(Millis{1'000}, Of::daemon, [this] {
    if (!looking_ && wanted()) {
      look();
    }
    keep_looking();
  });
}

GpuSample Gpus::measure(Millis begun) {
  GpuSample sample;
  sample.begun_mono = begun;
  sample.driver = "simulated";
  const std::vector<Machine::Use> uses = machine_.gpu_use(totals_);
  for (std::size_t i = 0; i < cards_.size(); ++i) {
    const Card& card = cards_[i];
    if (card.vanished) {
      continue;
    }
    GpuFacts facts;
    facts.uuid = card.uuid;
    facts.index = static_cast<std::uint32_t>(i);
    facts.name = "simulated";
    facts.trouble = card.trouble;
    facts.lost = card.lost;
    if (card.trouble.empty()) {
      Bytes used = 0;
      std::uint32_t load = 0;
      std::vector<GpuProcess> processes;
      for (const Machine::Use& use : uses) {
        if (use.gpu == card.uuid) {
          GpuProcess process;
          process.pid = static_cast<std::uint32_t>(1'000 + use.attempt.value);
          process.attempt = use.attempt;
          process.memory = std::min(use.memory, card.total - used);
          process.utilization = use.utilization;
          used += *process.memory;
          load += use.utilization;
          processes.push_back(std::move(process));
        }
      }
      for (const Stranger& stranger : strangers_) {
        if (stranger.card == i) {
          GpuProcess process;
          process.pid = static_cast<std::uint32_t>(100'000 + stranger.id);
          process.memory = std::min(stranger.memory, card.total - used);
          if (stranger.utilization_known) {
            process.utilization = stranger.utilization;
          }
          used += *process.memory;
          load += stranger.utilization;
          processes.push_back(std::move(process));
        }
      }
      facts.memory_total = card.total;
      facts.memory_used = used;
      facts.memory_free = card.total - used;
      facts.utilization = std::min<std::uint32_t>(load, 100);
      facts.processes = std::move(processes);
      if (!calm_ && random_.percent(2)) {
        facts.processes.reset();
      }
      if (!calm_ && random_.percent(2)) {
        facts.memory_free.reset();
      }
      if (!calm_ && random_.percent(2)) {
        facts.utilization.reset();
      }
    }
    sample.gpus.push_back(std::move(facts));
  }
  return sample;
}

void Gpus::stranger_comes() {
  if (cards_.empty() || calm_) {
    return;
  }
  Stranger stranger;
  stranger.id = ++last_stranger_;
  stranger.card = random_.below(cards_.size());
  stranger.memory = cards_[stranger.card].total / 100 * random_.between(1, 90);
  stranger.utilization =
      static_cast<std::uint32_t>(random_.percent(50) ? random_.below(31) : random_.below(101));
  stranger.utilization_known = random_.percent(80);
  strangers_.push_back(stranger);
  timeline_.after(random_.skewed(100, 20'000), Of::world, [this, id = stranger.id] {
    std::erase_if(strangers_, [id](const Stranger& s) { return s.id == id; });
  });
}

void Gpus::trouble(bool vanish) {
  if (cards_.empty() || calm_) {
    return;
  }
  const std::size_t i = random_.below(cards_.size());
  if (vanish) {
    cards_[i].vanished = true;
  } else {
    cards_[i].lost = random_.percent(50);
    cards_[i].trouble = cards_[i].lost ? "the GPU is lost" : "Unknown Error";
  }
  timeline_.after(random_.skewed(500, 10'000), Of::world, [this, i] { cards_[i].recover(); });
}

void Gpus::calm() {
  calm_ = true;
  strangers_.clear();
  for (Card& card : cards_) {
    card.recover();
  }
}

}  // namespace berth::sim
