#pragma once
// Small files of "key value" lines, replaced whole and read whole.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simgpu/text.hpp"

namespace berth::simgpu {

/// The content of a small file, of /proc too; nullopt when it cannot be read.
[[nodiscard]] std::optional<std::string> read_file(const std::string& path);

/// Replaces the file through a hidden temporary next to it. Callers hold the directory's lock.
[[nodiscard]] Outcome<void> replace_file(const std::string& path, std::string_view content);

/// "<what> '<path>': <strerror(errno)>".
[[nodiscard]] std::string errno_text(std::string_view what, const std::string& path);

/// An exclusive flock, held while the object lives.
class FileLock {
 public:
  [[nodiscard]] static Outcome<FileLock> acquire(const std::string& path);
  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

/// The lines of a file: the first word of each is its key, the rest its value.
class Lines {
 public:
  Lines() = default;
  explicit Lines(std::string_view text);

  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, std::uint64_t value);

  [[nodiscard]] std::optional<std::string> text(std::string_view key) const;
  [[nodiscard]] std::optional<std::uint64_t> number(std::string_view key) const;
  [[nodiscard]] std::string join() const;

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
};

}  // namespace berth::simgpu
