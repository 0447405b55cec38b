#pragma once
// Long output on a terminal goes through a pager, as people know it from man and git.

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/fd.hpp"
#include "cli/terminal.hpp"

namespace berth::cli {

/// The command that pages: BERTH_PAGER, PAGER, or less if it is installed. Empty: none, because
/// there is none or it is "cat".
[[nodiscard]] std::string pager_command();

/// How many lines of the screen `text` takes, long lines wrapped; stops counting at `enough`.
[[nodiscard]] std::size_t screen_lines(std::string_view text, const Screen& screen,
                                       std::size_t enough);

/// While it lives, what goes to standard output goes to the pager instead; the destructor waits
/// until the user has left it. A pager that is left early is no error: what is written then is
/// lost, as it is meant to be. Does nothing where standard output is no terminal or no pager is
/// wanted.
class Pager {
 public:
  explicit Pager(const Screen& screen);
  ~Pager();
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

  /// Whether the pager has been left: nobody reads on.
  [[nodiscard]] bool left() const;

 private:
  pid_t child_ = -1;
  Fd terminal_;  ///< the standard output of before
};

/// Prints `text`, through a pager if it does not fit the screen.
void print_paged(std::string_view text, const Screen& screen);

}  // namespace berth::cli
