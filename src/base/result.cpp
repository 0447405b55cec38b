#include "base/result.hpp"

#include <cerrno>
#include <cstring>

namespace berth {

std::unexpected<Error> fail_errno(std::string what, int errno_value) {
  what += ": ";
  what += std::strerror(errno_value);
  const bool full = errno_value == ENOSPC || errno_value == EDQUOT;
  return fail(full ? ErrorCode::no_space : ErrorCode::io, std::move(what));
}

}  // namespace berth
