#include "api/http.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cctype>
#include <optional>
#include <unordered_map>

#include "api/socket.hpp"
#include "api/target.hpp"
#include "api/wire.hpp"

namespace berth {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using Protocol = asio::local::stream_protocol;
using Stream = beast::basic_stream<Protocol>;

constexpr Millis kDrainTimeout{2'000};
constexpr Millis kAcceptRetry{100};

HttpResponse plain_error(int status, std::string_view message) {
  HttpResponse response;
  response.status = status;
  response.body =
      encode_error({status == 503 ? ErrorCode::unavailable
                                  : (status >= 500 ? ErrorCode::io : ErrorCode::invalid),
                    std::string(message)});
  return response;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

class Session;

/// What sessions need of the server; outlives it while they last.
struct Shared {
  asio::io_context& io;
  HttpHandler handler;
  HttpLimits limits;
  bool stopping = false;
  /// Open connections. One whose answer is pending may be held by nothing else.
  std::unordered_map<Session*, std::shared_ptr<Session>> sessions;
};

/// One connection: read a request, hand it out, write the answer, again.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Shared> shared, Protocol::socket socket, ucred peer)
      : shared_(std::move(shared)), stream_(std::move(socket)), peer_(peer) {}
  ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void read_request() {
    idle_ = true;
    parser_.emplace();
    parser_->header_limit(shared_->limits.header_bytes);
    parser_->body_limit(shared_->limits.body_bytes);
    stream_.expires_after(shared_->limits.header_timeout);
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](error_code error, std::size_t) { self->have_header(error); });
  }

  /// Answers without having read a request, and closes.
  void refuse(HttpResponse response) {
    idle_ = false;
    keep_alive_ = false;
    write(std::move(response));
  }

  void respond(std::uint64_t request, HttpResponse response) {
    if (request == request_ && waiting_) {
      waiting_ = false;
      write(std::move(response));
    }
  }

  void close_if_idle() {
    if (idle_) {
      close();
    }
  }

 private:
  void have_header(error_code error) {
    idle_ = false;
    if (error) {
      return failed(error);
    }
    if (lower(parser_->get()[http::field::expect]) == "100-continue") {
      continue_.emplace(http::status::continue_, 11);
      stream_.expires_after(shared_->limits.write_timeout);
      http::async_write(stream_, *continue_,
                        [self = shared_from_this()](error_code failure, std::size_t) {
                          failure ? self->close() : self->read_body();
                        });
      return;
    }
    read_body();
  }

  void read_body() {
    stream_.expires_after(shared_->limits.body_timeout);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](error_code error, std::size_t) {
                       error ? self->failed(error) : self->handle();
                     });
  }

  void failed(error_code error) {
    if (error == http::error::body_limit) {
      return refuse(plain_error(
          413, fmt::format("a request may have {} MiB at most", shared_->limits.body_bytes >> 20)));
    }
    if (error == http::error::header_limit) {
      return refuse(plain_error(431, "the header of the request is too long"));
    }
    if (error.category() == make_error_code(http::error::bad_method).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message) {
      return refuse(plain_error(400, "this is not HTTP: " + error.message()));
    }
    close();  // gone, or too slow
  }

  void handle() {
    auto message = parser_->release();
    keep_alive_ = message.keep_alive();
    auto target = parse_target(message.target());
    waiting_ = true;
    ++request_;
    if (shared_->stopping) {
      return respond(request_, plain_error(503, "the daemon is stopping"));
    }
    if (!target) {
      return respond(request_, plain_error(400, "malformed request target"));
    }
    HttpRequest request;
    request.method = message.method_string();
    request.path = std::move(target->path);
    request.query = std::move(target->query);
    request.peer_uid = peer_.uid;
    request.peer_pid = static_cast<std::uint32_t>(peer_.pid);
    for (const auto& field : message) {
      std::string& value = request.headers[lower(field.name_string())];
      value += value.empty() ? "" : ", ";
      value += field.value();
    }
    request.body = std::move(message.body());
    stream_.expires_never();
    const Respond respond_once = make_respond();  // outlives an exception
    try {
      shared_->handler(std::move(request), respond_once);
    } catch (const std::exception& error) {
      respond(request_, plain_error(500, fmt::format("internal error: {}", error.what())));
    }
    if (waiting_) {
      watch_peer();
    }
  }

  Respond make_respond() {
    /// Answers on its way out if nobody did, so that no client waits for ever.
    struct Once {
      std::weak_ptr<Session> session;
      std::uint64_t request;
      void answer(HttpResponse response) {
        if (const auto alive = session.lock()) {
          alive->respond(request, std::move(response));
        }
        session.reset();
      }
      ~Once() { answer(plain_error(500, "the request was dropped")); }
    };
    auto once = std::make_shared<Once>(weak_from_this(), request_);
    return [once](HttpResponse response) { once->answer(std::move(response)); };
  }

  /// While an answer is pending nothing is read, so a client that leaves would go unnoticed.
  void watch_peer() {
    stream_.socket().async_wait(
        Protocol::socket::wait_read,
        [self = shared_from_this(), request = request_](error_code error) {
          if (error || !self->waiting_ || request != self->request_) {
            return;
          }
          // A client that only closed its sending half may still read the answer.
          pollfd state{self->stream_.socket().native_handle(), 0, 0};
          if (::poll(&state, 1, 0) == 1 && (state.revents & (POLLHUP | POLLERR)) != 0) {
            self->close();
          }
        });
  }

  void write(HttpResponse response) {
    keep_alive_ = keep_alive_ && !shared_->stopping;
    answer_.emplace(static_cast<http::status>(response.status), 11);
    answer_->set(http::field::content_type, response.content_type);
    answer_->set(http::field::cache_control, "no-store");
    for (auto& [name, value] : response.headers) {
      answer_->set(name, value);
    }
    answer_->body() = std::move(response.body);
    answer_->keep_alive(keep_alive_);
    answer_->prepare_payload();
    stream_.expires_after(shared_->limits.write_timeout);
    http::async_write(
        stream_, *answer_,
        [self = shared_from_this()](error_code error, std::size_t) { self->written(error); });
  }

  void written(error_code error) {
    answer_.reset();
    if (error) {
      return close();
    }
    if (keep_alive_ && !shared_->stopping) {
      return read_request();
    }
    // Take in what the client is still sending: to close at once would cut off our answer.
    error_code ignored;
    static_cast<void>(stream_.socket().shutdown(Protocol::socket::shutdown_send, ignored));
    stream_.expires_after(kDrainTimeout);
    drain();
  }

  void drain() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(64 * 1024),
                            [self = shared_from_this()](error_code error, std::size_t) {
                              error ? self->close() : self->drain();
                            });
  }

  /// May be the end of this object, unless the caller holds it.
  void close() {
    waiting_ = false;
    stream_.close();
    shared_->sessions.erase(this);
  }

  std::shared_ptr<Shared> shared_;
  Stream stream_;
  ucred peer_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> answer_;
  std::optional<http::response<http::empty_body>> continue_;
  std::uint64_t request_ = 0;
  bool keep_alive_ = true;
  bool waiting_ = false;  ///< the handler owes an answer to request_
  bool idle_ = true;      ///< between requests
};

}  // namespace

struct HttpServer::Impl : std::enable_shared_from_this<HttpServer::Impl> {
  Impl(asio::io_context& io, std::string path, HttpHandler handler, HttpLimits limits)
      : shared(std::make_shared<Shared>(Shared{io, std::move(handler), limits, false, {}})),
        acceptor(io),
        retry(io),
        socket_path(std::move(path)) {}

  void accept() {
    acceptor.async_accept(shared->io,
                          [self = shared_from_this()](error_code error, Protocol::socket socket) {
                            if (self->shared->stopping) {
                              return;
                            }
                            if (!error) {
                              self->welcome(std::move(socket));
                              return self->accept();
                            }
                            // Out of descriptors, most likely: trying again at once would only
                            // spin.
                            self->retry.expires_after(kAcceptRetry);
                            self->retry.async_wait([self](error_code cancelled) {
                              if (!cancelled && !self->shared->stopping) {
                                self->accept();
                              }
                            });
                          });
  }

  void welcome(Protocol::socket socket) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
      return;  // closes it
    }
    auto session = std::make_shared<Session>(shared, std::move(socket), peer);
    shared->sessions.emplace(session.get(), session);
    if (shared->sessions.size() > shared->limits.connections) {
      session->refuse(plain_error(503, "too many connections; try again in a moment"));
    } else {
      session->read_request();
    }
  }

  void stop() {
    if (std::exchange(shared->stopping, true)) {
      return;
    }
    error_code ignored;
    static_cast<void>(acceptor.close(ignored));
    retry.cancel();
    ::unlink(socket_path.c_str());
    const auto sessions = shared->sessions;  // closing one removes it
    for (const auto& [key, session] : sessions) {
      session->close_if_idle();
    }
  }

  std::shared_ptr<Shared> shared;
  Protocol::acceptor acceptor;
  asio::steady_timer retry;
  std::string socket_path;
};

Result<std::unique_ptr<HttpServer>> HttpServer::listen(asio::io_context& io,
                                                       const std::string& socket_path,
                                                       HttpHandler handler, HttpLimits limits) {
  TRY_ASSIGN(Fd fd, listen_unix(socket_path));
  auto impl = std::make_shared<Impl>(io, socket_path, std::move(handler), limits);
  error_code error;
  static_cast<void>(impl->acceptor.assign(Protocol(), fd.get(), error));
  if (error) {
    return fail(ErrorCode::io, "cannot serve '" + socket_path + "': " + error.message());
  }
  (void)fd.release();
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
std::size_t HttpServer::connections() const {
  return impl_->shared->sessions.size();
}

struct HttpClient::Impl {
  asio::io_context io;
  Stream stream{io};
  beast::flat_buffer buffer;
};

Result<HttpClient> HttpClient::connect(const std::string& socket_path) {
  TRY_ASSIGN(Fd fd, connect_unix(socket_path));
  auto impl = std::make_unique<Impl>();
  error_code error;
  static_cast<void>(impl->stream.socket().assign(Protocol(), fd.get(), error));
  if (error) {
    return fail(ErrorCode::io, "cannot use a socket: " + error.message());
  }
  (void)fd.release();
  return HttpClient(std::move(impl));
}

HttpClient::HttpClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

Result<HttpResponse> HttpClient::request(const std::string& method, const std::string& target,
                                         std::string body, Millis timeout) {
  const http::verb verb = http::string_to_verb(method);
  http::request<http::string_body> message(verb, target, 11);
  message.set(http::field::host, "berth");
  message.set(http::field::user_agent, "berth/" BERTH_VERSION);
  if (!body.empty()) {
    message.set(http::field::content_type, "application/json");
  }
  message.body() = std::move(body);
  message.prepare_payload();

  http::response_parser<http::string_body> parser;
  parser.body_limit(boost::none);
  parser.header_limit(64 * 1024);
  error_code read_error = asio::error::would_block;
  impl_->stream.expires_after(timeout);
  // Reading starts with writing: a server that refuses a request answers before it has all of it.
  http::async_write(impl_->stream, message, [](error_code, std::size_t) {});
  http::async_read(impl_->stream, impl_->buffer, parser, [&](error_code error, std::size_t) {
    read_error = error;
    impl_->stream.cancel();  // nobody will read the rest of the request
  });
  impl_->io.restart();
  impl_->io.run();
  if (read_error) {
    impl_->stream.close();
    return fail(ErrorCode::unavailable,
                read_error == beast::error::timeout
                    ? fmt::format("the daemon did not answer {} {} in time", method, target)
                    : "lost the connection to the daemon: " + read_error.message());
  }
  auto answer = parser.release();
  HttpResponse response;
  response.status = static_cast<int>(answer.result_int());
  response.content_type = answer[http::field::content_type];
  for (const auto& field : answer) {
    response.headers.emplace_back(lower(field.name_string()), field.value());
  }
  if (!answer.keep_alive()) {
    impl_->stream.close();
  }
  response.body = std::move(answer.body());
  return response;
}

}  // namespace berth
