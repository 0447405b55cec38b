#include "daemon/shown_files.hpp"

#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "snapshot/snapshot_store.hpp"

namespace berth {
namespace {

namespace fs = std::filesystem;

bool is_below(const fs::path& path, const fs::path& dir) {
  return std::string_view(path.native()).starts_with((dir / "").native());
}

/// Where it lies, links and all taken away; as it is where nobody can tell.
fs::path real(const fs::path& path) {
  std::error_code unknown;
  auto found = fs::weakly_canonical(path, unknown);
  return unknown ? path : found;
}

}  // namespace

Result<Fd> ShownFiles::open(const std::string& path, EndLink end) const {
  TRY_ASSIGN(Fd file, open_owned(path, owner, end));
  std::error_code unknown;
  const fs::path place = fs::read_symlink(fmt::format("/proc/self/fd/{}", file.get()), unknown);
  const bool of_instance = is_below(place, real(dir)) && !is_below(place, real(logs)) &&
                           !is_below(place, real(snapshots_in(dir)));
  if (unknown || of_instance || is_below(place, "/proc") || is_below(place, "/sys")) {
    return fail(ErrorCode::refused, fmt::format("'{}' is no log", printable(path)));
  }
  return file;
}

}  // namespace berth
