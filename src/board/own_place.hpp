#pragma once
// The place of one's own on the board: a directory with the claims and the socket that shows that
// their owner lives.

#include <cstdint>
#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "board/board_directory.hpp"

namespace berth {

class OwnPlace {
 public:
  /// Makes nothing yet. The directory must outlive it.
  OwnPlace(const BoardDirectory& directory, std::uint32_t uid, std::string instance);

  /// Replaces what stands there in one instant; without claims, takes it away. After an error
  /// what stood there before still does.
  [[nodiscard]] Status publish(const BoardEntry& entry);
  /// Whether what was last published is gone: somebody tidied up.
  [[nodiscard]] bool lost() const;
  /// Takes everything away.
  void leave();

 private:
  [[nodiscard]] Status enter();
  [[nodiscard]] Status take_place();
  [[nodiscard]] Status listen();
  [[nodiscard]] Status replace(const std::string& text) const;
  /// Closes connections of those who asked whether we live; being let in was the answer.
  void see_off() const;

  const BoardDirectory* directory_;
  std::uint32_t uid_;
  std::string instance_;
  std::string name_;
  Fd place_;
  Fd socket_;
  bool published_ = false;
};

}  // namespace berth
