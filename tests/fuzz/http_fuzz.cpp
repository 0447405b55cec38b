// Bytes sent to the real server over a unix socket. The first byte says in how many pieces. The
// server ends every connection whose client has finished sending, answers with HTTP and nothing
// else, answers every request it understood, and hands out only targets and bodies within limits.

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "api/http.hpp"
#include "api/routes.hpp"
#include "api/socket.hpp"
#include "api/target.hpp"
#include "support.hpp"

namespace {

using namespace berth;

constexpr HttpLimits kLimits = [] {
  HttpLimits limits;
  limits.header_bytes = 512;
  limits.body_bytes = 256;
  limits.stream_bytes = 512;
  return limits;
}();

/// The server, and what it has been asked since the last look.
class Subject {
 public:
  Subject() {
    std::string name = "/tmp/berth-fuzz-XXXXXX";
    BERTH_ASSERT(::mkdtemp(name.data()) != nullptr);
    directory_ = name;
    auto server = HttpServer::listen(
        io_, socket_path(),
        [this](HttpRequest request, Respond respond) {
          handle(std::move(request), std::move(respond));
        },
        kLimits);
    BERTH_ASSERT(server.has_value());
    server_ = std::move(*server);
  }
  ~Subject() {
    server_.reset();
    io_.poll();
    std::filesystem::remove_all(directory_);
  }
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  /// All that comes back.
  std::string talk(std::string_view bytes, std::size_t piece) {
    asked_ = streams_ = 0;
    Fd client = connect_unix(socket_path()).value();
    BERTH_ASSERT(::fcntl(client.get(), F_SETFL, O_NONBLOCK) == 0);
    std::string answer;
    bool sending = true;
    for (int turn = 0;; ++turn) {
      BERTH_ASSERT(turn < 100'000);  // it neither answers nor goes on reading
      if (sending) {
        const auto sent = ::send(client.get(), bytes.data(), std::min(piece, bytes.size()),
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
          bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
        if (bytes.empty() || (sent < 0 && errno != EAGAIN)) {
          sending = false;
          ::shutdown(client.get(), SHUT_WR);
        }
      }
      io_.restart();
      io_.poll();
      if (receive(client.get(), answer)) {
        break;
      }
    }
    client = Fd();
    for (int turn = 0; server_->connections() > 0; ++turn) {
      BERTH_ASSERT(turn < 1000);  // a connection whose client has gone is kept
      io_.restart();
      io_.poll();
    }
    return answer;
  }

  [[nodiscard]] std::size_t asked() const { return asked_; }
  [[nodiscard]] std::size_t streams() const { return streams_; }

 private:
  [[nodiscard]] std::string socket_path() const { return directory_ + "/sock"; }

  /// Whether that was all.
  static bool receive(int fd, std::string& answer) {
    char buffer[16 * 1024];
    for (;;) {
      const auto got = ::recv(fd, buffer, sizeof buffer, 0);
      if (got <= 0) {
        return got == 0 || errno != EAGAIN;
      }
      answer.append(buffer, static_cast<std::size_t>(got));
    }
  }

  void handle(HttpRequest request, Respond respond) {
    ++asked_;
    BERTH_ASSERT(request.path.starts_with('/'));
    BERTH_ASSERT(request.path.find('\0') == std::string::npos);
    BERTH_ASSERT(request.body.size() <= kLimits.body_bytes);
    BERTH_ASSERT(request.body.empty() || !request.stream);
    std::size_t length = request.method.size();
    for (const auto& [name, value] : request.headers) {
      BERTH_ASSERT(value.find('\n') == std::string::npos);
      length += name.size() + value.size();
    }
    BERTH_ASSERT(length <= 2 * kLimits.header_bytes);
    const auto match = match_route(request.method, request.path);
    BERTH_ASSERT(!match.route || match.allowed.empty());
    if (request.stream) {
      ++streams_;
      return read_on(request.stream, 0, std::move(respond));
    }
    HttpResponse response;
    response.status = match.route ? 200 : !match.allowed.empty() ? 405 : 404;
    response.body = std::to_string(request.body.size());
    if (request.query.contains("drop")) {
      return;  // answered by the server
    }
    if (request.query.contains("later")) {
      boost::asio::post(io_, [respond, response] { respond(response); });
      return;
    }
    respond(response);
    respond(response);  // does nothing
  }

  void read_on(const std::shared_ptr<BodyStream>& stream, std::size_t before, Respond respond) {
    stream->read([this, stream, before, respond](Result<std::string> piece) {
      if (!piece) {
        BERTH_ASSERT(!piece.error().message.empty());
        return;
      }
      const std::size_t size = before + piece->size();
      BERTH_ASSERT(size <= kLimits.stream_bytes);
      if (!piece->empty()) {
        return read_on(stream, size, respond);
      }
      HttpResponse response;
      response.body = std::to_string(size);
      respond(response);
    });
  }

  boost::asio::io_context io_{1};
  std::string directory_;
  std::unique_ptr<HttpServer> server_;
  std::size_t asked_ = 0;
  std::size_t streams_ = 0;
};

/// How many answers these bytes are; asserts that they are answers and nothing else.
std::size_t count_answers(std::string_view bytes) {
  std::size_t count = 0;
  while (!bytes.empty()) {
    BERTH_ASSERT(bytes.starts_with("HTTP/1.1 "));
    const int status = std::atoi(std::string(bytes.substr(9, 3)).c_str());
    BERTH_ASSERT(status == 100 || (status >= 200 && status < 600));
    const auto end = bytes.find("\r\n\r\n");
    BERTH_ASSERT(end != std::string_view::npos);
    const std::string_view header = bytes.substr(0, end + 2);
    bytes.remove_prefix(end + 4);
    if (status == 100) {
      continue;
    }
    ++count;
    constexpr std::string_view kLength = "\r\nContent-Length: ";
    const auto at = header.find(kLength);
    BERTH_ASSERT(at != std::string_view::npos);
    const auto length =
        std::strtoull(std::string(header.substr(at + kLength.size())).c_str(), nullptr, 10);
    BERTH_ASSERT(length <= bytes.size());  // cut short
    bytes.remove_prefix(length);
  }
  return count;
}

void check_target(std::string_view text) {
  const auto target = parse_target(text);
  if (!target) {
    return;
  }
  std::string written;
  for (std::string_view rest = target->path; !rest.empty();) {  // slashes stay as they are
    const auto slash = rest.find('/');
    written += percent_encode(rest.substr(0, slash));
    written += slash == std::string_view::npos ? "" : "/";
    rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
  }
  char mark = '?';
  for (const auto& [name, value] : target->query) {
    written += mark + percent_encode(name) + "=" + percent_encode(value);
    mark = '&';
  }
  const auto again = parse_target(written);
  BERTH_ASSERT(again && again->path == target->path && again->query == target->query);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static Subject subject;
  if (size == 0) {
    return 0;
  }
  const auto text = fuzz::text_of(data + 1, size - 1);
  check_target(text);
  const std::size_t pieces = 1 + data[0] % 8;
  const auto answers = count_answers(subject.talk(text, text.size() / pieces + 1));
  // One more may say that something was no request; a stream that ended early gets none.
  BERTH_ASSERT(answers <= subject.asked() + 1 + text.size() / 16);
  BERTH_ASSERT(answers + subject.streams() >= subject.asked());
  return 0;
}
