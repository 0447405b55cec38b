#pragma once
// Samples in a file that never grows: docs/formats/ring.md.
//
// Three rings: every sample of the last hours, means over half a minute of the last day or so,
// means over five minutes of the last week or so. How far back they reach depends on how many
// things are measured; the size of the file does not. Records carry a checksum and their number, so
// one that was cut by a crash, or a file that was shortened, costs what it held and nothing else.
// Nothing is synced: these are pictures of the past, not promises.
//
// Belongs to one thread at a time. May block.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "ring/sample.hpp"

namespace berth {

inline constexpr std::size_t kRingTiers = 3;

struct RingShape {
  /// A week of sixteen cards; 9 MiB.
  std::array<std::uint32_t, kRingTiers> records{65'536, 65'536, 65'536};
  /// Of the first: no two samples of one key are closer. Of the others: over what is the mean.
  std::array<Millis, kRingTiers> periods{Millis(1'000), Millis(30'000), Millis(300'000)};
};

class RingFile {
 public:
  /// A file that is not there, or not one of these, or of another shape, begins anew.
  [[nodiscard]] static Result<RingFile> open(const std::string& path, RingShape shape = {});

  [[nodiscard]] Status add(const RingSample& sample);
  /// In order of time, from the finest ring that reaches back so far.
  [[nodiscard]] Result<std::vector<RingSample>> read(std::uint64_t key, Millis from, Millis to);

 private:
  RingFile(Fd fd, RingShape shape) : fd_(std::move(fd)), shape_(shape) {}

  /// Samples of one key on their way into a mean.
  struct Gathering {
    std::int64_t part = 0;  ///< which stretch of time
    std::vector<RingSample> samples;
  };

  [[nodiscard]] Status find_ends();
  [[nodiscard]] Status write(std::size_t tier, const RingSample& sample);
  [[nodiscard]] Status gather(std::size_t tier, const RingSample& sample);
  [[nodiscard]] Result<std::vector<RingSample>> read_tier(std::size_t tier, std::uint64_t key,
                                                          Millis from, Millis to);
  /// Calls `each` with the records of a ring, from the last in the file to the first.
  template <class Each>
  [[nodiscard]] Status for_each_slot(std::size_t tier, const Each& each);
  [[nodiscard]] std::uint64_t place(std::size_t tier, std::uint64_t slot) const;
  void forget_old(Millis now);

  Fd fd_;
  RingShape shape_;
  std::array<std::uint64_t, kRingTiers> last_{};  ///< the number of the last record; 0: none
  std::map<std::uint64_t, Millis> newest_;        ///< of each key, in the first ring
  std::array<std::map<std::uint64_t, Gathering>, kRingTiers> gathering_;
};

}  // namespace berth
