#pragma once
// Sockets: unix ones by path, whatever the length of the path, and TCP.

#include <cstdint>
#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace berth {

/// A non-blocking listening socket of mode 0600. Replaces a socket file, but nothing else.
[[nodiscard]] Result<Fd> listen_unix(const std::string& path);

/// A connected, non-blocking socket; `unavailable` when nobody listens.
[[nodiscard]] Result<Fd> connect_unix(const std::string& path);

/// A non-blocking listening socket on a numeric address; port 0: any. `conflict` when the port is
/// taken.
[[nodiscard]] Result<Fd> listen_tcp(const std::string& address, std::uint16_t port);
[[nodiscard]] std::uint16_t port_of(int socket);
[[nodiscard]] int family_of(int socket);

/// A connected, non-blocking socket; looks the name up and may block. `unavailable` when nobody
/// listens.
[[nodiscard]] Result<Fd> connect_tcp(const std::string& host, std::uint16_t port);

[[nodiscard]] bool is_numeric_address(const std::string& text);
/// Whether only this machine can reach the numeric address.
[[nodiscard]] bool is_loopback(const std::string& address);

}  // namespace berth
