#pragma once
// HTTP/1.1 over a unix socket or TCP, both ends. Knows nothing of jobs or JSON beyond its own error
// answers. Boost.Beast is instantiated in http_session.cpp and http_client.cpp alone; it is
// expensive, so nothing of it may appear here.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace boost::asio {
class io_context;
}

namespace berth {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct Caller;
class TlsIdentity;
class TlsTrust;

/// A body that is handed out as it arrives.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  /// Calls back once, on the io thread, with the next piece; an empty one is the end. An error
  /// means that the rest will never come. One read at a time.
  virtual void read(std::function<void(Result<std::string>)> then) = 0;
};

struct HttpRequest {
  std::string method;
  std::string path;                          ///< percent-decoded
  std::map<std::string, std::string> query;  ///< percent-decoded; of repeated names the last
  std::string body;
  /// Instead of `body` if the content is NDJSON, which may be longer than a body may.
  std::shared_ptr<BodyStream> stream;
  std::uint32_t peer_uid = 0;  ///< as the kernel reports it; over TCP, as the gate says
  std::uint32_t peer_pid = 0;
  std::string peer_address;                    ///< over TCP; empty over a unix socket
  std::shared_ptr<const Caller> caller;        ///< who the gate says it is; none: not for it to say
  bool known = false;                          ///< has shown the gate who it is
  std::map<std::string, std::string> headers;  ///< names in lower case
};

/// The rest of an answer, made while it is sent. On the io thread. Whoever drops it without
/// close() breaks the answer off: the client sees that it is incomplete.
class ResponseSink {
 public:
  virtual ~ResponseSink() = default;
  virtual void write(std::string piece) = 0;  ///< queued; does nothing once the client is gone
  virtual void close() = 0;                   ///< the end of the answer
  [[nodiscard]] virtual std::size_t pending() const = 0;    ///< bytes not yet with the kernel
  virtual void on_drained(std::function<void()> then) = 0;  ///< once, when pending() is 0 again
  /// Once, when the client has gone, or has been cut off because it does not read.
  virtual void on_gone(std::function<void()> then) = 0;
};

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  HttpHeaders headers;
  /// Instead of `body`: an answer of unknown length, chunked. Called after the header is queued.
  std::function<void(std::shared_ptr<ResponseSink>)> stream;
  /// The connection ends with it, and says so: whoever asked has no key any more.
  bool last = false;
};

/// Answers one request: at once or later, on the io thread, once; further calls do nothing, and
/// so does a call after the client has gone. Dropping it unanswered answers 500.
using Respond = std::function<void(HttpResponse)>;
using HttpHandler = std::function<void(HttpRequest, Respond)>;

/// Looks at the head of a request before its body is read. An answer refuses the request, else the
/// gate may write down who is asking, and whether that is known.
using HttpGate = std::function<std::optional<HttpResponse>(HttpRequest& head)>;

/// Runs `work` away from the io thread, then `then` on it.
using HttpOffload = std::function<void(std::function<void()> work, std::function<void()> then)>;

struct HttpLimits {
  std::uint32_t header_bytes = 16 * 1024;
  std::uint64_t body_bytes = 64ull * 1024 * 1024;
  std::uint64_t stream_bytes = 16ull * 1024 * 1024 * 1024;
  /// At once. For one more the oldest goes that has not shown the gate who it is; else it is
  /// answered 429.
  std::size_t connections = 512;
  Millis header_timeout{30'000};  ///< also how long an idle connection is kept
  Millis body_timeout{120'000};
  Millis write_timeout{60'000};
  /// A streamed answer that nobody fetches grows no further: the client is cut off.
  std::size_t unsent_bytes = 32ull * 1024 * 1024;
};

/// How requests are answered.
struct HttpService {
  HttpHandler handler;
  HttpLimits limits = {};
  HttpGate gate = {};        ///< none: everybody gets in
  HttpHeaders headers = {};  ///< of every answer that does not say otherwise
  HttpOffload offload = {};  ///< for compressing; none: on the io thread
};

/// Where to listen: a numeric address, and a port, 0 for any.
struct TcpAddress {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;
};

/// Serves a unix socket or a TCP port. All of it, the handler included, runs on the thread that
/// runs the io_context, which must outlive the server.
class HttpServer {
 public:
  /// Creates the socket with mode 0600, in place of one that a dead process left: the caller must
  /// hold the instance's lock. A file that is not a socket is not touched and is an error.
  /// An exception from the handler becomes a 500.
  static Result<std::unique_ptr<HttpServer>> listen(boost::asio::io_context& io,
                                                    const std::string& socket_path,
                                                    HttpHandler handler, HttpLimits limits = {});
  static Result<std::unique_ptr<HttpServer>> listen(boost::asio::io_context& io,
                                                    const std::string& socket_path,
                                                    HttpService service);
  /// The same on TCP. `conflict` when somebody else has the port.
  static Result<std::unique_ptr<HttpServer>> listen(boost::asio::io_context& io,
                                                    const TcpAddress& address,
                                                    std::shared_ptr<TlsIdentity> tls,
                                                    HttpService service);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Stops accepting, removes the socket and closes idle connections. Requests under way may
  /// still be answered; each connection closes after that.
  void stop();
  /// Shows this certificate to whoever connects from now on. Only where there was one before.
  void renew(std::shared_ptr<TlsIdentity> tls);
  /// Cuts off whoever is connected as one of these, whatever they are in the middle of.
  void drop(const std::function<bool(const Caller&)>& whom);
  [[nodiscard]] std::size_t connections() const;
  [[nodiscard]] std::uint16_t port() const;  ///< on TCP

 private:
  struct Impl;
  explicit HttpServer(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

/// A server on another machine, or on this one by TCP.
struct HttpRemote {
  std::string host;
  std::uint16_t port = 0;
  bool tls = false;
  std::string token;
  std::shared_ptr<TlsTrust> trust;  ///< with `tls`
};

/// One connection to a server, used synchronously.
class HttpClient {
 public:
  /// `unavailable` when nobody listens there.
  static Result<HttpClient> connect(const std::string& socket_path);
  static Result<HttpClient> connect(const HttpRemote& remote);
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;
  ~HttpClient();

  /// `unavailable` when the connection was lost or nothing came in time; whether the server acted
  /// is then unknown and the client of no further use. An answer of any status is a value.
  Result<HttpResponse> request(const std::string& method, const std::string& target,
                               std::string body = {}, Millis timeout = Millis(30'000));

  /// The same with a body of NDJSON that `next` makes piece by piece; an empty piece ends it. The
  /// timeout counts from the last piece on, and for each piece.
  Result<HttpResponse> stream(const std::string& method, const std::string& target,
                              const std::function<std::string()>& next,
                              Millis timeout = Millis(120'000));

  /// Hands out the body of the answer as it arrives, as long as `take` wants more; false there ends
  /// it and the connection. An answer that is not 200 comes back whole, with its body.
  Result<HttpResponse> follow(const std::string& target,
                              const std::function<bool(std::string_view)>& take,
                              const HttpHeaders& headers = {}, Millis silence = Millis(60'000));

  /// From another thread, while this lives: ends what is under way as if the connection were lost.
  void abandon() const;

 private:
  struct Impl;
  explicit HttpClient(std::unique_ptr<Impl> impl);
  static Result<HttpClient> adopt(int fd, int family);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth
