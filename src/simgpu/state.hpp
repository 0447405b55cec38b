#pragma once
// The shared state of a set of simulated GPUs: a directory of small text files.
//
//   driver            what there is and how the "driver" behaves; written last, so a directory
//                     without it is not initialised yet
//   gpus/<index>      one card: its constants and what `berth-simgpu set` changed
//   procs/<pid>-<start>-<index>   what one process uses of one card
//   xids              the XID errors reported so far, if any
//   lock              flock()ed by everybody who writes
//
// Readers take no lock: files only ever appear whole, by rename. A process counts while it is
// alive, judged by its start time as well as its pid, so SIGKILL frees memory at once and a
// reused pid owns nothing.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/text.hpp"
#include "simgpu/topology.hpp"

namespace berth::simgpu {

inline constexpr unsigned kCardsMax = 64;

/// A measured value: computed from the processes, set by hand, or one the driver does not know.
struct Reading {
  enum class Kind { automatic, fixed, unknown };
  Kind kind = Kind::automatic;
  unsigned value = 0;  ///< when fixed

  [[nodiscard]] std::optional<unsigned> resolve(unsigned computed) const;
};

/// The percentages that a card's utilisation had during the last kHistory, oldest first.
struct History {
  Reading::Kind kind = Reading::Kind::automatic;
  std::vector<unsigned> percents;  ///< when fixed; evenly spread
};
inline constexpr std::uint64_t kHistoryUs = 3'000'000;

struct Driver {
  std::string spec;
  unsigned cards = 0;
  std::string version = "550.54.15";
  unsigned cuda = 12040;      ///< 1000 * major + 10 * minor
  unsigned error = 0;         ///< NVML code that every call fails with; 0: none
  std::uint64_t hang_ms = 0;  ///< how long every call takes
  Links links;
  std::optional<std::uint64_t> host_available;  ///< host memory to report; nullopt: this machine's
};

struct Card {
  unsigned index = 0;
  std::string uuid;
  std::string name;
  std::string pci_bus_id;
  std::uint64_t memory = 0;
  std::uint64_t reserved = 0;  ///< of `memory`, by the driver
  bool memory_known = true;
  bool processes_known = true;
  bool process_memory_known = true;
  Reading util;
  Reading temperature;
  Reading power_mw;
  History samples;
  Reading ecc;                ///< uncorrected errors; automatic: 0
  Reading numa;               ///< node; automatic: 0
  unsigned error = 0;         ///< NVML code that calls on this card fails with (15: lost); 0: none
  std::uint64_t hang_ms = 0;  ///< how long every call on this card takes
};

/// What one living process uses of one card.
struct Allocation {
  unsigned pid = 0;
  std::uint64_t start_time = 0;
  std::uint64_t bytes = 0;
  unsigned util = 0;           ///< percent of the card
  std::uint64_t since_us = 0;  ///< since 1970: when `util` became what it is
  bool compute = true;
  bool graphics = false;
};

/// What a card looked like when somebody asked for memory.
struct Grant {
  bool granted = false;
  std::uint64_t free = 0;         ///< before the request
  std::vector<Allocation> users;  ///< before the request
};

class Directory {
 public:
  explicit Directory(std::string path) : path_(std::move(path)) {}

  /// Makes the directory describe `spec`. Keeps one that already does; refuses another's.
  [[nodiscard]] Outcome<void> init(std::string_view spec) const;

  [[nodiscard]] Outcome<Driver> driver() const;
  [[nodiscard]] Outcome<Card> card(unsigned index) const;
  [[nodiscard]] Outcome<std::vector<Card>> cards() const;
  /// The living users of a card, by pid.
  [[nodiscard]] std::vector<Allocation> users(unsigned index) const;

  /// Changes one setting of the driver or of a card; see `settings_help()`.
  [[nodiscard]] Outcome<void> set_driver(std::string_view key, std::string_view value) const;
  [[nodiscard]] Outcome<void> set_card(unsigned index, std::string_view key,
                                       std::string_view value) const;

  /// Adds `more.bytes` to what this process has of the card, and sets its other values. Checked
  /// and written under one lock, so that two processes never get the same memory.
  [[nodiscard]] Outcome<Grant> allocate(unsigned index, const Allocation& more) const;
  /// Gives back everything this process has of the card.
  void release(unsigned index) const;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The keys of `berth-simgpu set`, for its help.
[[nodiscard]] std::string_view settings_help();

/// How two cards are connected: what was set; else cards of one NUMA node share a switch, and
/// others only the system.
[[nodiscard]] Link link_between(const Driver& driver, const Card& one, const Card& other);

/// Microseconds since 1970, as the driver stamps its samples.
[[nodiscard]] std::uint64_t epoch_us();

/// When the process started, in clock ticks since boot; nullopt when it is gone or a zombie.
[[nodiscard]] std::optional<std::uint64_t> start_time_of_living(unsigned pid);

[[nodiscard]] unsigned total_util(const std::vector<Allocation>& users);
[[nodiscard]] std::uint64_t total_bytes(const std::vector<Allocation>& users);

}  // namespace berth::simgpu
