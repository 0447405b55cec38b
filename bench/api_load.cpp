// Many clients of one daemon, all in one thread: live streams as the console opens them, pages of
// jobs on a fixed schedule, and somebody who acts.
//
// api_load PORT TOKEN STREAMS PAGES_PER_SECOND SECONDS JOB ACTS_PER_SECOND < targets
//
// A page is late from the moment it was due, whether or not a connection was free then. The acts
// hold JOB and let it go again, by turns; an act has arrived when a stream tells of it. Prints
// lines of a name and a value.

#include <sys/resource.h>

#include <charconv>
#include <deque>
#include <iostream>
#include <map>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "store_fill.hpp"

namespace {

using namespace berth::bench;
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kConnections = 250;  // with the streams below what the daemon takes
constexpr std::size_t kBuffer = 64 * 1024;
constexpr std::chrono::seconds kSettling{1};
constexpr std::chrono::seconds kPatience{20};

struct Settings {
  tcp::endpoint daemon;
  std::string token;
  std::size_t streams = 0;
  double pages_per_second = 0;
  double seconds = 0;
  std::string job;
  double acts_per_second = 0;

  [[nodiscard]] std::string request(std::string_view method, std::string_view target,
                                    std::string_view body = {}) const {
    return fmt::format(
        "{} {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n"
        "\r\n{}",
        method, target, token, body.size(), body);
  }
};

Clock::duration period(double per_second) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1 / per_second));
}

/// A connection that is used again and again.
class Connection {
 public:
  using Then = std::function<void(int status, const std::string& body)>;

  Connection(asio::io_context& io, const tcp::endpoint& daemon) : socket_(io), daemon_(daemon) {
    buffer_.reserve(kBuffer);
    open();
  }

  /// `then` gets the answer, or 0 when the connection has broken; it is made again for the next.
  void send(const std::string& request, Then then) {
    then_ = std::move(then);
    parser_.emplace();
    parser_->body_limit(boost::none);
    asio::async_write(socket_, asio::buffer(request), [this](error_code error, std::size_t) {
      if (error) {
        return done(error);
      }
      http::async_read(socket_, buffer_, *parser_,
                       [this](error_code failure, std::size_t) { done(failure); });
    });
  }

 private:
  void open() {
    socket_.connect(daemon_);
    socket_.set_option(tcp::no_delay(true));
  }

  void done(error_code error) {
    const auto then = std::move(then_);
    if (error) {
      socket_.close();
      buffer_.clear();
      open();
      return then(0, error.message());
    }
    then(static_cast<int>(parser_->get().result_int()), parser_->get().body());
  }

  tcp::socket socket_;
  tcp::endpoint daemon_;
  beast::flat_buffer buffer_;
  std::optional<http::response_parser<http::string_body>> parser_;
  Then then_;
};

/// Holds a job and lets it go, by turns, and hears from the streams when they tell of it.
class Actor {
 public:
  Actor(asio::io_context& io, const Settings& settings)
      : connection_(io, settings.daemon), timer_(io), settings_(settings) {
    const std::string body = fmt::format(R"({{"ids":"{}"}})", settings.job);
    hold_ = settings.request("POST", "/api/jobs/pause", body);
    release_ = settings.request("POST", "/api/jobs/resume", body);
  }

  void act_until(Clock::time_point end) {
    timer_.expires_after(period(settings_.acts_per_second));
    timer_.async_wait([this, end](error_code) {
      if (Clock::now() >= end && sent_.size() % 2 == 0) {
        return;  // the job is as it was
      }
      sent_.push_back(Clock::now());
      connection_.send(sent_.size() % 2 == 1 ? hold_ : release_,
                       [this, end](int status, const std::string&) {
                         if (status != 200) {
                           sent_.pop_back();  // has not happened, and is done again
                           ++failed_;
                         }
                         act_until(end);
                       });
    });
  }

  /// A stream tells of the act with this number.
  void heard(std::size_t number) {
    if (number < sent_.size()) {
      delays_.push_back(milliseconds_since(sent_[number]));
    }
  }

  [[nodiscard]] std::size_t acts() const { return sent_.size(); }
  [[nodiscard]] std::size_t failed() const { return failed_; }
  [[nodiscard]] std::vector<double>& delays() { return delays_; }

 private:
  Connection connection_;
  asio::steady_timer timer_;
  const Settings& settings_;
  std::string hold_;
  std::string release_;
  std::vector<Clock::time_point> sent_;
  std::size_t failed_ = 0;
  std::vector<double> delays_;
};

/// One live stream, and what it has told.
class Stream {
 public:
  Stream(asio::io_context& io, const Settings& settings, std::uint64_t after, Actor* actor)
      : socket_(io),
        actor_(actor),
        marks_job_(fmt::format("\"job\":{},", settings.job)),
        request_(settings.request(
            "GET", fmt::format("/api/stream?topics=events,gpus,status&after={}", after))),
        last_(after) {
    socket_.connect(settings.daemon);
    parser_.body_limit(boost::none);
    asio::async_write(socket_, asio::buffer(request_), [this](error_code error, std::size_t) {
      if (error) {
        broken_ = true;
        return;
      }
      http::async_read_header(socket_, buffer_, parser_, [this](error_code failure, std::size_t) {
        broken_ = failure || parser_.get().result() != http::status::ok;
        read();
      });
    });
  }

  [[nodiscard]] bool broken() const { return broken_; }
  [[nodiscard]] bool open() const { return parser_.is_header_done() && !broken_; }
  [[nodiscard]] std::uint64_t last() const { return last_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] std::uint64_t gaps() const { return gaps_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  void read() {
    if (broken_) {
      return;
    }
    parser_.get().body().data = piece_.data();
    parser_.get().body().size = piece_.size();
    http::async_read_some(socket_, buffer_, parser_, [this](error_code error, std::size_t) {
      if (error && error != http::error::need_buffer) {
        broken_ = true;
        return;
      }
      take({piece_.data(), piece_.size() - parser_.get().body().size});
      read();
    });
  }

  void take(std::string_view text) {
    bytes_ += text.size();
    for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      line_ += text.substr(0, end);
      take_line();
      line_.clear();
      text.remove_prefix(end + 1);
    }
    line_ += text;
  }

  void take_line() {
    constexpr std::string_view kId = "id: ";
    if (line_.starts_with(kId)) {
      std::uint64_t id = 0;
      std::from_chars(line_.data() + kId.size(), line_.data() + line_.size(), id);
      gaps_ += id == last_ + 1 ? 0 : 1;  // the store numbers them without gaps
      last_ = id;
      ++events_;
    } else if (actor_ != nullptr && line_.starts_with("data: ") &&
               line_.find(marks_job_) != std::string::npos) {
      actor_->heard(acts_++);
    }
  }

  tcp::socket socket_;
  beast::flat_buffer buffer_;
  http::response_parser<http::buffer_body> parser_;
  std::vector<char> piece_ = std::vector<char>(kBuffer);
  Actor* actor_;
  std::string marks_job_;
  std::string request_;
  std::string line_;
  std::uint64_t last_;
  std::uint64_t events_ = 0;
  std::uint64_t gaps_ = 0;
  std::uint64_t bytes_ = 0;
  std::size_t acts_ = 0;
  bool broken_ = false;
};

/// Pages at a steady rate, whether or not the earlier ones have come.
class Pages {
 public:
  Pages(asio::io_context& io, const Settings& settings, const std::vector<std::string>& targets)
      : io_(io), settings_(settings), timer_(io) {
    for (const std::string& target : targets) {
      requests_.push_back(settings.request("GET", target));
    }
  }

  void ask_until(Clock::time_point end) {
    end_ = end;
    due_ = Clock::now();
    tick();
  }
  [[nodiscard]] bool done() const { return due_ >= end_ && times_.size() == asked_; }
  [[nodiscard]] std::vector<double>& times() { return times_; }
  [[nodiscard]] const std::map<int, std::size_t>& failures() const { return failures_; }
  [[nodiscard]] std::size_t connections() const { return connections_.size(); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  void tick() {
    for (; due_ <= Clock::now() && due_ < end_; due_ += period(settings_.pages_per_second)) {
      waiting_.push_back(due_);
    }
    send_waiting();
    if (due_ < end_) {
      timer_.expires_at(due_);
      timer_.async_wait([this](error_code) { tick(); });
    }
  }

  void send_waiting() {
    while (!waiting_.empty()) {
      if (idle_.empty() && connections_.size() < kConnections) {
        idle_.push_back(&connections_.emplace_back(io_, settings_.daemon));
      }
      if (idle_.empty()) {
        return;
      }
      Connection* const connection = idle_.back();
      idle_.pop_back();
      const Clock::time_point due = waiting_.front();
      waiting_.pop_front();
      connection->send(requests_[asked_++ % requests_.size()],
                       [this, connection, due](int status, const std::string& body) {
                         times_.push_back(milliseconds_since(due));
                         bytes_ += body.size();
                         if (status != 200) {
                           ++failures_[status];
                         }
                         idle_.push_back(connection);
                         send_waiting();
                       });
    }
  }

  asio::io_context& io_;
  const Settings& settings_;
  asio::steady_timer timer_;
  std::vector<std::string> requests_;
  std::deque<Connection> connections_;
  std::vector<Connection*> idle_;
  std::deque<Clock::time_point> waiting_;  ///< when they were due
  Clock::time_point due_;
  Clock::time_point end_;
  std::size_t asked_ = 0;
  std::vector<double> times_;
  std::uint64_t bytes_ = 0;
  std::map<int, std::size_t> failures_;
};

/// Runs until that holds or patience ends.
template <class Condition>
bool run_until(asio::io_context& io, Condition condition) {
  const auto end = Clock::now() + kPatience;
  while (!condition() && Clock::now() < end) {
    io.restart();
    io.run_for(std::chrono::milliseconds(10));
  }
  return condition();
}

/// The number of the last event that the daemon has told of.
std::uint64_t last_event(asio::io_context& io, const Settings& settings) {
  Connection connection(io, settings.daemon);
  std::optional<std::string> answer;
  const std::string request = settings.request("GET", "/api/events?order=desc&limit=1");
  connection.send(request, [&](int, const std::string& body) { answer = body; });
  run_until(io, [&] { return answer.has_value(); });
  constexpr std::string_view kSeq = "\"seq\":";
  const auto at = answer.value_or("").find(kSeq);
  std::uint64_t seq = 0;
  if (at != std::string::npos) {
    std::from_chars(answer->data() + at + kSeq.size(), answer->data() + answer->size(), seq);
  }
  return seq;
}

void print_times(const char* name, std::vector<double>& times) {
  if (times.empty()) {
    return;
  }
  std::ranges::sort(times);
  fmt::print("{0}_p50 {1:.4f}\n{0}_p99 {2:.4f}\n{0}_max {3:.4f}\n", name, quantile(times, 0.5),
             quantile(times, 0.99), times.back());
}

int run(const Settings& settings, const std::vector<std::string>& targets) {
  asio::io_context io(1);
  Actor actor(io, settings);
  const bool acts = settings.acts_per_second > 0;
  const std::uint64_t first = last_event(io, settings);
  std::deque<Stream> streams;
  for (std::size_t n = 0; n < settings.streams; ++n) {
    streams.emplace_back(io, settings, first, acts ? &actor : nullptr);
  }
  run_until(io, [&] { return std::ranges::all_of(streams, &Stream::open); });
  io.restart();
  io.run_for(kSettling);

  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  const auto begun = Clock::now();
  const auto end = begun + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(settings.seconds));
  Pages pages(io, settings, targets);
  if (settings.pages_per_second > 0) {
    pages.ask_until(end);
  }
  if (acts) {
    actor.act_until(end);
  }
  io.restart();
  io.run_until(end);
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  run_until(io, [&] {
    return pages.done() && actor.delays().size() >= actor.acts() * streams.size() &&
           actor.acts() % 2 == 0;
  });
  // What has happened by now must have reached everybody.
  const std::uint64_t last = last_event(io, settings);
  run_until(io, [&] {
    return std::ranges::all_of(streams, [&](const Stream& one) { return one.last() >= last; });
  });

  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  std::uint64_t events = 0;
  std::uint64_t stream_bytes = 0;
  for (const Stream& one : streams) {
    events += one.events();
    stream_bytes += one.bytes();
  }
  const auto count = [&](auto what) { return std::ranges::count_if(streams, what); };
  std::size_t failed = 0;
  for (const auto& [status, times] : pages.failures()) {
    fmt::print("failed_{} {}\n", status, times);
    failed += times;
  }
  fmt::print("pages {}\nfailed {}\nconnections {}\npage_bytes {}\n", pages.times().size(), failed,
             pages.connections(), pages.bytes());
  print_times("page", pages.times());
  fmt::print(
      "streams {}\nbroken {}\nincomplete {}\nfirst_event {}\nlast_event {}\nevents {}\n"
      "stream_bytes {}\n",
      streams.size(), count([](const Stream& one) { return one.broken(); }),
      count([&](const Stream& one) { return one.gaps() != 0 || one.last() < last; }), first, last,
      events, stream_bytes);
  fmt::print("acts {}\nacts_failed {}\n", actor.acts(), actor.failed());
  print_times("act", actor.delays());
  fmt::print("cpu_share {:.4f}\n", (seconds(after.ru_utime) + seconds(after.ru_stime) -
                                    seconds(before.ru_utime) - seconds(before.ru_stime)) /
                                       settings.seconds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(stderr,
                 "usage: api_load PORT TOKEN STREAMS PAGES_PER_SECOND SECONDS JOB ACTS_PER_SECOND "
                 "< targets\n");
    return 2;
  }
  Settings settings;
  settings.daemon = {asio::ip::address_v4::loopback(),
                     static_cast<std::uint16_t>(std::atoi(argv[1]))};
  settings.token = argv[2];
  settings.streams = std::strtoull(argv[3], nullptr, 10);
  settings.pages_per_second = std::atof(argv[4]);
  settings.seconds = std::atof(argv[5]);
  settings.job = argv[6];
  settings.acts_per_second = std::atof(argv[7]);
  std::vector<std::string> targets;
  for (std::string line; std::getline(std::cin, line);) {
    targets.push_back(line);
  }
  try {
    return run(settings, targets);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench: %s\n", error.what());
    return 1;
  }
}
