#pragma once
// One connection as Beast wants it: a unix or TCP socket, with TLS or without. Only for the files
// that instantiate Beast.

#include <sys/socket.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <optional>

#include "base/time.hpp"

namespace berth {

class Connection {
 public:
  using Protocol = boost::asio::generic::stream_protocol;
  using Plain = boost::beast::basic_stream<Protocol>;
  using executor_type = Plain::executor_type;
  using error_code = boost::system::error_code;

  explicit Connection(boost::asio::io_context& io) : plain_(io) {}

  /// Takes the descriptor over, unless that fails.
  error_code assign(int fd, int family) {
    error_code error;
    static_cast<void>(plain_.socket().assign(Protocol(family, 0), fd, error));
    return error;
  }

  /// From now on all is encrypted; the handshake comes next.
  boost::asio::ssl::stream<Plain&>& encrypt(boost::asio::ssl::context& context) {
    return tls_.emplace(plain_, context);
  }
  [[nodiscard]] bool encrypted() const { return tls_.has_value(); }
  [[nodiscard]] boost::asio::ssl::stream<Plain&>& tls() { return *tls_; }

  [[nodiscard]] executor_type get_executor() noexcept { return plain_.get_executor(); }

  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) {
      tls_->async_read_some(buffers, std::forward<Handler>(handler));
    } else {
      plain_.async_read_some(buffers, std::forward<Handler>(handler));
    }
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) {
      tls_->async_write_some(buffers, std::forward<Handler>(handler));
    } else {
      plain_.async_write_some(buffers, std::forward<Handler>(handler));
    }
  }

  /// What is begun from now on fails when the time is over.
  void expires_after(Millis time) { plain_.expires_after(time); }
  void expires_never() { plain_.expires_never(); }
  void cancel() { plain_.cancel(); }
  void close() { plain_.close(); }
  [[nodiscard]] Plain& plain() { return plain_; }
  [[nodiscard]] int fd() { return plain_.socket().native_handle(); }
  /// Whether a read would find something at once.
  [[nodiscard]] bool has_input() {
    error_code ignored;
    return plain_.socket().available(ignored) > 0 ||
           (tls_ && ::SSL_pending(tls_->native_handle()) > 0);
  }

  /// Says that nothing more will be sent; then `then`, however that went.
  template <class Then>
  void finish(Then then) {
    auto half_close = [this, then = std::move(then)]() mutable {
      error_code ignored;
      static_cast<void>(plain_.socket().shutdown(Plain::socket_type::shutdown_send, ignored));
      then();
    };
    if (!tls_) {
      half_close();
      return;
    }
    tls_->async_shutdown(
        [half_close = std::move(half_close)](error_code) mutable { half_close(); });
  }

 private:
  Plain plain_;
  std::optional<boost::asio::ssl::stream<Plain&>> tls_;
};

}  // namespace berth
