#pragma once
// A copy of a working tree as it is now, from which jobs run however it is edited later.

#include <map>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "base/units.hpp"

namespace berth {

struct SnapshotLimit {
  Bytes bytes = 512 * kMiB;
  std::uint64_t files = 100'000;

  /// As many files in proportion.
  [[nodiscard]] static SnapshotLimit of(Bytes bytes);
};

/// The snapshot of one submission, in a directory of its own with one copy for each tree. It is
/// removed again unless it is kept; while this lives, nobody takes it for forgotten.
class TreeSnapshot {
 public:
  /// Makes `<snapshots>/<key>`.
  [[nodiscard]] static Result<TreeSnapshot> begin(const std::string& snapshots,
                                                  const std::string& key);
  TreeSnapshot(TreeSnapshot&& other) noexcept;
  TreeSnapshot& operator=(TreeSnapshot&&) = delete;
  TreeSnapshot(const TreeSnapshot&) = delete;
  TreeSnapshot& operator=(const TreeSnapshot&) = delete;
  ~TreeSnapshot();

  /// Where `dir` is in the copy of its tree, which is made if it has not been yet.
  [[nodiscard]] Result<std::string> place_of(const std::string& dir, const SnapshotLimit& limit);

  /// The tops of the trees that have been copied.
  [[nodiscard]] std::vector<std::string> roots() const;
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
  /// The jobs are submitted: from now on it goes with them.
  void keep() { kept_ = true; }

 private:
  TreeSnapshot(std::string dir, Fd lock) : dir_(std::move(dir)), lock_(std::move(lock)) {}

  std::string dir_;
  Fd lock_;
  bool kept_ = false;
  std::map<std::string, std::string> copies_;  ///< root → its copy
  std::map<std::string, std::string> places_;  ///< directory → its place
  std::vector<std::string> warnings_;
};

}  // namespace berth
