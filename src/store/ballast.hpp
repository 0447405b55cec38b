#pragma once
// A file that takes up space until there is none: freeing it makes room for the last verdicts.
//
// Belongs to the store's writer thread.

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "base/units.hpp"

namespace berth {

struct SpaceReport {
  bool low = false;
  std::string detail;  ///< "/var/lib/berth: 0 B free; …", empty while there is room
};

class Ballast {
 public:
  using FreeSpace = std::function<Result<Bytes>(const std::filesystem::path& directory)>;

  /// Reserves `size` bytes beside `file` if the disk has them. With size 0 there is no ballast,
  /// only the margin. `free_space` is statvfs unless a test brings its own.
  Ballast(const std::filesystem::path& file, Bytes size, Bytes margin, FreeSpace free_space = {});

  /// Gives the reserve back to the file system. False: it was already gone.
  [[nodiscard]] bool release();

  /// Looks at the file system, and takes the reserve again when there is room for it and the
  /// margin.
  SpaceReport check();
  /// The same, but looks at most once per second.
  const SpaceReport& check_now_and_then();

  [[nodiscard]] bool held() const { return held_; }

 private:
  enum class Retake { yes, no };

  void look(Retake retake);
  [[nodiscard]] Status reserve();

  std::filesystem::path directory_;
  std::filesystem::path path_;
  Bytes size_;
  Bytes margin_;
  FreeSpace free_space_;
  bool held_ = false;
  SpaceReport report_;
  std::chrono::steady_clock::time_point checked_;
};

/// Bytes an ordinary user may still write to the file system of `directory`.
[[nodiscard]] Result<Bytes> free_space(const std::filesystem::path& directory);

}  // namespace berth
