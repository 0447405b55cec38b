// The server and the client over a real socket. The server runs on a thread of its own; handlers
// run there, so what they record is read only after the server has been joined.
#include "api/http.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "api/socket.hpp"

namespace berth {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
namespace fs = std::filesystem;

class TempDir {
 public:
  TempDir() {
    std::string name = (fs::temp_directory_path() / "berth-http-XXXXXX").native();
    path_ = ::mkdtemp(name.data());
  }
  ~TempDir() { fs::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ / name; }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

class RunningServer {
 public:
  RunningServer(const std::string& path, HttpHandler handler, HttpLimits limits = {}) {
    auto server = HttpServer::listen(io_, path, std::move(handler), limits);
    EXPECT_TRUE(server.has_value()) << (server ? "" : server.error().message);
    server_ = std::move(*server);
    thread_ = std::thread([this] { io_.run(); });
  }
  ~RunningServer() { join(); }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  /// Runs `action` on the server's thread.
  template <class F>
  auto on_thread(F action) {
    std::promise<decltype(action())> promise;
    boost::asio::post(io_, [&] {
      if constexpr (std::is_void_v<decltype(action())>) {
        action();
        promise.set_value();
      } else {
        promise.set_value(action());
      }
    });
    return promise.get_future().get();
  }
  void stop() {
    on_thread([&] { server_->stop(); });
  }
  std::size_t connections() {
    return on_thread([&] { return server_->connections(); });
  }
  void join() {
    if (thread_.joinable()) {
      boost::asio::post(io_, [&] {
        server_.reset();
        guard_.reset();
        io_.stop();
      });
      thread_.join();
    }
  }
  boost::asio::io_context& io() { return io_; }

 private:
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{
      io_.get_executor()};
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

HttpHandler echo() {
  return [](HttpRequest request, Respond respond) {
    std::string body = request.method + " " + request.path;
    for (const auto& [name, value] : request.query) {
      body += " " + name + "=" + value;
    }
    HttpResponse response;
    response.body = body + "\n" + request.body;
    respond(std::move(response));
  };
}

HttpClient connect(const std::string& path) {
  auto client = HttpClient::connect(path);
  EXPECT_TRUE(client.has_value()) << (client ? "" : client.error().message);
  return std::move(*client);
}

void write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = ::send(fd, data.data(), data.size(), MSG_NOSIGNAL);
    if (n > 0) {
      data.remove_prefix(static_cast<std::size_t>(n));
    } else if (n < 0 && errno == EAGAIN) {
      pollfd wait{fd, POLLOUT, 0};
      ::poll(&wait, 1, 1000);
    } else {
      return;
    }
  }
}

/// Everything that comes until the server closes, or five minutes' silence.
std::string read_all(int fd) {
  std::string out;
  std::array<char, 4096> buffer{};
  while (true) {
    pollfd wait{fd, POLLIN, 0};
    if (::poll(&wait, 1, 60'000) != 1) {
      return out + "<silence>";
    }
    const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (n <= 0) {
      return out;
    }
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

TEST(HttpTest, OneConnectionCarriesManyRequests) {
  const TempDir dir;
  RunningServer server(dir / "sock", echo());
  HttpClient client = connect(dir / "sock");
  for (int i = 0; i < 50; ++i) {
    const auto answer = client.request("POST", "/a%20b?x=1%2C2&y=%C3%A9+z", "body");
    ASSERT_TRUE(answer.has_value()) << answer.error().message;
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->content_type, "application/json");
    EXPECT_EQ(answer->body, "POST /a b x=1,2 y=\u00e9 z\nbody");
  }
  EXPECT_EQ(server.connections(), 1U);
}

TEST(HttpTest, TheSocketIsForItsOwnerAndGoneAfterStop) {
  const TempDir dir;
  RunningServer server(dir / "sock", echo());
  struct stat st{};
  ASSERT_EQ(::stat((dir / "sock").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777U, 0600U);
  server.stop();
  EXPECT_FALSE(fs::exists(dir / "sock"));
  const auto client = HttpClient::connect(dir / "sock");
  ASSERT_FALSE(client.has_value());
  EXPECT_EQ(client.error().code, ErrorCode::unavailable);
}

TEST(HttpTest, TheHandlerLearnsWhoAsks) {
  const TempDir dir;
  std::uint32_t uid = 12345;
  std::uint32_t pid = 0;
  std::string agent;
  RunningServer server(dir / "sock", [&](HttpRequest request, Respond respond) {
    uid = request.peer_uid;
    pid = request.peer_pid;
    agent = request.headers["user-agent"];
    respond({});
  });
  ASSERT_TRUE(connect(dir / "sock").request("GET", "/").has_value());
  server.join();
  EXPECT_EQ(uid, ::geteuid());
  EXPECT_EQ(pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_THAT(agent, StartsWith("berth/"));
}

TEST(HttpTest, AnAnswerMayComeLater) {
  const TempDir dir;
  Respond kept;
  RunningServer server(dir / "sock", [&](HttpRequest request, Respond respond) {
    if (request.path == "/later") {
      kept = std::move(respond);
    } else {
      kept(HttpResponse{201, "late", "text/plain", {{"X-Kind", "late"}}, {}});
      kept(HttpResponse{202, "twice", "text/plain", {}, {}});
      respond({});
    }
  });
  HttpClient waiting = connect(dir / "sock");
  auto answer = std::async(std::launch::async, [&] { return waiting.request("GET", "/later"); });
  while (!server.on_thread([&] { return static_cast<bool>(kept); })) {
    std::this_thread::sleep_for(Millis(1));
  }
  ASSERT_TRUE(connect(dir / "sock").request("GET", "/now").has_value());
  const auto late = answer.get();
  ASSERT_TRUE(late.has_value()) << late.error().message;
  EXPECT_EQ(late->status, 201);
  EXPECT_EQ(late->body, "late");
  EXPECT_THAT(late->headers,
              ::testing::Contains(std::pair<std::string, std::string>("x-kind", "late")));
  server.on_thread([&] { kept = nullptr; });
}

TEST(HttpTest, AnAnswerForAClientThatLeftIsHarmless) {
  const TempDir dir;
  Respond kept;
  RunningServer server(dir / "sock", [&](HttpRequest request, Respond respond) {
    request.path == "/later" ? void(kept = std::move(respond)) : respond({});
  });
  {
    HttpClient impatient = connect(dir / "sock");
    const auto answer = impatient.request("GET", "/later", "", Millis(100));
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
    EXPECT_THAT(answer.error().message, HasSubstr("in time"));
  }
  while (server.connections() != 0) {  // the server notices although it owes an answer
    std::this_thread::sleep_for(Millis(1));
  }
  server.on_thread([&] {
    if (kept) kept({});
    kept = nullptr;
  });
  EXPECT_TRUE(connect(dir / "sock").request("GET", "/").has_value());
}

TEST(HttpTest, ARequestUnderWayCanBeAbandoned) {
  const TempDir dir;
  Respond kept;
  RunningServer server(dir / "sock",
                       [&](const HttpRequest&, Respond respond) { kept = std::move(respond); });
  HttpClient waiting = connect(dir / "sock");
  auto answer = std::async(std::launch::async, [&] {
    return waiting.request("GET", "/later", "", std::chrono::hours(1));
  });
  while (!server.on_thread([&] { return static_cast<bool>(kept); })) {
    std::this_thread::sleep_for(Millis(1));
  }
  waiting.abandon();
  const auto late = answer.get();
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, ErrorCode::unavailable);
  server.on_thread([&] { kept = nullptr; });
}

TEST(HttpTest, AnAnswerThatNobodyGivesIsAnError) {
  const TempDir dir;
  RunningServer server(dir / "sock", [](HttpRequest, Respond) {});
  const auto answer = connect(dir / "sock").request("GET", "/");
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->status, 500);
  EXPECT_THAT(answer->body, HasSubstr("dropped"));
}

TEST(HttpTest, AThrowingHandlerIsAnErrorAndTheServerGoesOn) {
  const TempDir dir;
  RunningServer server(dir / "sock", [](HttpRequest request, Respond respond) {
    if (request.path == "/throw") {
      throw std::runtime_error("broken \"handler\"");
    }
    respond({});
  });
  HttpClient client = connect(dir / "sock");
  const auto answer = client.request("GET", "/throw");
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->status, 500);
  EXPECT_THAT(answer->body, HasSubstr(R"(broken \"handler\")"));
  EXPECT_TRUE(client.request("GET", "/").has_value());
}

TEST(HttpTest, ABodyOverTheLimitIsRefusedWithAMessage) {
  const TempDir dir;
  HttpLimits limits;
  limits.body_bytes = 1 << 20;
  RunningServer server(dir / "sock", echo(), limits);
  const std::string fits(1 << 20, 'x');
  const auto good = connect(dir / "sock").request("POST", "/", fits);
  ASSERT_TRUE(good.has_value()) << good.error().message;
  EXPECT_EQ(good->body.size(), fits.size() + 7);
  const auto bad = connect(dir / "sock").request("POST", "/", std::string(8 << 20, 'x'));
  ASSERT_TRUE(bad.has_value()) << bad.error().message;
  EXPECT_EQ(bad->status, 413);
  EXPECT_THAT(bad->body, HasSubstr("1 MiB"));
}

// Room was made for the whole of it before the limit was looked at; the daemon died of that.
TEST(HttpTest, ALengthOverTheLimitIsRefusedBeforeAnyOfTheBody) {
  const TempDir dir;
  RunningServer server(dir / "sock", echo());
  for (const std::string length : {"99999999999", "4611686018427387904"}) {
    const Fd fd = std::move(*connect_unix(dir / "sock"));
    write_all(fd.get(),
              "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + length + "\r\n\r\nhello");
    ::shutdown(fd.get(), SHUT_WR);
    EXPECT_THAT(read_all(fd.get()), StartsWith("HTTP/1.1 413")) << length;
  }
  EXPECT_TRUE(connect(dir / "sock").request("GET", "/").has_value());
}

TEST(HttpTest, AHeaderOverTheLimitIsRefused) {
  const TempDir dir;
  RunningServer server(dir / "sock", echo());
  const auto answer = connect(dir / "sock").request("GET", "/" + std::string(20'000, 'x'));
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->status, 431);
}

// The parser is done with a line once it has seen how the next begins, and counts anew from there
// unless it has seen more of it.
TEST(HttpTest, AHeaderThatComesLineByLineIsRefusedLikeOneOfALongLine) {
  const TempDir dir;
  RunningServer server(dir / "sock", echo());
  const Fd fd = std::move(*connect_unix(dir / "sock"));
  write_all(fd.get(), "GET / HTTP/1.1\r\nX");
  pollfd answered{fd.get(), POLLIN, 0};
  int lines = 0;
  while (lines < 1'000 && ::poll(&answered, 1, 0) == 0) {
    int unread = 0;
    if (::ioctl(fd.get(), SIOCOUTQ, &unread) == 0 && unread > 0) {
      std::this_thread::yield();
      continue;
    }
    ++lines;
    write_all(fd.get(), ": " + std::string(100, 'x') + "\r\nX");
  }
  EXPECT_LT(lines, 1'000);
  EXPECT_THAT(read_all(fd.get()), StartsWith("HTTP/1.1 431"));
}

TEST(HttpTest, WhatIsNotHttpIsToldSo) {
  const TempDir dir;
  RunningServer server(dir / "sock", echo());
  const Fd fd = std::move(*connect_unix(dir / "sock"));
  write_all(fd.get(), "what is this?\r\n\r\n");
  ::shutdown(fd.get(), SHUT_WR);
  EXPECT_THAT(read_all(fd.get()), StartsWith("HTTP/1.1 400"));
}

// Taken for one without a body, its body was the next request on the connection.
TEST(HttpTest, ABodyOfWhichTheEndIsUnclearIsRefusedAndNothingBehindItRead) {
  const TempDir dir;
  std::atomic<int> handled = 0;
  RunningServer server(dir / "sock", [&](HttpRequest, Respond respond) {
    ++handled;
    respond({});
  });
  const std::string second = "GET /second HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  for (const std::string& framing : {
           std::string("Transfer-Encoding: xchunked"),
           std::string("Transfer-Encoding: chunked, identity"),
           std::string("Transfer-Encoding: identity, chunked"),
           std::string("Transfer-Encoding: identity"),
           std::string("Transfer-Encoding: gzip, chunked"),
           std::string("Transfer-Encoding: chunked, chunked"),
           std::string("Transfer-Encoding: chunked;q=1"),
           std::string("Transfer-Encoding:"),
           std::string("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"),
           std::string("Transfer-Encoding: xchunked\r\nContent-Length: 3"),
           std::string("Transfer-Encoding: chunked\r\nContent-Length: 3"),
           std::string("Content-Length: 3\r\nTransfer-Encoding: chunked"),
           std::string("Transfer-Encoding:\r\n chunked"),
           std::string("X-Note: a\r\n\tb"),
           std::string("X-Note: a\r\n \r\nContent-Length: 0"),
       }) {
    const Fd fd = std::move(*connect_unix(dir / "sock"));
    write_all(fd.get(), "GET /first HTTP/1.1\r\nHost: x\r\n" + framing + "\r\n\r\n" + second);
    ::shutdown(fd.get(), SHUT_WR);
    const std::string all = read_all(fd.get());
    EXPECT_THAT(all, StartsWith("HTTP/1.1 400")) << framing;
    EXPECT_EQ(all.find("HTTP/1.1", 1), std::string::npos) << framing << "\n" << all;
  }
  const Fd old = std::move(*connect_unix(dir / "sock"));
  write_all(old.get(), "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  EXPECT_THAT(read_all(old.get()), StartsWith("HTTP/1.1 400"));
  EXPECT_EQ(handled, 0);
}

TEST(HttpTest, AChunkedBodyIsReadHoweverItsCodingIsSpelt) {
  const TempDir dir;
  RunningServer server(dir / "sock", echo());
  for (const std::string coding : {"chunked", "Chunked", " CHUNKED "}) {
    const Fd fd = std::move(*connect_unix(dir / "sock"));
    write_all(fd.get(), "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding:" +
                            coding + "\r\n\r\n2\r\nok\r\n0\r\n\r\n");
    EXPECT_THAT(read_all(fd.get()), ::testing::EndsWith("POST /\nok")) << coding;
  }
}

TEST(HttpTest, AHeaderMayComeByteByByteAndManyAtOnce) {
  const TempDir dir;
  RunningServer server(dir / "sock", echo());
  const Fd fd = std::move(*connect_unix(dir / "sock"));
  for (const char byte :
       std::string("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nok")) {
    write_all(fd.get(), std::string(1, byte));
  }
  write_all(fd.get(),
            "GET /b HTTP/1.1\r\nHost: x\r\n\r\nGET /c HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string all = read_all(fd.get());
  EXPECT_THAT(all, HasSubstr("POST /a\nok"));
  EXPECT_THAT(all, HasSubstr("GET /b\n"));
  EXPECT_THAT(all, ::testing::EndsWith("GET /c\n"));
}

TEST(HttpTest, ABrokenTargetIsRefused) {
  const TempDir dir;
  RunningServer server(dir / "sock", echo());
  HttpClient client = connect(dir / "sock");
  const auto answer = client.request("GET", "/a%zz");
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->status, 400);
}

TEST(HttpTest, ASlowClientIsDroppedAndOthersAreServed) {
  const TempDir dir;
  HttpLimits limits;
  limits.header_timeout = Millis(50);
  RunningServer server(dir / "sock", echo(), limits);
  const Fd slow = std::move(*connect_unix(dir / "sock"));
  write_all(slow.get(), "GET / HTTP/1.1\r\nHost:");
  EXPECT_TRUE(connect(dir / "sock").request("GET", "/").has_value());
  EXPECT_EQ(read_all(slow.get()), "");  // closed, not answered
}

TEST(HttpTest, AHalfClosedClientStillGetsItsAnswer) {
  const TempDir dir;
  Respond kept;
  std::atomic<bool> have = false;
  RunningServer server(dir / "sock", [&](HttpRequest, Respond respond) {
    kept = std::move(respond);
    have = true;
  });
  const Fd fd = std::move(*connect_unix(dir / "sock"));
  write_all(fd.get(), "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  ::shutdown(fd.get(), SHUT_WR);
  while (!have) {
    std::this_thread::sleep_for(Millis(1));
  }
  server.on_thread([&] {
    kept(HttpResponse{200, "still here", "text/plain", {}, {}});
    kept = nullptr;
  });
  EXPECT_THAT(read_all(fd.get()), HasSubstr("still here"));
}

TEST(HttpTest, ContinueIsSentToThoseWhoWaitForIt) {
  const TempDir dir;
  RunningServer server(dir / "sock", echo());
  const Fd fd = std::move(*connect_unix(dir / "sock"));
  write_all(fd.get(),
            "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n"
            "Connection: close\r\n\r\n");
  pollfd wait{fd.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&wait, 1, 60'000), 1);
  write_all(fd.get(), "ok");
  const std::string all = read_all(fd.get());
  EXPECT_THAT(all, StartsWith("HTTP/1.1 100"));
  EXPECT_THAT(all, ::testing::EndsWith("POST /\nok"));
}

TEST(HttpTest, HeadGetsTheHeaderOfAGetAlone) {
  const TempDir dir;
  RunningServer server(dir / "sock", [](const HttpRequest& request, const Respond& respond) {
    HttpResponse response;
    response.body = "twelve bytes";
    if (request.path == "/stream") {
      response.stream = [](const std::shared_ptr<ResponseSink>&) { FAIL() << "nobody reads it"; };
    }
    respond(std::move(response));
  });
  const Fd fd = std::move(*connect_unix(dir / "sock"));
  write_all(fd.get(),
            "HEAD / HTTP/1.1\r\nHost: x\r\n\r\nHEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n"
            "HEAD /%zz HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string all = read_all(fd.get());
  EXPECT_THAT(all, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(all, HasSubstr("Content-Length: 12\r\n"));
  EXPECT_THAT(all, HasSubstr("ETag: W/"));
  EXPECT_THAT(all, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(all, HasSubstr("HTTP/1.1 400"));
  EXPECT_THAT(all, ::testing::EndsWith("\r\n\r\n"));
  EXPECT_THAT(all, ::testing::Not(HasSubstr("twelve")));
}

TEST(HttpTest, WhoHasAnAnswerIsToldOfNoLength) {
  const TempDir dir;
  RunningServer server(dir / "sock", echo());
  const Fd fd = std::move(*connect_unix(dir / "sock"));
  write_all(fd.get(),
            "GET / HTTP/1.1\r\nHost: x\r\nIf-None-Match: *\r\n\r\n"
            "GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string all = read_all(fd.get());
  EXPECT_THAT(all, StartsWith("HTTP/1.1 304"));
  EXPECT_THAT(all.substr(0, all.find("\r\n\r\n")), ::testing::Not(HasSubstr("Content-Length")));
  EXPECT_THAT(all, ::testing::EndsWith("GET /next\n"));
}

TEST(HttpTest, ConnectionsBeyondTheLimitAreTurnedAway) {
  const TempDir dir;
  HttpLimits limits;
  limits.connections = 2;
  RunningServer server(dir / "sock", echo(), limits);
  HttpClient first = connect(dir / "sock");
  HttpClient second = connect(dir / "sock");
  ASSERT_TRUE(first.request("GET", "/").has_value());
  ASSERT_TRUE(second.request("GET", "/").has_value());
  const auto third = connect(dir / "sock").request("GET", "/");
  ASSERT_TRUE(third.has_value()) << third.error().message;
  EXPECT_EQ(third->status, 429);
  EXPECT_TRUE(first.request("GET", "/").has_value());
}

TEST(HttpTest, StopLetsAPendingAnswerOut) {
  const TempDir dir;
  Respond kept;
  std::atomic<bool> have = false;
  RunningServer server(dir / "sock", [&](HttpRequest, Respond respond) {
    kept = std::move(respond);
    have = true;
  });
  HttpClient client = connect(dir / "sock");
  auto answer = std::async(std::launch::async, [&] { return client.request("POST", "/stop"); });
  while (!have) {
    std::this_thread::sleep_for(Millis(1));
  }
  server.stop();
  server.on_thread([&] {
    kept(HttpResponse{200, "bye", "text/plain", {}, {}});
    kept = nullptr;
  });
  const auto got = answer.get();
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(got->body, "bye");
  EXPECT_FALSE(client.request("GET", "/").has_value());
}

TEST(HttpTest, ASocketLeftByADeadServerIsReplaced) {
  const TempDir dir;
  {
    const Fd dead = std::move(*listen_unix(dir / "sock"));
  }
  ASSERT_TRUE(fs::exists(dir / "sock"));
  EXPECT_FALSE(HttpClient::connect(dir / "sock").has_value());
  RunningServer server(dir / "sock", echo());
  EXPECT_TRUE(connect(dir / "sock").request("GET", "/").has_value());
}

TEST(HttpTest, AFileInTheWayIsNotTouched) {
  const TempDir dir;
  std::ofstream(dir / "sock") << "precious";
  boost::asio::io_context io;
  const auto server = HttpServer::listen(io, dir / "sock", echo());
  ASSERT_FALSE(server.has_value());
  EXPECT_THAT(server.error().message, HasSubstr("not a socket"));
  EXPECT_EQ(fs::file_size(dir / "sock"), 8U);
}

TEST(HttpTest, ThePathOfTheSocketMayBeLong) {
  const TempDir dir;
  const fs::path deep = dir.path() / std::string(120, 'a') / std::string(120, 'b');
  fs::create_directories(deep);
  RunningServer server(deep / "sock", echo());
  EXPECT_TRUE(fs::is_socket(deep / "sock"));
  EXPECT_TRUE(connect(deep / "sock").request("GET", "/").has_value());
  server.stop();
  EXPECT_FALSE(fs::exists(deep / "sock"));
}

/// Adds up a stream piece by piece and answers with its length, or early with an error.
struct Counter : std::enable_shared_from_this<Counter> {
  std::shared_ptr<BodyStream> stream;
  Respond respond;
  std::size_t total = 0;
  std::size_t pieces = 0;
  std::size_t refuse_above = SIZE_MAX;

  void next() {
    stream->read([self = shared_from_this()](Result<std::string> piece) {
      if (!piece) {
        return;
      }
      self->total += piece->size();
      ++self->pieces;
      HttpResponse response;
      if (self->total > self->refuse_above) {
        response.status = 400;
        response.body = "too much";
        self->respond(std::move(response));
      } else if (piece->empty()) {
        response.body = std::to_string(self->total);
        self->respond(std::move(response));
      } else {
        self->next();
      }
    });
  }
};

HttpHandler counting(std::size_t refuse_above = SIZE_MAX) {
  return [refuse_above](const HttpRequest& request, Respond respond) {
    const auto counter = std::make_shared<Counter>();
    counter->stream = request.stream;
    counter->respond = std::move(respond);
    counter->refuse_above = refuse_above;
    counter->next();
  };
}

TEST(HttpStream, ABodyLargerThanTheLimitOfBodiesArrivesInPieces) {
  const TempDir dir;
  HttpLimits limits;
  limits.body_bytes = 1'000;
  const RunningServer server(dir / "sock", counting(), limits);
  HttpClient client = connect(dir / "sock");
  int pieces = 0;
  const auto response = client.stream(
      "POST", "/", [&] { return ++pieces > 20 ? std::string() : std::string(100'000, 'x'); });
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "2000000");
}

TEST(HttpStream, AnEarlyRefusalIsHeard) {
  const TempDir dir;
  const RunningServer server(dir / "sock", counting(500'000));
  HttpClient client = connect(dir / "sock");
  int pieces = 0;
  const auto response = client.stream(
      "POST", "/", [&] { return ++pieces > 10'000 ? std::string() : std::string(100'000, 'x'); });
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 400);
  EXPECT_EQ(response->body, "too much");
  EXPECT_LT(pieces, 10'000);
}

TEST(HttpStream, AnEmptyStreamEndsAtOnce) {
  const TempDir dir;
  const RunningServer server(dir / "sock", counting());
  HttpClient client = connect(dir / "sock");
  const auto response = client.stream("POST", "/", [] { return std::string(); });
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "0");
}

}  // namespace
}  // namespace berth
