// Answers that are made while they are sent, and the gate, over real TCP sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <thread>

#include "api/http.hpp"
#include "api/http_answer.hpp"
#include "api/socket.hpp"

namespace berth {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Sink = std::shared_ptr<ResponseSink>;
constexpr std::size_t kLargeAnswer = 20'000'000;

class TcpServer {
 public:
  explicit TcpServer(HttpService service) {
    auto server = HttpServer::listen(io_, TcpAddress{}, nullptr, std::move(service));
    EXPECT_TRUE(server.has_value()) << (server ? "" : server.error().message);
    server_ = std::move(*server);
    port_ = server_->port();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~TcpServer() {
    boost::asio::post(io_, [&] {
      server_.reset();
      io_.stop();
    });
    thread_.join();
  }
  TcpServer(const TcpServer&) = delete;
  TcpServer& operator=(const TcpServer&) = delete;

  template <class F>
  void on_thread(F action) {
    std::promise<void> done;
    boost::asio::post(io_, [&] {
      action();
      done.set_value();
    });
    done.get_future().get();
  }
  [[nodiscard]] HttpServer& server() { return *server_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] Fd connect() const {
    auto fd = connect_tcp("127.0.0.1", port_);
    EXPECT_TRUE(fd.has_value());
    return std::move(*fd);
  }
  [[nodiscard]] HttpClient client(const std::string& token = "") const {
    HttpRemote remote;
    remote.host = "127.0.0.1";
    remote.port = port_;
    remote.token = token;
    auto client = HttpClient::connect(remote);
    EXPECT_TRUE(client.has_value());
    return std::move(*client);
  }

 private:
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{
      io_.get_executor()};
  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

HttpService streaming(std::function<void(Sink)> stream, HttpLimits limits = {}) {
  HttpService service;
  service.limits = limits;
  service.handler = [stream = std::move(stream)](const HttpRequest&, const Respond& respond) {
    HttpResponse response;
    response.content_type = "text/event-stream";
    response.stream = stream;
    respond(std::move(response));
  };
  return service;
}

void send_text(int fd, std::string_view text) {
  ASSERT_EQ(::send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

/// Everything that comes until the server closes.
std::string read_all(int fd) {
  std::string out;
  std::array<char, 4096> buffer{};
  while (true) {
    pollfd wait{fd, POLLIN, 0};
    if (::poll(&wait, 1, 60'000) != 1) {
      return out + "<silence>";
    }
    const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (got <= 0) {
      return out;
    }
    out.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

TEST(HttpStreamTest, PiecesArriveAndTheConnectionGoesOn) {
  const TcpServer server(streaming([](const Sink& sink) {
    sink->write("one ");
    sink->write("");
    sink->write("two");
    sink->close();
    sink->write("never");
  }));
  HttpClient client = server.client();
  for (int i = 0; i < 3; ++i) {
    const auto response = client.request("GET", "/");
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, "one two");
    EXPECT_EQ(response->content_type, "text/event-stream");
  }
}

TEST(HttpStreamTest, AnOldClientGetsNoChunks) {
  for (const bool complete : {true, false}) {
    const TcpServer server(streaming([complete](const Sink& sink) {
      sink->write("one ");
      sink->write("two");
      if (complete) {
        sink->close();
      }
    }));
    const Fd fd = server.connect();
    send_text(fd.get(), "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    const std::string all = read_all(fd.get());
    EXPECT_THAT(all, ::testing::Not(HasSubstr("Transfer-Encoding")));
    if (complete) {
      EXPECT_THAT(all, HasSubstr("Connection: close\r\n"));
      EXPECT_THAT(all, ::testing::EndsWith("\r\n\r\none two"));
    } else {
      EXPECT_EQ(errno, ECONNRESET) << "its end must not look like that of the answer";
    }
  }
}

TEST(HttpStreamTest, WhatComesLaterIsSentWhenItComes) {
  std::promise<Sink> made;
  TcpServer server(streaming([&](Sink sink) { made.set_value(std::move(sink)); }));
  std::thread writer([&] {
    Sink sink = made.get_future().get();
    server.on_thread([&] { sink->write("first"); });
    server.on_thread([&] {
      sink->write(" last");
      sink->close();
      sink.reset();
    });
  });
  HttpClient client = server.client();
  std::string got;
  const auto response = client.follow("/", [&](std::string_view piece) {
    got += piece;
    return true;
  });
  writer.join();
  ASSERT_TRUE(response.has_value()) << response.error().message;
  EXPECT_EQ(got, "first last");
}

TEST(HttpStreamTest, WhoeverDropsAStreamBreaksItOff) {
  const TcpServer server(streaming([](const Sink& sink) { sink->write("half"); }));
  HttpClient client = server.client();
  const auto response = client.request("GET", "/");
  EXPECT_FALSE(response.has_value()) << "an answer that is not complete must not look so";
}

/// Writes a piece whenever the one before is out.
struct Pump : std::enable_shared_from_this<Pump> {
  Sink sink;
  int left = 0;

  void next() {
    if (left-- == 0) {
      sink->close();
      return;
    }
    sink->write(std::string(100'000, 'x'));
    EXPECT_GT(sink->pending(), 0U);
    sink->on_drained([self = shared_from_this()] { self->next(); });
  }
};

TEST(HttpStreamTest, APaceIsKeptByWaitingForTheDrain) {
  const TcpServer server(streaming([](Sink sink) {
    const auto pump = std::make_shared<Pump>();
    pump->sink = std::move(sink);
    pump->left = 50;
    pump->next();
  }));
  HttpClient client = server.client();
  const auto response = client.request("GET", "/");
  ASSERT_TRUE(response.has_value()) << response.error().message;
  EXPECT_EQ(response->body.size(), 50U * 100'000U);
}

TEST(HttpStreamTest, AClientThatLeavesIsNoticed) {
  std::promise<void> gone;
  Sink kept;
  TcpServer server(streaming([&](Sink sink) {
    sink->write("hello");
    sink->on_gone([&] { gone.set_value(); });
    kept = std::move(sink);
  }));
  {
    const Fd fd = server.connect();
    send_text(fd.get(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    pollfd wait{fd.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&wait, 1, 60'000), 1);
  }
  EXPECT_EQ(gone.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  server.on_thread([&] {
    kept->write("for nobody");
    EXPECT_EQ(kept->pending(), 0U);
    kept.reset();
  });
}

TEST(HttpStreamTest, AClientThatDoesNotReadIsCut) {
  HttpLimits limits;
  limits.write_timeout = Millis(100);
  std::promise<void> gone;
  Sink kept;
  TcpServer server(streaming(
      [&](Sink sink) {
        // NOLINTNEXTLINE(bugprone-string-constructor): more than any buffer takes
        sink->write(std::string(20'000'000, 'x'));
        sink->on_gone([&] { gone.set_value(); });
        kept = std::move(sink);
      },
      limits));
  const Fd fd = server.connect();
  send_text(fd.get(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(gone.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  server.on_thread([&] { kept.reset(); });
}

/// What the client reads, `piece` bytes at a time and then a pause, until the server closes.
std::size_t read_slowly(int fd, std::size_t piece, Millis pause) {
  std::string buffer(piece, '\0');
  std::size_t got = 0;
  while (true) {
    pollfd wait{fd, POLLIN, 0};
    if (::poll(&wait, 1, 60'000) != 1) {
      ADD_FAILURE() << "silence after " << got << " bytes";
      return got;
    }
    const ssize_t size = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (size <= 0) {
      return got;
    }
    got += static_cast<std::size_t>(size);
    std::this_thread::sleep_for(pause);
  }
}

HttpService large_answers(bool streamed, HttpLimits limits) {
  HttpService service;
  service.limits = limits;
  service.handler = [streamed](const HttpRequest&, const Respond& respond) {
    HttpResponse response;
    // NOLINTNEXTLINE(bugprone-string-constructor): more than any buffer takes
    std::string text(kLargeAnswer, 'x');
    if (streamed) {
      response.stream = [text = std::move(text)](const Sink& sink) {
        sink->write(text);
        sink->close();
      };
    } else {
      response.body = std::move(text);
    }
    respond(std::move(response));
  };
  return service;
}

// One deadline held for the whole of an answer, which cut off whoever was slow but steady.
TEST(HttpStreamTest, WhoGoesOnFetchingGetsAllOfAnAnswer) {
  HttpLimits limits;
  limits.write_timeout = Millis(1'000);
  for (const bool streamed : {false, true}) {
    const TcpServer server(large_answers(streamed, limits));
    const Fd fd = server.connect();
    send_text(fd.get(), "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_GT(read_slowly(fd.get(), 64 * 1024, Millis(10)), kLargeAnswer) << streamed;
    EXPECT_GT(std::chrono::steady_clock::now() - begun, 2 * limits.write_timeout);
  }
}

TEST(HttpStreamTest, WhoFetchesNextToNothingIsCut) {
  HttpLimits limits;
  limits.write_timeout = Millis(300);
  for (const bool streamed : {false, true}) {
    for (const Millis pause : {Millis(1), Millis(10'000)}) {
      TcpServer server(large_answers(streamed, limits));
      const Fd fd = server.connect();
      send_text(fd.get(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
      std::jthread reader([&](const std::stop_token& stop) {
        char byte = 0;
        while (!stop.stop_requested() && ::recv(fd.get(), &byte, 1, 0) == 1) {
          for (Millis slept{0}; slept < pause && !stop.stop_requested(); slept += Millis(1)) {
            std::this_thread::sleep_for(Millis(1));
          }
        }
      });
      const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      std::size_t open = 1;
      while (open != 0 && std::chrono::steady_clock::now() < patience) {
        std::this_thread::sleep_for(Millis(10));
        server.on_thread([&] { open = server.server().connections(); });
      }
      EXPECT_EQ(open, 0U) << streamed << " " << pause.count();
    }
  }
}

TEST(HttpStreamTest, WhatNobodyFetchesDoesNotGrowForEver) {
  HttpLimits limits;
  limits.unsent_bytes = 1'000'000;
  std::promise<void> gone;
  Sink kept;
  TcpServer server(streaming(
      [&](Sink sink) {
        sink->on_gone([&] { gone.set_value(); });
        kept = std::move(sink);
      },
      limits));
  const Fd fd = server.connect();
  send_text(fd.get(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  pollfd wait{fd.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&wait, 1, 60'000), 1);
  server.on_thread([&] {
    for (int i = 0; i < 200; ++i) {
      kept->write(std::string(100'000, 'x'));
    }
    EXPECT_LE(kept->pending(), 2'000'000U);
  });
  EXPECT_EQ(gone.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  server.on_thread([&] { kept.reset(); });
}

HttpService guarded(std::atomic<int>& handled) {
  HttpService service;
  service.handler = [&](const HttpRequest& request, const Respond& respond) {
    ++handled;
    HttpResponse response;
    response.body = request.peer_address + " " + std::to_string(request.peer_uid) + request.body;
    respond(std::move(response));
  };
  service.headers = {{"X-Guard", "yes"}, {"Content-Type", "overridden/never"}};
  service.gate = [](HttpRequest& head) -> std::optional<HttpResponse> {
    if (head.headers["authorization"] != "Bearer good") {
      return plain_error(401, "no");
    }
    head.peer_uid = 7;
    head.known = true;
    return std::nullopt;
  };
  return service;
}

TEST(HttpGateTest, WhoIsRefusedIsHeardNoFurther) {
  std::atomic<int> handled = 0;
  const TcpServer server(guarded(handled));
  const Fd fd = server.connect();
  // The body never comes, and nobody waits for it.
  send_text(fd.get(), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000\r\n\r\n");
  EXPECT_THAT(read_all(fd.get()), StartsWith("HTTP/1.1 401"));
  EXPECT_EQ(handled, 0);
}

TEST(HttpGateTest, ARefusalWithoutABodyKeepsTheConnection) {
  std::atomic<int> handled = 0;
  const TcpServer server(guarded(handled));
  HttpClient wrong = server.client("bad");
  for (int i = 0; i < 2; ++i) {
    const auto response = wrong.request("GET", "/");
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(response->status, 401);
  }
  EXPECT_EQ(handled, 0);
}

TEST(HttpGateTest, WhoGetsInIsWhomTheGateSays) {
  std::atomic<int> handled = 0;
  const TcpServer server(guarded(handled));
  HttpClient client = server.client("good");
  const auto response = client.request("POST", "/", "!");
  ASSERT_TRUE(response.has_value()) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "127.0.0.1 7!");
  EXPECT_EQ(handled, 1);
}

TEST(HttpGateTest, EveryAnswerCarriesTheServersHeaders) {
  std::atomic<int> handled = 0;
  const TcpServer server(guarded(handled));
  for (const char* request :
       {"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "rubbish\r\n\r\n"}) {
    const Fd fd = server.connect();
    send_text(fd.get(), request);
    EXPECT_THAT(read_all(fd.get()), HasSubstr("X-Guard: yes")) << request;
  }
}

/// 0: none came.
int status_of(const Result<HttpResponse>& response) {
  return response ? response->status : 0;
}

// A few hundred connections with half a header kept everybody out.
TEST(HttpGateTest, StrangersTakeNobodysPlace) {
  std::atomic<int> handled = 0;
  HttpService service = guarded(handled);
  service.limits.connections = 4;
  const TcpServer server(std::move(service));
  HttpClient known = server.client("good");
  ASSERT_EQ(status_of(known.request("GET", "/")), 200);
  std::vector<Fd> strangers;
  for (int i = 0; i < 20; ++i) {
    strangers.push_back(server.connect());
    send_text(strangers.back().get(), "GET / HTTP/1.1\r\nHost: x\r\nX: ");
    HttpClient other = server.client("good");
    const auto response = other.request("GET", "/");
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(response->status, 200);
  }
  EXPECT_EQ(status_of(known.request("GET", "/")), 200) << "who is known is not cut for others";
  EXPECT_EQ(read_all(strangers.front().get()), "") << "the oldest has gone";
  char byte = 0;
  EXPECT_EQ(::recv(strangers.back().get(), &byte, 1, MSG_DONTWAIT), -1) << "the last has not";
}

TEST(HttpGateTest, WhereAllAreKnownOneMoreIsTurnedAway) {
  std::atomic<int> handled = 0;
  HttpService service = guarded(handled);
  service.limits.connections = 2;
  const TcpServer server(std::move(service));
  HttpClient first = server.client("good");
  HttpClient second = server.client("good");
  for (HttpClient* client : {&first, &second}) {
    ASSERT_EQ(status_of(client->request("GET", "/")), 200);
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(status_of(server.client("good").request("GET", "/")), 429);
  }
  for (HttpClient* client : {&first, &second}) {
    EXPECT_EQ(status_of(client->request("GET", "/")), 200);
  }
}

TEST(HttpGateTest, APortThatIsTakenIsAConflict) {
  std::atomic<int> handled = 0;
  const TcpServer server(guarded(handled));
  boost::asio::io_context io;
  const auto second =
      HttpServer::listen(io, TcpAddress{"127.0.0.1", server.port()}, nullptr, HttpService{});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::conflict);
}

TEST(SocketTest, OnlyLoopbackIsLoopback) {
  EXPECT_TRUE(is_loopback("127.0.0.1"));
  EXPECT_TRUE(is_loopback("127.8.9.1"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_FALSE(is_loopback("0.0.0.0"));
  EXPECT_FALSE(is_loopback("::"));
  EXPECT_FALSE(is_loopback("10.0.0.1"));
  EXPECT_FALSE(is_loopback("localhost")) << "a name may mean anything";
  EXPECT_FALSE(is_numeric_address("localhost"));
}

}  // namespace
}  // namespace berth
