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
constexpr std::size_t kPiece = 256 * 1024;
constexpr std::string_view kNdjson = "application/x-ndjson";

HttpResponse plain_error(int status, std::string_view message) {
  HttpResponse response;
  response.status = status;
  response.body = encode_error({status == 503   ? ErrorCode::unavailable
                                : status == 429 ? ErrorCode::busy
                                : status >= 500 ? ErrorCode::io
                                                : ErrorCode::invalid,
                                std::string(message)});
  if (status == 429) {
    response.headers.emplace_back("Retry-After", "1");
  }
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
    parser_.reset();
    stream_parser_.reset();
    header_parser_.emplace();
    header_parser_->header_limit(shared_->limits.header_bytes);
    header_parser_->body_limit(boost::none);  // that of the kind of body decides
    stream_.expires_after(shared_->limits.header_timeout);
    http::async_read_header(
        stream_, buffer_, *header_parser_,
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
    const auto& header = header_parser_->get();
    const bool wants_continue = lower(header[http::field::expect]) == "100-continue";
    const std::string type = lower(header[http::field::content_type]);
    const bool streamed = type.substr(0, type.find(';')) == kNdjson;
    // The parser held no limit while it read the length, and would now make room for all of it.
    const std::uint64_t limit =
        streamed ? shared_->limits.stream_bytes : shared_->limits.body_bytes;
    if (header_parser_->content_length() && *header_parser_->content_length() > limit) {
      return failed(make_error_code(http::error::body_limit));
    }
    if (streamed) {
      stream_parser_.emplace(std::move(*header_parser_));
      stream_parser_->body_limit(shared_->limits.stream_bytes);
    } else {
      parser_.emplace(std::move(*header_parser_));
      parser_->body_limit(shared_->limits.body_bytes);
    }
    header_parser_.reset();
    if (wants_continue) {
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
    if (stream_parser_) {
      return handle();
    }
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
    if (stream_parser_) {
      // What is left of the body when the answer is ready stays unread: such a connection ends.
      keep_alive_ = false;
      answer(describe(stream_parser_->get()), stream_parser_->get().target());
    } else {
      auto message = parser_->release();
      keep_alive_ = message.keep_alive();
      HttpRequest request_of_message = describe(message);
      request_of_message.body = std::move(message.body());
      answer(std::move(request_of_message), message.target());
    }
  }

  template <class Message>
  HttpRequest describe(const Message& message) const {
    HttpRequest request;
    request.method = message.method_string();
    request.peer_uid = peer_.uid;
    request.peer_pid = static_cast<std::uint32_t>(peer_.pid);
    for (const auto& field : message) {
      std::string& value = request.headers[lower(field.name_string())];
      value += value.empty() ? "" : ", ";
      value += field.value();
    }
    return request;
  }

  void answer(HttpRequest request, std::string_view target_text) {
    auto target = parse_target(target_text);
    waiting_ = true;
    ++request_;
    if (shared_->stopping) {
      return respond(request_, plain_error(503, "the daemon is stopping"));
    }
    if (!target) {
      return respond(request_, plain_error(400, "malformed request target"));
    }
    request.path = std::move(target->path);
    request.query = std::move(target->query);
    if (stream_parser_) {
      request.stream = std::make_shared<NdjsonStream>(weak_from_this(), request_);
    }
    stream_.expires_never();
    const Respond respond_once = make_respond();  // outlives an exception
    try {
      shared_->handler(std::move(request), respond_once);
    } catch (const std::exception& error) {
      respond(request_, plain_error(500, fmt::format("internal error: {}", error.what())));
    }
    if (waiting_ && !stream_parser_) {
      watch_peer();
    }
  }

  /// The body of request `request_`, for as long as it is unanswered.
  class NdjsonStream final : public BodyStream {
   public:
    NdjsonStream(std::weak_ptr<Session> session, std::uint64_t request)
        : session_(std::move(session)), request_(request) {}
    void read(std::function<void(Result<std::string>)> then) override {
      const auto session = session_.lock();
      if (!session || session->request_ != request_ || !session->waiting_) {
        then(fail(ErrorCode::unavailable, "the client has gone"));
        return;
      }
      session->read_piece(std::move(then));
    }

   private:
    std::weak_ptr<Session> session_;
    std::uint64_t request_;
  };

  void read_piece(std::function<void(Result<std::string>)> then) {
    if (stream_parser_->is_done()) {
      then(std::string());
      return;
    }
    piece_.resize(kPiece);
    filled_ = 0;
    buffer_.reserve(kPiece / 4);  // else it begins with small reads
    read_more(std::move(then));
  }

  void read_more(std::function<void(Result<std::string>)> then) {
    auto& body = stream_parser_->get().body();
    body.data = piece_.data() + filled_;
    body.size = piece_.size() - filled_;
    body.more = true;
    stream_.expires_after(shared_->limits.body_timeout);
    http::async_read_some(stream_, buffer_, *stream_parser_,
                          [self = shared_from_this(), then = std::move(then)](
                              error_code error, std::size_t) { self->have_piece(error, then); });
  }

  void have_piece(error_code error, const std::function<void(Result<std::string>)>& then) {
    stream_.expires_never();
    if (error && error != http::error::need_buffer) {
      then(fail(ErrorCode::invalid, error == http::error::body_limit
                                        ? fmt::format("a stream may have {} GiB at most",
                                                      shared_->limits.stream_bytes >> 30)
                                        : "the stream ended early: " + error.message()));
      if (waiting_) {
        close();
      }
      return;
    }
    filled_ = piece_.size() - stream_parser_->get().body().size;
    // What is there is enough, so that a slow client's jobs need not wait for each other; but what
    // comes in a rush is taken in large pieces.
    error_code ignored;
    const bool more = !stream_parser_->is_done() && filled_ < piece_.size() &&
                      (filled_ == 0 || stream_.socket().available(ignored) > 0);
    if (more) {
      return read_more(then);
    }
    piece_.resize(filled_);
    then(std::exchange(piece_, {}));
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
  std::optional<http::request_parser<http::empty_body>> header_parser_;
  // Of these two the one that fits the content.
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::request_parser<http::buffer_body>> stream_parser_;
  std::string piece_;
  std::size_t filled_ = 0;  ///< of piece_
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
      session->refuse(plain_error(429, "too many connections; try again in a moment"));
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

  HttpResponse take(http::response<http::string_body> answer) {
    HttpResponse response;
    response.status = static_cast<int>(answer.result_int());
    response.content_type = answer[http::field::content_type];
    for (const auto& field : answer) {
      response.headers.emplace_back(lower(field.name_string()), field.value());
    }
    if (!answer.keep_alive()) {
      stream.close();
    }
    response.body = std::move(answer.body());
    return response;
  }
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
  return impl_->take(parser.release());
}

Result<HttpResponse> HttpClient::stream(const std::string& method, const std::string& target,
                                        const std::function<std::string()>& next, Millis timeout) {
  http::request<http::buffer_body> message(http::string_to_verb(method), target, 11);
  message.set(http::field::host, "berth");
  message.set(http::field::user_agent, "berth/" BERTH_VERSION);
  message.set(http::field::content_type, std::string(kNdjson));
  message.chunked(true);
  message.body().data = nullptr;
  message.body().size = 0;
  message.body().more = true;
  http::request_serializer<http::buffer_body> serializer(message);

  http::response_parser<http::string_body> parser;
  parser.body_limit(boost::none);
  parser.header_limit(64 * 1024);
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
  impl_->io.restart();
  impl_->io.run();
  if (read_error) {
    impl_->stream.close();
    return fail(ErrorCode::unavailable,
                timed_out ? fmt::format("the daemon did not answer {} {} in time", method, target)
                          : "lost the connection to the daemon: " + read_error.message());
  }
  return impl_->take(parser.release());
}

}  // namespace berth
