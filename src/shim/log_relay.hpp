#pragma once
// The log berth names: the payload writes into a pipe, and this writes what comes out to the file.
// A full disk costs output, never the job: what does not fit is counted and noted in the log.
//
// With a limit, its first half is the head. What comes after that goes to tail files of a quarter
// each, of which the last two are kept; at the end they are appended to the head, behind a line
// that says how much is missing between. Whenever this is interrupted, head and tail files are
// whole.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace berth::shim {

class LogRelay {
 public:
  /// Opens file and pipe; 0 or an errno. A disk without room for the file is no error. A limit of 0
  /// is none.
  int open(std::string_view path, std::uint64_t limit);

  [[nodiscard]] int read_end() const { return read_end_; }
  [[nodiscard]] int write_end() const { return write_end_; }

  /// Moves what is there, without waiting.
  void pump();
  /// Moves all that is left, notes what was lost and makes one file of it. The writers are gone or
  /// do not matter.
  void finish();

  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  /// Left out between head and tail.
  [[nodiscard]] std::uint64_t cut() const { return cut_; }

 private:
  bool move_some();
  void keep(std::string_view bytes);
  void next_part();
  [[nodiscard]] std::size_t write_out(std::string_view bytes);
  void note_losses();
  bool open_file();
  bool open_head();
  bool open_tail();
  void put_together();
  bool append_part(std::string_view suffix);

  std::string_view path_;
  std::uint64_t limit_ = 0;
  std::uint64_t room_ = 0;       ///< of the file being written
  std::uint64_t used_ = 0;       ///< of its room
  std::uint64_t at_ = 0;         ///< position in all that was written, kept or not
  std::uint64_t head_size_ = 0;  ///< once there is a tail
  std::uint64_t from_ = 0;       ///< where the tail file being written begins
  std::uint64_t seq_ = 0;        ///< its number
  std::uint64_t lost_ = 0;
  std::uint64_t lost_noted_ = 0;
  std::uint64_t cut_ = 0;
  int file_ = -1;  ///< what is written to: head or tail
  int head_ = -1;  ///< while a tail is written
  int read_end_ = -1;
  int write_end_ = -1;
  bool in_tail_ = false;
  bool at_line_start_ = true;
  bool head_ends_line_ = true;
};

}  // namespace berth::shim
