#pragma once
// The directory that the claims of all users are in, as a reader sees it. Whatever lies there may
// have been put there by anybody: nothing in it is followed, waited for or believed unchecked.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "board/board_entry.hpp"

namespace berth {

/// An entry that its owner wrote, and the place it was found in.
struct FoundEntry {
  std::string name;  ///< of the place, within the directory
  BoardEntry entry;
};

class BoardDirectory {
 public:
  /// Where this machine's board is: BERTH_BOARD; else the first of /run/lock and /dev/shm that is
  /// root's, sticky and open to all. nullopt: BERTH_BOARD=off. Not found: no directory will do.
  [[nodiscard]] static Result<std::optional<std::string>> find();
  /// Refuses a directory in which somebody else could take away what is ours.
  [[nodiscard]] static Result<BoardDirectory> open(const std::string& path);

  /// Every valid entry. Others are left out; so are those of a user who has put there more than
  /// anybody needs.
  [[nodiscard]] Result<std::vector<FoundEntry>> read() const;
  /// The place that is already there for an instance of this user's.
  [[nodiscard]] std::optional<std::string> place_of(std::uint32_t uid,
                                                    const std::string& instance) const;
  /// One of them, as it is now; none: gone or not valid.
  [[nodiscard]] std::optional<BoardEntry> read_one(const std::string& name) const;
  /// Whether the daemon that wrote it lives: its socket answers, and by the owner's hand.
  [[nodiscard]] bool answers(const FoundEntry& found) const;

  /// A directory that is that user's and in which nobody else can write; else closed.
  [[nodiscard]] Fd open_place(const std::string& name, std::uint32_t owner) const;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  BoardDirectory(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  /// The names that could be places.
  [[nodiscard]] Result<std::vector<std::string>> names() const;

  std::string path_;
  Fd fd_;
};

/// "berth-UID-INSTANCE", possibly with ".SUFFIX" if somebody else was there first.
[[nodiscard]] std::string board_place_name(std::uint32_t uid, const std::string& instance);
struct BoardPlace {
  std::uint32_t uid = 0;
  std::string instance;
};
[[nodiscard]] std::optional<BoardPlace> parse_board_place(std::string_view name);

inline constexpr const char* kBoardFile = "claims";
inline constexpr const char* kBoardSocket = "alive";

}  // namespace berth
