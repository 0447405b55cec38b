#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <utility>

#include "api/http.hpp"
#include "api/http_answer.hpp"
#include "api/http_session.hpp"
#include "api/socket.hpp"

namespace berth {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr Millis kAcceptRetry{100};
constexpr int kAcceptedAtOnce = 64;
/// What the kernel takes ahead of the network. Left to itself it takes megabytes, and then nothing
/// for so long that a slow reader looks like one who does not read.
constexpr int kUnsentAhead = 128 * 1024;

/// Who is at the other end; none if the kernel does not say.
std::optional<HttpPeer> peer_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {  // NOLINT
    return std::nullopt;
  }
  HttpPeer peer;
  peer.family = address.ss_family;
  if (peer.family == AF_UNIX) {
    ucred credentials{};
    size = sizeof credentials;
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
      return std::nullopt;
    }
    peer.uid = credentials.uid;
    peer.pid = static_cast<std::uint32_t>(credentials.pid);
    return peer;
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes =
      peer.family == AF_INET6
          ? static_cast<const void*>(
                &reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr)  // NOLINT
          : &reinterpret_cast<const sockaddr_in*>(&address)->sin_addr;        // NOLINT
  ::inet_ntop(peer.family, bytes, text.data(), text.size());
  peer.address = text.data();
  peer.uid = UINT32_MAX;  // nobody, until a gate says otherwise
  const int yes = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  ::setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentAhead, sizeof kUnsentAhead);
  return peer;
}

}  // namespace

struct HttpServer::Impl : std::enable_shared_from_this<HttpServer::Impl> {
  Impl(asio::io_context& io, Fd socket, std::shared_ptr<TlsIdentity> tls, HttpService service)
      : shared(std::make_shared<HttpShared>(HttpShared{io, std::move(service), std::move(tls)})),
        listening(io, socket.release()),
        retry(io) {}

  void accept() {
    listening.async_wait(asio::posix::stream_descriptor::wait_read,
                         [self = shared_from_this()](error_code error) {
                           if (!error && !self->shared->stopping) {
                             self->accept_all();
                           }
                         });
  }

  void accept_all() {
    for (int accepted = 0; accepted < kAcceptedAtOnce; ++accepted) {
      Fd socket(
          ::accept4(listening.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        const int error = errno;
        if (error == ECONNABORTED || error == EINTR) {
          continue;
        }
        return error == EAGAIN ? accept() : accept_later();
      }
      welcome(std::move(socket));
    }
    accept();
  }

  /// Out of descriptors, most likely: trying again at once would only spin.
  void accept_later() {
    retry.expires_after(kAcceptRetry);
    retry.async_wait([self = shared_from_this()](error_code cancelled) {
      if (!cancelled && !self->shared->stopping) {
        self->accept();
      }
    });
  }

  /// Whether there is room for one more connection. Where only a stranger stands in the way the
  /// oldest goes: else a few hundred half-sent headers would keep everybody out who has a key.
  bool make_room() {
    const std::size_t limit = shared->service.limits.connections;
    if (shared->sessions.size() < limit) {
      return true;
    }
    std::size_t count = 0;
    HttpSession* oldest = nullptr;
    for (const auto& [session, owned] : shared->sessions) {
      const HttpStanding standing = session->standing();
      count += standing == HttpStanding::refused ? 0 : 1;
      if (standing == HttpStanding::stranger &&
          (oldest == nullptr || session->number() < oldest->number())) {
        oldest = session;
      }
    }
    if (count < limit) {
      return true;
    }
    if (oldest != nullptr) {
      oldest->cut();
    }
    return oldest != nullptr;
  }

  void welcome(Fd socket) {
    auto peer = peer_of(socket.get());
    if (!peer) {
      return;  // closes it
    }
    peer->number = ++shared->accepted;
    const bool room = make_room();
    const auto session = make_session(shared, std::move(socket), *peer);
    if (!session) {
      return;
    }
    shared->sessions.emplace(session.get(), session);
    if (room) {
      session->start();
    } else {
      session->turn_away(plain_error(429, "too many connections; try again in a moment"));
    }
  }

  void stop() {
    if (std::exchange(shared->stopping, true)) {
      return;
    }
    error_code ignored;
    static_cast<void>(listening.close(ignored));
    retry.cancel();
    if (!socket_path.empty()) {
      ::unlink(socket_path.c_str());
    }
    const auto sessions = shared->sessions;  // closing one removes it
    for (const auto& [key, session] : sessions) {
      session->stop();
    }
  }

  void drop(const std::function<bool(const Caller&)>& whom) {
    const auto sessions = shared->sessions;  // closing one removes it
    for (const auto& [key, session] : sessions) {
      if (session->caller() != nullptr && whom(*session->caller())) {
        session->cut();
      }
    }
  }

  std::shared_ptr<HttpShared> shared;
  asio::posix::stream_descriptor listening;
  asio::steady_timer retry;
  std::string socket_path;  ///< empty: TCP
  std::uint16_t port = 0;
};

Result<std::unique_ptr<HttpServer>> HttpServer::listen(asio::io_context& io,
                                                       const std::string& socket_path,
                                                       HttpHandler handler, HttpLimits limits) {
  HttpService service;
  service.handler = std::move(handler);
  service.limits = limits;
  return listen(io, socket_path, std::move(service));
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(asio::io_context& io,
                                                       const std::string& socket_path,
                                                       HttpService service) {
  TRY_ASSIGN(Fd fd, listen_unix(socket_path));
  auto impl = std::make_shared<Impl>(io, std::move(fd), nullptr, std::move(service));
  impl->socket_path = socket_path;
  impl->accept();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(asio::io_context& io,
                                                       const TcpAddress& address,
                                                       std::shared_ptr<TlsIdentity> tls,
                                                       HttpService service) {
  TRY_ASSIGN(Fd fd, listen_tcp(address.address, address.port));
  const std::uint16_t port = port_of(fd.get());
  auto impl = std::make_shared<Impl>(io, std::move(fd), std::move(tls), std::move(service));
  impl->port = port;
  impl->accept();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() {
  stop();
  // Those that write keep themselves until they are done; the rest will never be answered.
  impl_->shared->sessions.clear();
}
void HttpServer::stop() {
  impl_->stop();
}
void HttpServer::drop(const std::function<bool(const Caller&)>& whom) {
  impl_->drop(whom);
}
void HttpServer::renew(std::shared_ptr<TlsIdentity> tls) {
  impl_->shared->tls = std::move(tls);
}
std::size_t HttpServer::connections() const {
  return impl_->shared->sessions.size();
}
std::uint16_t HttpServer::port() const {
  return impl_->port;
}

}  // namespace berth
