#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <utility>

#include "api/http.hpp"
#include "api/http_answer.hpp"
#include "api/http_connection.hpp"
#include "api/socket.hpp"
#include "api/tls.hpp"

namespace berth {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::uint32_t kHeaderMax = 64 * 1024;
constexpr std::size_t kPiece = 64 * 1024;
constexpr Millis kHandshakePatience{15'000};

}  // namespace

struct HttpClient::Impl {
  asio::io_context io;
  Connection stream{io};
  Fd other;  ///< the same socket, for abandon(): `stream` may close its own at any time
  beast::flat_buffer buffer;
  std::shared_ptr<TlsTrust> trust;  ///< its context must outlive the connection
  std::string host = "berth";
  std::string authorization;  ///< empty: none

  void close() {
    stream.close();
    ::shutdown(other.get(), SHUT_RDWR);
  }

  void run() {
    io.restart();
    io.run();
  }

  Status handshake(const HttpRemote& remote);

  template <class Body>
  http::request<Body> message(const std::string& method, const std::string& target) const {
    http::request<Body> message(http::string_to_verb(method), target, 11);
    message.set(http::field::host, host);
    message.set(http::field::user_agent, "berth/" BERTH_VERSION);
    if (!authorization.empty()) {
      message.set(http::field::authorization, authorization);
    }
    return message;
  }

  template <class Answer>
  HttpResponse describe(const Answer& answer) {
    HttpResponse response;
    response.status = static_cast<int>(answer.result_int());
    response.content_type = answer[http::field::content_type];
    for (const auto& field : answer) {
      response.headers.emplace_back(lower_case(field.name_string()), field.value());
    }
    return response;
  }

  HttpResponse take(http::response<http::string_body> answer) {
    HttpResponse response = describe(answer);
    if (!answer.keep_alive()) {
      close();
    }
    response.body = std::move(answer.body());
    return response;
  }

  std::unexpected<Error> lost(bool timed_out, const std::string& what, error_code error) {
    close();
    return fail(ErrorCode::unavailable,
                timed_out ? fmt::format("the daemon did not answer {} in time", what)
                          : "lost the connection to the daemon: " + error.message());
  }
};

Status HttpClient::Impl::handshake(const HttpRemote& remote) {
  trust = remote.trust;
  auto& tls = stream.encrypt(trust->context());
  if (!is_numeric_address(remote.host)) {
    std::string name = remote.host;
    ::SSL_ctrl(tls.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
               name.data());  // which copies it
  }
  error_code error;
  static_cast<void>(tls.set_verify_callback(asio::ssl::host_name_verification(remote.host), error));
  stream.expires_after(kHandshakePatience);
  tls.async_handshake(asio::ssl::stream_base::client, [&](error_code failure) { error = failure; });
  run();
  if (error == error_code(ERR_PACK(ERR_LIB_SSL, 0, SSL_R_WRONG_VERSION_NUMBER),
                          asio::error::get_ssl_category())) {
    return fail(
        ErrorCode::refused,
        fmt::format("{} does not speak TLS on port {}; if it is this machine, or the end of "
                    "a tunnel, write http://",
                    remote.host, remote.port));
  }
  if (error) {
    return fail(ErrorCode::refused,
                fmt::format("cannot trust {}: {}; if its certificate is your own, name it with "
                            "--ca-file",
                            remote.host, error.message()));
  }
  stream.expires_never();
  return {};
}

Result<HttpClient> HttpClient::adopt(int fd, int family) {
  auto impl = std::make_unique<Impl>();
  if (const error_code error = impl->stream.assign(fd, family)) {
    return fail(ErrorCode::io, "cannot use a socket: " + error.message());
  }
  impl->other.reset(::fcntl(impl->stream.fd(), F_DUPFD_CLOEXEC, 0));
  return HttpClient(std::move(impl));
}

Result<HttpClient> HttpClient::connect(const std::string& socket_path) {
  TRY_ASSIGN(Fd fd, connect_unix(socket_path));
  TRY_ASSIGN(HttpClient client, adopt(fd.get(), AF_UNIX));
  (void)fd.release();
  return client;
}

Result<HttpClient> HttpClient::connect(const HttpRemote& remote) {
  TRY_ASSIGN(Fd fd, connect_tcp(remote.host, remote.port));
  TRY_ASSIGN(HttpClient client, adopt(fd.get(), family_of(fd.get())));
  (void)fd.release();
  client.impl_->host = remote.host.find(':') == std::string::npos
                           ? fmt::format("{}:{}", remote.host, remote.port)
                           : fmt::format("[{}]:{}", remote.host, remote.port);
  if (!remote.token.empty()) {
    client.impl_->authorization = "Bearer " + remote.token;
  }
  if (remote.tls) {
    TRY(client.impl_->handshake(remote));
  }
  return client;
}

void HttpClient::abandon() const {
  ::shutdown(impl_->other.get(), SHUT_RDWR);
}

HttpClient::HttpClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

Result<HttpResponse> HttpClient::request(const std::string& method, const std::string& target,
                                         std::string body, Millis timeout) {
  auto message = impl_->message<http::string_body>(method, target);
  if (!body.empty()) {
    message.set(http::field::content_type, "application/json");
  }
  message.body() = std::move(body);
  message.prepare_payload();

  http::response_parser<http::string_body> parser;
  parser.body_limit(boost::none);
  parser.header_limit(kHeaderMax);
  error_code read_error = asio::error::would_block;
  impl_->stream.expires_after(timeout);
  // Reading starts with writing: a server that refuses a request answers before it has all of it.
  http::async_write(impl_->stream, message, [](error_code, std::size_t) {});
  http::async_read(impl_->stream, impl_->buffer, parser, [&](error_code error, std::size_t) {
    read_error = error;
    impl_->stream.cancel();  // nobody will read the rest of the request
  });
  impl_->run();
  if (read_error) {
    return impl_->lost(read_error == beast::error::timeout, method + " " + target, read_error);
  }
  return impl_->take(parser.release());
}

Result<HttpResponse> HttpClient::stream(const std::string& method, const std::string& target,
                                        const std::function<std::string()>& next, Millis timeout) {
  auto message = impl_->message<http::buffer_body>(method, target);
  message.set(http::field::content_type, "application/x-ndjson");
  message.chunked(true);
  message.body().data = nullptr;
  message.body().size = 0;
  message.body().more = true;
  http::request_serializer<http::buffer_body> serializer(message);

  http::response_parser<http::string_body> parser;
  parser.body_limit(boost::none);
  parser.header_limit(kHeaderMax);
  error_code read_error = asio::error::would_block;
  bool answered = false;
  bool timed_out = false;
  impl_->stream.expires_never();
  asio::steady_timer patience(impl_->io);
  const auto wait_again = [&] {
    patience.expires_after(timeout);
    patience.async_wait([&](error_code cancelled) {
      if (!cancelled) {
        timed_out = true;
        impl_->stream.cancel();
      }
    });
  };
  std::string piece;
  std::function<void()> write_on = [&] {
    piece = next();
    message.body().data = piece.empty() ? nullptr : piece.data();
    message.body().size = piece.size();
    message.body().more = !piece.empty();
    wait_again();
    http::async_write(impl_->stream, serializer, [&](error_code error, std::size_t) {
      // On any other error the answer, if one comes, says more.
      if (!answered && error == http::error::need_buffer) {
        write_on();
      }
    });
  };
  http::async_read(impl_->stream, impl_->buffer, parser, [&](error_code error, std::size_t) {
    answered = true;
    read_error = error;
    patience.cancel();
    impl_->stream.cancel();
  });
  write_on();
  impl_->run();
  if (read_error) {
    return impl_->lost(timed_out, method + " " + target, read_error);
  }
  return impl_->take(parser.release());
}

Result<HttpResponse> HttpClient::follow(const std::string& target,
                                        const std::function<bool(std::string_view)>& take,
                                        const HttpHeaders& headers, Millis silence) {
  auto message = impl_->message<http::empty_body>("GET", target);
  for (const auto& [name, value] : headers) {
    message.set(name, value);
  }
  http::response_parser<http::buffer_body> parser;
  parser.body_limit(boost::none);
  parser.header_limit(kHeaderMax);
  const std::string what = "GET " + target;
  error_code failure;
  const auto done = [&](error_code error, std::size_t) { failure = error; };
  impl_->stream.expires_after(silence);
  http::async_write(impl_->stream, message, done);
  impl_->run();
  if (!failure) {
    http::async_read_header(impl_->stream, impl_->buffer, parser, done);
    impl_->run();
  }
  if (failure) {
    return impl_->lost(failure == beast::error::timeout, what, failure);
  }
  HttpResponse response = impl_->describe(parser.get());
  std::string piece(kPiece, '\0');
  bool wanted = true;
  while (wanted && !parser.is_done()) {
    auto& body = parser.get().body();
    body.data = piece.data();
    body.size = piece.size();
    body.more = true;
    impl_->stream.expires_after(silence);
    http::async_read_some(impl_->stream, impl_->buffer, parser, done);
    impl_->run();
    if (failure && failure != http::error::need_buffer) {
      return impl_->lost(failure == beast::error::timeout, what, failure);
    }
    const std::string_view got(piece.data(), piece.size() - parser.get().body().size);
    if (response.status != 200) {
      response.body += got;
    } else if (!got.empty()) {
      wanted = take(got);
    }
  }
  if (!wanted || !parser.get().keep_alive()) {
    impl_->close();
  }
  return response;
}

}  // namespace berth
