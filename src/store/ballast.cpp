#include "store/ballast.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fmt/format.h>

#include "base/fd.hpp"

namespace berth {

namespace fs = std::filesystem;

Result<Bytes> free_space(const fs::path& directory) {
  struct statvfs st{};
  if (::statvfs(directory.c_str(), &st) != 0) {
    return fail_errno(fmt::format("cannot look at the file system of {}", directory.native()),
                      errno);
  }
  return Bytes{st.f_bavail} * Bytes{st.f_frsize};
}

Ballast::Ballast(const fs::path& file, Bytes size, Bytes margin, FreeSpace free_space_of)
    : directory_(file.has_parent_path() ? file.parent_path() : fs::path(".")),
      path_(file),
      size_(size),
      margin_(margin),
      free_space_(free_space_of ? std::move(free_space_of) : FreeSpace(free_space)) {
  path_ += ".ballast";
  struct stat st{};
  // What a killed process left behind counts only if all of it is really allocated.
  held_ = size_ > 0 && ::stat(path_.c_str(), &st) == 0 && S_ISREG(st.st_mode) &&
          static_cast<Bytes>(st.st_size) == size_ &&
          static_cast<Bytes>(st.st_blocks) * 512 >= size_;
  check();
}

bool Ballast::release() {
  if (!held_) {
    return false;
  }
  held_ = false;
  const bool gone = ::unlink(path_.c_str()) == 0;
  look(Retake::no);  // it was freed to be used
  return gone;
}

Status Ballast::reserve() {
  const Fd fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) {
    return fail_errno(fmt::format("cannot create {}", path_.native()), errno);
  }
  if (::fallocate(fd.get(), 0, 0, static_cast<off_t>(size_)) == 0) {
    return {};
  }
  if (errno != EOPNOTSUPP && errno != ENOSYS) {
    return fail_errno(fmt::format("cannot reserve {}", path_.native()), errno);
  }
  // Not zeros: some file systems store those as nothing.
  std::vector<char> block(64 * kKiB);
  std::uint64_t word = 0x9e3779b97f4a7c15ULL;
  for (Bytes done = 0; done < size_; done += block.size()) {
    for (char& c : block) {
      word ^= word << 13;
      word ^= word >> 7;
      word ^= word << 17;
      c = static_cast<char>(word);
    }
    const std::size_t wanted = std::min<Bytes>(block.size(), size_ - done);
    if (::write(fd.get(), block.data(), wanted) != static_cast<ssize_t>(wanted)) {
      return fail_errno(fmt::format("cannot reserve {}", path_.native()), errno);
    }
  }
  return {};
}

SpaceReport Ballast::check() {
  look(Retake::yes);
  return report_;
}

void Ballast::look(Retake retake) {
  checked_ = std::chrono::steady_clock::now();
  const Result<Bytes> available = free_space_(directory_);
  if (!available) {
    report_ = {true, available.error().message};
    return;
  }
  // Room for the reserve and the margin at once, or every retake would be followed by a release.
  if (retake == Retake::yes && !held_ && size_ > 0 && *available >= size_ + margin_) {
    held_ = reserve().has_value();
    if (!held_) {
      ::unlink(path_.c_str());
    }
  }
  const bool reserve_missing = size_ > 0 && !held_;
  report_ = {};
  if (reserve_missing || *available < margin_) {
    report_ = {true, fmt::format("{}: {} free; nothing new starts until there are {}",
                                 directory_.native(), format_size(*available),
                                 format_size(margin_ + (reserve_missing ? size_ : 0)))};
  }
}

const SpaceReport& Ballast::check_now_and_then() {
  if (std::chrono::steady_clock::now() - checked_ >= std::chrono::seconds(1)) {
    check();
  }
  return report_;
}

}  // namespace berth
