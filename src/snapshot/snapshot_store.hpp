#pragma once
// Where an instance keeps its snapshots, and how they go again.
//
//   <snapshots>/<key of the submission>/<name of the tree>/…   the copy
//   <snapshots>/<key of the submission>/.origin                 its tree and the original, a line
//   each

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace berth {

[[nodiscard]] inline std::string snapshots_in(const std::string& instance_dir) {
  return instance_dir + "/snapshots";
}

struct StoredSnapshot {
  std::string key;
  std::uint32_t owner = 0;  ///< who submitted it
  bool abandoned = false;   ///< nobody makes it just now, and it is not of the last minute
};
[[nodiscard]] std::vector<StoredSnapshot> stored_snapshots(const std::string& snapshots);

/// Removes it with all that is in it; what cannot be removed stays for the next time.
void remove_snapshot(const std::string& snapshots, const std::string& key);

/// The directory that `dir` is a snapshot of; none: it is none.
[[nodiscard]] std::optional<std::string> origin_of(const std::string& snapshots,
                                                   const std::string& dir);

}  // namespace berth
