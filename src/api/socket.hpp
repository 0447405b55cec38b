#pragma once
// Unix sockets by path, whatever the length of the path.

#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace berth {

/// A non-blocking listening socket of mode 0600. Replaces a socket file, but nothing else.
[[nodiscard]] Result<Fd> listen_unix(const std::string& path);

/// A connected, non-blocking socket; `unavailable` when nobody listens.
[[nodiscard]] Result<Fd> connect_unix(const std::string& path);

}  // namespace berth
