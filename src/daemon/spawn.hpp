#pragma once
// Starting a helper process of the daemon's own, with a pipe each way.

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace berth {

struct Child {
  pid_t pid = -1;
  Fd pidfd;
  Fd to_child;    ///< its standard input
  Fd from_child;  ///< its standard output; non-blocking
};

/// Executes the program behind `program_fd`. Nothing else is inherited: every descriptor of the
/// daemon is close-on-exec.
[[nodiscard]] Result<Child> spawn_with_pipes(int program_fd,
                                             const std::vector<std::string>& arguments,
                                             const std::vector<std::string>& environment);

/// Opens this very program, so that it can be executed again even after the file was replaced.
[[nodiscard]] Result<Fd> open_own_program();

}  // namespace berth
