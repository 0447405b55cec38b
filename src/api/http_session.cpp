#include "api/http_session.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <poll.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <ctime>
#include <optional>

#include "api/http_answer.hpp"
#include "api/http_connection.hpp"
#include "api/http_outflow.hpp"
#include "api/target.hpp"
#include "api/tls.hpp"

namespace berth {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr Millis kDrainTimeout{2'000};
constexpr std::size_t kPiece = 256 * 1024;
constexpr std::size_t kDrained = 64 * 1024;
constexpr std::size_t kHeaderPiece = 4 * 1024;
/// What has arrived and is not understood yet. Trailers and the line before a chunk have to fit in
/// whole, which limits them; no field of one that does is too long for Beast, which would throw.
constexpr std::size_t kUnread = 64 * 1024;
/// What has to leave within the time for writing. A client that fetches less is as good as gone.
constexpr std::size_t kSlice = 64 * 1024;
constexpr int kNotModified = 304;
constexpr std::string_view kNdjson = "application/x-ndjson";

using Piece = std::function<void(Result<std::string>)>;

/// "Wed, 18 Nov 2026 05:02:22 GMT": what a client takes for this machine's clock.
std::string http_date(std::time_t time) {
  constexpr std::array<const char*, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT",
                     kDays.at(static_cast<std::size_t>(parts.tm_wday)), parts.tm_mday,
                     kMonths.at(static_cast<std::size_t>(parts.tm_mon)), parts.tm_year + 1900,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

bool has_body(const HttpRequest& head) {
  const auto length = head.headers.find("content-length");
  return head.headers.contains("transfer-encoding") ||
         (length != head.headers.end() && length->second != "0");
}

/// Whether a line goes on in the next one, which nobody needs. Beast joins them; a proxy on the way
/// may have taken the second for a header of its own.
bool has_folded_line(std::string_view header) {
  return header.find("\r\n ") != std::string_view::npos ||
         header.find("\r\n\t") != std::string_view::npos;
}

/// What is wrong with how the request says where its body ends; empty: nothing. Where two readers
/// could disagree, the rest of one request would be another one for the second of them.
std::string_view framing_problem(const HttpRequest& head, bool old) {
  const auto coding = head.headers.find("transfer-encoding");
  if (coding == head.headers.end()) {
    return {};
  }
  if (lower_case(coding->second) != "chunked") {
    return "of transfer encodings only \"chunked\" is understood";
  }
  if (head.headers.contains("content-length")) {
    return "a body is chunked or has a length, not both";
  }
  return old ? "HTTP/1.0 has no transfer encodings" : std::string_view();
}

bool is_ndjson(const HttpRequest& head) {
  const auto type = head.headers.find("content-type");
  return type != head.headers.end() &&
         lower_case(type->second.substr(0, type->second.find(';'))) == kNdjson;
}

class Session final : public HttpSession, public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<HttpShared> shared, HttpPeer peer)
      : shared_(std::move(shared)), connection_(shared_->io), peer_(std::move(peer)) {}

  [[nodiscard]] error_code assign(int fd) { return connection_.assign(fd, peer_.family); }

  void start() override {
    if (!shared_->tls) {
      return read_request();
    }
    connection_.expires_after(limits().header_timeout);
    connection_.encrypt(shared_->tls->context())
        .async_handshake(asio::ssl::stream_base::server,
                         [self = shared_from_this()](error_code error) {
                           error ? self->close() : self->read_request();
                         });
  }

  void turn_away(HttpResponse response) override {
    standing_ = HttpStanding::refused;
    refuse(std::move(response));
  }

  void refuse(HttpResponse response) {
    if (shared_->tls && !connection_.encrypted()) {
      return close();  // no words without a handshake, and none is made for this
    }
    idle_ = false;
    keep_alive_ = false;
    write(std::move(response));
  }

  void stop() override {
    if (idle_ || outflow_) {
      close();
    }
  }

  void cut() override { close(); }
  [[nodiscard]] const Caller* caller() const override {
    // What is answered already gets out.
    return idle_ || receiving_ || waiting_ || outflow_ ? caller_.get() : nullptr;
  }
  [[nodiscard]] HttpStanding standing() const override { return standing_; }
  [[nodiscard]] std::uint64_t number() const override { return peer_.number; }

 private:
  [[nodiscard]] const HttpLimits& limits() const { return shared_->service.limits; }

  void read_request() {
    idle_ = true;
    parser_.reset();
    stream_parser_.reset();
    head_ = {};
    wishes_ = {};
    header_parser_.emplace();
    header_parser_->header_limit(limits().header_bytes);
    header_parser_->body_limit(boost::none);  // that of the kind of body decides
    header_size_ = 0;
    folded_ = false;
    connection_.expires_after(limits().header_timeout);
    parse_header();
  }

  /// Not with Beast's own loop, which does not show the bytes.
  void parse_header() {
    error_code error;
    const auto bytes = buffer_.data();
    const std::size_t used = header_parser_->put(bytes, error);
    folded_ =
        folded_ || has_folded_line(std::string_view(static_cast<const char*>(bytes.data()), used));
    buffer_.consume(used);
    header_size_ += used;
    // That of the parser can begin anew behind each line it is done with.
    if (header_size_ > limits().header_bytes) {
      error = make_error_code(http::error::header_limit);
    }
    if (error == http::error::need_more && buffer_.size() + kHeaderPiece > kUnread) {
      error = make_error_code(http::error::header_limit);
    }
    if (error != http::error::need_more) {
      return have_header(error);
    }
    connection_.async_read_some(buffer_.prepare(kHeaderPiece),
                                [self = shared_from_this()](error_code failure, std::size_t size) {
                                  self->buffer_.commit(size);
                                  failure ? self->have_header(failure) : self->parse_header();
                                });
  }

  void have_header(error_code error) {
    idle_ = false;
    if (error) {
      return failed(error);
    }
    keep_alive_ = header_parser_->get().keep_alive();
    old_ = header_parser_->get().version() < 11;
    describe();
    wishes_ = wishes_of(head_);
    if (folded_) {
      return refuse(plain_error(400, "a line of the header may not go on in the next one"));
    }
    if (const auto problem = framing_problem(head_, old_); !problem.empty()) {
      return refuse(plain_error(400, problem));
    }
    auto target = parse_target(header_parser_->get().target());
    if (!target) {
      return refuse(plain_error(400, target.error().message));
    }
    head_.path = std::move(target->path);
    head_.query = std::move(target->query);
    // Before the body: nobody stores megabytes for a stranger.
    auto refusal = shared_->service.gate ? shared_->service.gate(head_) : std::nullopt;
    caller_ = head_.caller;
    // Anew with each request: whose key is worth nothing any more takes nobody's place.
    standing_ =
        !shared_->service.gate || head_.known ? HttpStanding::known : HttpStanding::stranger;
    if (refusal) {
      keep_alive_ = keep_alive_ && !has_body(head_);
      return write(std::move(*refusal));
    }
    choose_parser();
  }

  void describe() {
    const auto& header = header_parser_->get();
    head_.method = header.method_string();
    head_.peer_uid = peer_.uid;
    head_.peer_pid = peer_.pid;
    head_.peer_address = peer_.address;
    for (const auto& field : header) {
      // Also behind an empty one: a header that comes twice is never taken for one of them.
      const auto [at, is_first] = head_.headers.try_emplace(lower_case(field.name_string()));
      at->second += is_first ? "" : ", ";
      at->second += field.value();
    }
  }

  void choose_parser() {
    const bool streamed = is_ndjson(head_);
    const std::uint64_t limit = streamed ? limits().stream_bytes : limits().body_bytes;
    const auto expect = head_.headers.find("expect");
    const bool wants_continue =
        !old_ && expect != head_.headers.end() && lower_case(expect->second) == "100-continue";
    // The parser held no limit while it read the length, and would now make room for all of it.
    if (header_parser_->content_length() && *header_parser_->content_length() > limit) {
      return failed(make_error_code(http::error::body_limit));
    }
    if (streamed) {
      stream_parser_.emplace(std::move(*header_parser_));
      stream_parser_->body_limit(limit);
    } else {
      parser_.emplace(std::move(*header_parser_));
      parser_->body_limit(limit);
    }
    header_parser_.reset();
    receiving_ = true;
    if (wants_continue) {
      continue_.emplace(http::status::continue_, 11);
      connection_.expires_after(limits().write_timeout);
      http::async_write(connection_, *continue_,
                        [self = shared_from_this()](error_code failure, std::size_t) {
                          failure ? self->close() : self->read_body();
                        });
      return;
    }
    read_body();
  }

  void read_body() {
    if (stream_parser_) {
      // What is left of the body when the answer is ready stays unread: such a connection ends.
      keep_alive_ = false;
      return answer();
    }
    connection_.expires_after(limits().body_timeout);
    http::async_read(connection_, buffer_, *parser_,
                     [self = shared_from_this()](error_code error, std::size_t) {
                       if (error) {
                         return self->failed(error);
                       }
                       self->head_.body = std::move(self->parser_->get().body());
                       self->answer();
                     });
  }

  void failed(error_code error) {
    receiving_ = false;
    if (error == http::error::body_limit) {
      return refuse(plain_error(
          413, fmt::format("a request may have {} MiB at most", limits().body_bytes >> 20)));
    }
    if (error == http::error::header_limit) {
      return refuse(plain_error(431, "the header of the request is too long"));
    }
    if (error == http::error::buffer_overflow) {
      return refuse(plain_error(431, "what stands between or behind the chunks is too long"));
    }
    if (error.category() == make_error_code(http::error::bad_method).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message) {
      return refuse(plain_error(400, "this is not HTTP: " + error.message()));
    }
    close();  // gone, or too slow
  }

  void answer() {
    receiving_ = false;
    waiting_ = true;
    ++request_;
    if (shared_->stopping) {
      return respond(request_, plain_error(503, "the daemon is stopping"));
    }
    if (stream_parser_) {
      head_.stream = std::make_shared<NdjsonStream>(weak_from_this(), request_);
    }
    connection_.expires_never();
    const Respond respond_once = make_respond();  // outlives an exception
    try {
      shared_->service.handler(std::exchange(head_, {}), respond_once);
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
    void read(Piece then) override {
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

  void read_piece(Piece then) {
    if (stream_parser_->is_done()) {
      then(std::string());
      return;
    }
    piece_.resize(kPiece);
    filled_ = 0;
    buffer_.reserve(kPiece / 4);  // else it begins with small reads
    read_more(std::move(then));
  }

  void read_more(Piece then) {
    auto& body = stream_parser_->get().body();
    body.data = piece_.data() + filled_;
    body.size = piece_.size() - filled_;
    body.more = true;
    connection_.expires_after(limits().body_timeout);
    http::async_read_some(connection_, buffer_, *stream_parser_,
                          [self = shared_from_this(), then = std::move(then)](
                              error_code error, std::size_t) { self->have_piece(error, then); });
  }

  void have_piece(error_code error, const Piece& then) {
    connection_.expires_never();
    if (error && error != http::error::need_buffer) {
      then(fail(ErrorCode::invalid,
                error == http::error::body_limit
                    ? fmt::format("a stream may have {} GiB at most", limits().stream_bytes >> 30)
                    : "the stream ended early: " + error.message()));
      if (waiting_) {
        close();
      }
      return;
    }
    filled_ = piece_.size() - stream_parser_->get().body().size;
    // What is there is enough, so that a slow client's jobs need not wait for each other; but what
    // comes in a rush is taken in large pieces.
    const bool more = !stream_parser_->is_done() && filled_ < piece_.size() &&
                      (filled_ == 0 || connection_.has_input());
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

  void respond(std::uint64_t request, HttpResponse response) {
    if (request != request_ || !waiting_) {
      return;
    }
    waiting_ = false;
    if (!shared_->service.offload || !is_heavy(response, wishes_)) {
      pack(response, wishes_);
      return write(std::move(response));
    }
    const auto packed = std::make_shared<HttpResponse>(std::move(response));
    shared_->service.offload(
        [packed, wishes = wishes_] { pack(*packed, wishes); },
        [self = shared_from_this(), packed] { self->write(std::move(*packed)); });
  }

  /// While an answer is pending nothing is read, so a client that leaves would go unnoticed.
  void watch_peer() {
    connection_.plain().socket().async_wait(
        Connection::Plain::socket_type::wait_read,
        [self = shared_from_this(), request = request_](error_code error) {
          if (!error && request == self->request_ && (self->waiting_ || self->outflow_) &&
              self->peer_has_gone()) {
            self->close();
          }
        });
  }

  [[nodiscard]] bool peer_has_gone() {
    pollfd state{connection_.fd(), 0, 0};
    if (::poll(&state, 1, 0) == 1 && (state.revents & (POLLHUP | POLLERR)) != 0) {
      return true;
    }
    // A client on this machine that only closed its sending half may still read the answer. One
    // that has gone looks like that over TCP, and nobody there does the former.
    char byte = 0;
    return peer_.family != AF_UNIX &&
           ::recv(connection_.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }

  template <class Answer>
  void fill_header(Answer& answer, HttpResponse& response) {
    answer.set(http::field::content_type, response.content_type);
    answer.set(http::field::cache_control, "no-store");
    answer.set(http::field::date, http_date(std::time(nullptr)));
    for (const auto& [name, value] : shared_->service.headers) {
      answer.set(name, value);
    }
    for (const auto& [name, value] : response.headers) {
      answer.set(name, value);
    }
    answer.keep_alive(keep_alive_);
  }

  void write(HttpResponse response) {
    keep_alive_ = keep_alive_ && !shared_->stopping && !response.last;
    if (response.stream && old_) {
      keep_alive_ = false;  // its end is the end of the connection
    }
    http::response<http::empty_body> head(static_cast<http::status>(response.status), 11);
    fill_header(head, response);
    if (response.stream) {
      head.chunked(!old_);
    } else if (response.status != kNotModified) {  // there it would be the length of what is known
      head.content_length(response.body.size());
    }
    head_out_ = fmt::format("{}", fmt::streamed(head.base()));
    if (response.stream && !wishes_.head) {
      return begin_stream(response);
    }
    body_out_ = wishes_.head ? std::string() : std::move(response.body);
    write_slices(head_out_, body_out_,
                 [self = shared_from_this()](error_code error) { self->written(error); });
  }

  /// Sends two texts, which stay where they are until `then`. The time counts for each slice, so
  /// that it suffices for whoever goes on fetching, however much there is.
  template <class Then>
  void write_slices(std::string_view first, std::string_view second, Then then) {
    const std::string_view slice = second.substr(0, kSlice);
    second.remove_prefix(slice.size());
    connection_.expires_after(limits().write_timeout);
    asio::async_write(
        connection_,
        std::array{asio::buffer(first.data(), first.size()),
                   asio::buffer(slice.data(), slice.size())},
        [self = shared_from_this(), second, then = std::move(then)](error_code error, std::size_t) {
          error || second.empty() ? then(error) : self->write_slices({}, second, then);
        });
  }

  void begin_stream(const HttpResponse& response) {
    outflow_ = std::make_shared<Outflow>(limits().unsent_bytes,
                                         old_ ? StreamEnd::close : StreamEnd::last_chunk,
                                         [weak = weak_from_this()] {
                                           if (const auto self = weak.lock()) {
                                             self->write_piece();
                                           }
                                         });
    outflow_->begin(std::exchange(head_out_, {}));
    watch_peer();
    response.stream(outflow_->sink());
  }

  /// Sends what has come together; Outflow says when.
  void write_piece() {
    if (outflow_ && outflow_->broken()) {
      if (old_) {  // an orderly end would look like that of the whole answer
        error_code ignored;
        static_cast<void>(
            connection_.plain().socket().set_option(asio::socket_base::linger(true, 0), ignored));
      }
      return close();
    }
    if (!outflow_ || outflow_->writing()) {
      return;
    }
    const std::string& piece = outflow_->take();
    if (piece.empty()) {
      if (outflow_->ended()) {
        outflow_.reset();
        written({});
      } else {
        connection_.expires_never();
      }
      return;
    }
    write_slices({}, piece, [self = shared_from_this(), outflow = outflow_](error_code error) {
      outflow->sent();
      error ? self->close() : self->write_piece();
    });
  }

  void written(error_code error) {
    body_out_ = {};  // may have been large
    if (error) {
      return close();
    }
    if (keep_alive_ && !shared_->stopping) {
      return read_request();
    }
    // Take in what the client is still sending: to close at once would cut off our answer.
    connection_.expires_after(kDrainTimeout);
    connection_.finish([self = shared_from_this()] { self->drain(); });
  }

  void drain() {
    buffer_.clear();
    connection_.plain().async_read_some(buffer_.prepare(kDrained),
                                        [self = shared_from_this()](error_code error, std::size_t) {
                                          error ? self->close() : self->drain();
                                        });
  }

  /// May be the end of this object, unless the caller holds it.
  void close() {
    waiting_ = false;
    connection_.close();
    if (const auto outflow = std::exchange(outflow_, nullptr)) {
      asio::post(shared_->io, [outflow] { outflow->gone(); });
    }
    shared_->sessions.erase(this);
  }

  std::shared_ptr<HttpShared> shared_;
  Connection connection_;
  HttpPeer peer_;
  beast::flat_buffer buffer_{kUnread};
  std::optional<http::request_parser<http::empty_body>> header_parser_;
  // Of these two the one that fits the content.
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::request_parser<http::buffer_body>> stream_parser_;
  HttpRequest head_;  ///< what is known of the request that is being read
  AnswerWishes wishes_;
  std::shared_ptr<const Caller> caller_;
  std::string piece_;
  std::size_t filled_ = 0;  ///< of piece_
  std::string head_out_;    ///< of the answer that is being written
  std::string body_out_;
  std::optional<http::response<http::empty_body>> continue_;
  std::shared_ptr<Outflow> outflow_;  ///< while an answer streams
  std::uint64_t request_ = 0;
  HttpStanding standing_ = HttpStanding::stranger;
  bool keep_alive_ = true;
  bool receiving_ = false;  ///< the body of a request that was let in
  bool waiting_ = false;    ///< the handler owes an answer to request_
  bool idle_ = true;        ///< between requests
  std::size_t header_size_ = 0;
  bool old_ = false;     ///< HTTP/1.0, which knows no chunks
  bool folded_ = false;  ///< a line of the header goes on in the next one
};

}  // namespace

std::shared_ptr<HttpSession> make_session(std::shared_ptr<HttpShared> shared, Fd socket,
                                          HttpPeer peer) {
  auto session = std::make_shared<Session>(std::move(shared), std::move(peer));
  if (session->assign(socket.get())) {
    return nullptr;
  }
  (void)socket.release();
  return session;
}

}  // namespace berth
