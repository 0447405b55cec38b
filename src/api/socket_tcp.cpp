#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "api/socket.hpp"

namespace berth {
namespace {

constexpr int kBacklog = 256;
constexpr int kConnectPatienceMs = 10'000;

/// An address of either family.
union Address {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

struct Numeric {
  Address address{};
  socklen_t size = 0;
};

Result<Numeric> numeric(const std::string& text, std::uint16_t port) {
  Numeric found;
  if (::inet_pton(AF_INET, text.c_str(), &found.address.v4.sin_addr) == 1) {
    found.address.v4.sin_family = AF_INET;
    found.address.v4.sin_port = htons(port);
    found.size = sizeof found.address.v4;
    return found;
  }
  found.address = {};
  if (::inet_pton(AF_INET6, text.c_str(), &found.address.v6.sin6_addr) == 1) {
    found.address.v6.sin6_family = AF_INET6;
    found.address.v6.sin6_port = htons(port);
    found.size = sizeof found.address.v6;
    return found;
  }
  return fail(ErrorCode::invalid,
              fmt::format("'{}' is not an address; write one as 127.0.0.1 or ::1", text));
}

Result<Fd> new_socket(int family) {
  Fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) {
    return fail_errno("cannot create a socket", errno);
  }
  return fd;
}

/// 0, or why the connection could not be made.
int connect_within(int fd, const addrinfo& to) {
  if (::connect(fd, to.ai_addr, to.ai_addrlen) == 0) {
    return 0;
  }
  if (errno != EINPROGRESS) {
    return errno;
  }
  pollfd wait{fd, POLLOUT, 0};
  if (::poll(&wait, 1, kConnectPatienceMs) != 1) {
    return ETIMEDOUT;
  }
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

Result<Fd> listen_tcp(const std::string& address, std::uint16_t port) {
  TRY_ASSIGN(const Numeric where, numeric(address, port));
  TRY_ASSIGN(Fd fd, new_socket(where.address.any.sa_family));
  const int yes = 1;
  // Connections of a daemon that has ended must not keep the next one from its port.
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(fd.get(), &where.address.any, where.size) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    const int error = errno;
    if (error == EADDRINUSE) {
      return fail(ErrorCode::conflict, fmt::format("port {} of {} is taken", port, address));
    }
    if (error == EACCES) {
      return fail(ErrorCode::refused,
                  fmt::format("port {} is for the administrator; choose one above 1023", port));
    }
    if (error == EADDRNOTAVAIL) {
      return fail(ErrorCode::invalid, fmt::format("{} is no address of this machine", address));
    }
    return fail_errno(fmt::format("cannot listen on {} port {}", address, port), error);
  }
  return fd;
}

std::uint16_t port_of(int socket) {
  Address address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, &address.any, &size) != 0) {
    return 0;
  }
  return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

int family_of(int socket) {
  Address address{};
  socklen_t size = sizeof address;
  return ::getsockname(socket, &address.any, &size) == 0 ? address.any.sa_family : AF_UNSPEC;
}

Result<Fd> connect_tcp(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const std::string service = fmt::format("{}", port);
  const int failure = ::getaddrinfo(host.c_str(), service.c_str(), &hints, &list);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  if (failure != 0) {
    return fail(ErrorCode::unavailable,
                fmt::format("cannot find '{}': {}", host, ::gai_strerror(failure)));
  }
  int error = ECONNREFUSED;
  for (const addrinfo* at = list; at != nullptr; at = at->ai_next) {
    TRY_ASSIGN(Fd fd, new_socket(at->ai_family));
    error = connect_within(fd.get(), *at);
    if (error == 0) {
      const int yes = 1;
      ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      return fd;
    }
  }
  return fail(ErrorCode::unavailable,
              fmt::format("nobody answers at {} port {}: {}", host, port, std::strerror(error)));
}

bool is_numeric_address(const std::string& text) {
  return numeric(text, 0).has_value();
}

bool is_loopback(const std::string& address) {
  const auto found = numeric(address, 0);
  if (!found) {
    return false;
  }
  if (found->address.any.sa_family == AF_INET) {
    return ntohl(found->address.v4.sin_addr.s_addr) >> 24U == IN_LOOPBACKNET;
  }
  return IN6_IS_ADDR_LOOPBACK(&found->address.v6.sin6_addr);
}

}  // namespace berth
