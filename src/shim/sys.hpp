#pragma once
// The little the supervisor needs of libc and the kernel, without heap, streams or exceptions: its
// memory is paid once per running attempt.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string_view>

#include "proc/proc_stat.hpp"
#include "proc/record_line.hpp"

namespace berth::shim {

[[nodiscard]] std::int64_t now_ms(clockid_t clock);

void close_fd(int& fd);

/// The first `size` bytes of a file; -1 when it cannot be read.
[[nodiscard]] ssize_t read_file(const char* path, char* buffer, std::size_t size);

[[nodiscard]] bool read_stat(pid_t pid, ProcStat& out);

/// Signals exactly the process that was looked at: pidfd first, then its start time again. `second`
/// follows the first signal; 0: none.
void signal_process(const ProcStat& process, int signal, int second = 0);

/// mkdir -p of everything before the last '/'. `path` is restored.
void make_parents(char* path);

/// A path or short text put together in place; what does not fit is cut.
class Text {
 public:
  Text() { buffer_[0] = '\0'; }
  Text& add(std::string_view text);
  Text& add(std::uint64_t number);
  [[nodiscard]] char* c_str() { return buffer_; }
  [[nodiscard]] std::string_view view() const { return {buffer_, size_}; }
  [[nodiscard]] bool cut() const { return cut_; }

 private:
  char buffer_[4200];
  std::size_t size_ = 0;
  bool cut_ = false;
};

/// Appends lines to the attempt's record.
class RecordWriter {
 public:
  explicit RecordWriter(int fd) : fd_(fd) {}

  /// One attempt to write; false when the line is not there in full.
  bool append(RecordLine& line);
  /// For what must not be lost: waits as long as the disk is full.
  void append_surely(RecordLine& line);
  void sync();

 private:
  bool write_line(std::string_view line);

  int fd_;
  bool torn_ = false;
};

/// Crash points for tests, of the supervisor's own environment; the payload never sees it.
void arm_failpoints(char* const* environment);
void failpoint(std::string_view name);

}  // namespace berth::shim
