#pragma once
// HTTP/1.1 over a unix socket, both ends. Knows nothing of jobs or JSON beyond its own error
// answers. Boost.Beast is instantiated in http.cpp alone; it is expensive, so nothing of it may
// appear here.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
  std::uint32_t peer_uid = 0;  ///< as the kernel reports it
  std::uint32_t peer_pid = 0;
  std::map<std::string, std::string> headers;  ///< names in lower case
};

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
};

/// Answers one request: at once or later, on the io thread, once; further calls do nothing, and
/// so does a call after the client has gone. Dropping it unanswered answers 500.
using Respond = std::function<void(HttpResponse)>;
using HttpHandler = std::function<void(HttpRequest, Respond)>;

struct HttpLimits {
  std::uint32_t header_bytes = 16 * 1024;
  std::uint64_t body_bytes = 64ull * 1024 * 1024;
  std::uint64_t stream_bytes = 16ull * 1024 * 1024 * 1024;
  std::size_t connections = 512;
  Millis header_timeout{30'000};  ///< also how long an idle connection is kept
  Millis body_timeout{120'000};
  Millis write_timeout{60'000};
};

/// Serves a unix socket. All of it, the handler included, runs on the thread that runs the
/// io_context, which must outlive the server.
class HttpServer {
 public:
  /// Creates the socket with mode 0600, in place of one that a dead process left: the caller must
  /// hold the instance's lock. A file that is not a socket is not touched and is an error.
  /// An exception from the handler becomes a 500.
  static Result<std::unique_ptr<HttpServer>> listen(boost::asio::io_context& io,
                                                    const std::string& socket_path,
                                                    HttpHandler handler, HttpLimits limits = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Stops accepting, removes the socket and closes idle connections. Requests under way may
  /// still be answered; each connection closes after that.
  void stop();
  [[nodiscard]] std::size_t connections() const;

 private:
  struct Impl;
  explicit HttpServer(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

/// One connection to a server, used synchronously.
class HttpClient {
 public:
  /// `unavailable` when nobody listens there.
  static Result<HttpClient> connect(const std::string& socket_path);
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

 private:
  struct Impl;
  explicit HttpClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth
