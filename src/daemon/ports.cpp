#include "daemon/ports.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include <fmt/format.h>

#include "base/crc32.hpp"
#include "base/fd.hpp"

namespace berth {
namespace {

constexpr std::uint16_t kFirst = 20'000;
constexpr std::uint16_t kLast = 31'999;
constexpr std::uint16_t kConsole = 29'214;
constexpr std::uint16_t kLowest = 10'000;  ///< below, well-known services live
constexpr std::uint16_t kFewest = 1'000;   ///< a smaller range is not worth looking through
/// Neighbours are left out: who is given a port often uses the next one as well.
constexpr std::uint64_t kStride = 7;

bool can_bind(int family, const sockaddr* address, socklen_t size) {
  const Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // A machine without this family has nobody listening there.
  return !socket || ::bind(socket.get(), address, size) == 0 || errno == EADDRNOTAVAIL;
}

}  // namespace

PortRange usable_ports(std::string_view ephemeral) {
  unsigned low = 32'768;
  const auto begin = ephemeral.find_first_of("0123456789");
  if (begin != std::string_view::npos) {
    ephemeral.remove_prefix(begin);
    std::from_chars(ephemeral.data(), ephemeral.data() + ephemeral.size(), low);
  }
  if (low > kLast) {
    return {kFirst, kLast};
  }
  if (low >= kLowest + kFewest) {
    return {kLowest, static_cast<std::uint16_t>(low - 1)};
  }
  return {kFirst, kLast};  // the kernel gives away nearly all: then looking has to be enough
}

bool is_port_free(std::uint16_t port) {
  sockaddr_in six_less{};
  six_less.sin_family = AF_INET;
  six_less.sin_port = htons(port);
  six_less.sin_addr.s_addr = htonl(INADDR_ANY);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  six.sin6_addr = in6addr_any;
  return can_bind(AF_INET, reinterpret_cast<const sockaddr*>(&six_less), sizeof six_less) &&
         can_bind(AF_INET6, reinterpret_cast<const sockaddr*>(&six), sizeof six);
}

Ports::Ports(PortRange range, std::string_view instance, IsFree is_free)
    : range_(range), offset_(crc32(instance)), is_free_(std::move(is_free)) {}

Result<std::uint16_t> Ports::take(AttemptId attempt) {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t size = std::uint64_t{range_.last} - range_.first + 1;
  const std::uint64_t begin = offset_ + attempt.value * kStride;
  for (std::uint64_t step = 0; step < size; ++step) {
    const auto port = static_cast<std::uint16_t>(range_.first + (begin + step) % size);
    const bool given =
        std::ranges::any_of(taken_, [port](const auto& other) { return other.second == port; });
    if (port != kConsole && !given && is_free_(port)) {
      taken_[attempt] = port;
      return port;
    }
  }
  return fail(ErrorCode::conflict,
              fmt::format("no TCP port from {} to {} is free, which its {{port}} needs; see "
                          "'ss -ltn' for who listens there",
                          range_.first, range_.last));
}

void Ports::release(AttemptId attempt) {
  const std::scoped_lock lock(mutex_);
  taken_.erase(attempt);
}

}  // namespace berth
