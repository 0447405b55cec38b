#pragma once
// The log berth names: the payload writes into a pipe, and this writes what comes out to the file.
// A full disk costs output, never the job: what does not fit is counted and noted in the log.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace berth::shim {

class LogRelay {
 public:
  /// Opens file and pipe; 0 or an errno. A disk without room for the file is no error.
  int open(std::string_view path, std::uint64_t limit);

  [[nodiscard]] int read_end() const { return read_end_; }
  [[nodiscard]] int write_end() const { return write_end_; }

  /// Moves what is there, without waiting.
  void pump();
  /// Moves all that is left and notes what was lost. The writers are gone or do not matter.
  void finish();

  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  [[nodiscard]] std::uint64_t cut() const { return cut_; }

 private:
  bool move_some();
  void keep(std::string_view bytes);
  [[nodiscard]] std::size_t write_out(std::string_view bytes);
  void note_losses();
  bool open_file();

  std::string_view path_;
  std::uint64_t limit_ = 0;
  std::uint64_t kept_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t lost_noted_ = 0;
  std::uint64_t cut_ = 0;
  int file_ = -1;
  int read_end_ = -1;
  int write_end_ = -1;
  bool at_line_start_ = true;
};

}  // namespace berth::shim
