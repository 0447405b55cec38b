#pragma once
// The cards of the simulated machine, the strangers on them, and the prober that looks.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/event.hpp"
#include "sim/machine.hpp"
#include "sim/random.hpp"
#include "sim/timeline.hpp"

namespace berth::sim {

class Gpus {
 public:
  Gpus(Timeline& timeline, Random random, Machine& machine, std::vector<Bytes> memory);

  /// How the daemon that is up learns of things, and whether it wants to.
  std::function<void(Event)> tell_daemon;
  std::function<bool()> wanted;

  /// The daemon asks for a look that begins from now on.
  void look();
  /// A new daemon looks at its own pace, whatever it is asked for.
  void daemon_started();
  void daemon_died();

  void stranger_comes();
  void trouble(bool vanish);
  /// Strangers leave, cards recover, looks succeed.
  void calm();

  [[nodiscard]] static std::string uuid(std::size_t card);

 private:
  struct Stranger {
    std::uint64_t id = 0;
    std::size_t card = 0;
    Bytes memory = 0;
    std::uint32_t utilization = 0;
    bool utilization_known = true;
  };
  struct Card {
    std::string uuid;
    Bytes total = 0;
    std::string trouble;
    bool lost = false;
    bool vanished = false;
    void recover() {
      trouble.clear();
      lost = vanished = false;
    }
  };

  void begin();
  void finish(const GpuSample& early);
  void keep_looking();
  [[nodiscard]] GpuSample measure(Millis begun);

  Timeline& timeline_;
  Random random_;
  Machine& machine_;
  std::vector<Card> cards_;
  std::map<std::string, Bytes> totals_;
  std::vector<Stranger> strangers_;
  std::uint64_t last_stranger_ = 0;
  bool calm_ = false;
  bool looking_ = false;
  bool again_ = false;  ///< asked for while a look was under way
};

}  // namespace berth::sim
