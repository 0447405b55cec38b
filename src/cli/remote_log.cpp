#include "cli/remote_log.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <charconv>
#include <chrono>
#include <utility>

#include "api/wire.hpp"

namespace berth::cli {
namespace {

/// A daemon that has gone may come back, as in an upgrade.
constexpr Millis kPatience{20'000};
constexpr Millis kPause{250};
/// What comes in faster than it is handed on is left with the daemon.
constexpr std::size_t kHeldMax = 4UL * 1024 * 1024;
constexpr int kOk = 200;
constexpr int kNotFound = 404;

std::string log_target(const LogPart& part, const char* what) {
  std::string target = fmt::format("/api/jobs/{}/{}", part.job, what);
  char before = '?';
  if (part.attempt) {
    target += fmt::format("{}attempt={}", std::exchange(before, '&'), *part.attempt);
  }
  if (part.lines) {
    target += fmt::format("{}lines={}", std::exchange(before, '&'), *part.lines);
  }
  return target;
}

std::uint64_t number_in(const boost::json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  return value != nullptr && value->is_int64() && value->get_int64() >= 0
             ? static_cast<std::uint64_t>(value->get_int64())
             : 0;
}

std::string text_in(const boost::json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

/// Worth asking again: the connection broke, or the daemon has no time.
bool may_pass(const Error& error) {
  return error.code == ErrorCode::unavailable || error.code == ErrorCode::busy;
}

}  // namespace

void EventLines::feed(std::string_view text) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    partial_ += text.substr(0, end);
    if (end == std::string_view::npos) {
      return;
    }
    line(std::exchange(partial_, {}));
    text.remove_prefix(end + 1);
  }
}

void EventLines::line(std::string_view text) {
  if (text.ends_with('\r')) {
    text.remove_suffix(1);
  }
  if (text.empty()) {
    if (!data_.empty()) {
      take_(name_, data_);
    }
    name_.clear();
    data_.clear();
    return;
  }
  const auto colon = text.find(':');
  const std::string_view field = text.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  if (value.starts_with(' ')) {
    value.remove_prefix(1);
  }
  if (field == "event") {
    name_ = value;
  } else if (field == "data") {
    data_ += data_.empty() ? "" : "\n";
    data_ += value;
  }
}

Status copy_remote_log(Daemon& daemon, const LogPart& part, const LogSink& sink) {
  return daemon.follow(log_target(part, "log"), [&](std::string_view text) {
    sink(text);
    return true;
  });
}

Result<std::optional<std::uint64_t>> remote_log_size(Daemon& daemon, const LogPart& part) {
  TRY_ASSIGN(HttpResponse answer, daemon.head(log_target(part, "log"), {{"Range", "bytes=0-0"}}));
  if (answer.status == kNotFound) {
    return std::nullopt;
  }
  // "bytes 0-0/5120", or "bytes */0" of an empty one.
  for (const auto& [name, value] : answer.headers) {
    const auto slash = value.find('/');
    std::uint64_t size = 0;
    if (name == "content-range" && slash != std::string::npos) {
      const char* end = value.data() + value.size();
      const auto [at, error] = std::from_chars(value.data() + slash + 1, end, size);
      if (error == std::errc() && at == end) {
        return size;
      }
    }
  }
  TRY(body_or_error(std::move(answer)));
  return fail(ErrorCode::io, fmt::format("the daemon does not say how long the log of job {} is; "
                                         "is it of another version?",
                                         part.job));
}

RemoteLogFollower::RemoteLogFollower(HttpRemote server, LogPart part, LogSink sink)
    : server_(std::move(server)), part_(part), sink_(std::move(sink)) {}

RemoteLogFollower::~RemoteLogFollower() {
  if (!thread_.joinable()) {
    return;
  }
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
    if (client_) {
      client_->abandon();
    }
  }
  wake_.notify_one();
  thread_.join();
}

Status RemoteLogFollower::look(const JobDetail& detail,
                               const std::function<void(std::uint32_t)>& next) {
  next_ = next;
  const AttemptView* attempt = find_attempt(detail, part_.attempt);
  opened_ = opened_ || (attempt != nullptr && !attempt->log.empty());
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { listen(); });
  }
  return drain();
}

Status RemoteLogFollower::drain() {
  std::vector<Piece> pieces;
  {
    const std::scoped_lock lock(mutex_);
    pieces = std::exchange(pieces_, {});
    held_ = 0;
    over_ = done_ && !error_;
    if (pieces.empty() && error_) {
      return std::unexpected(*error_);
    }
  }
  wake_.notify_one();
  for (const Piece& piece : pieces) {
    if (piece.attempt != told_) {
      if ((told_ != 0 || piece.attempt > 1) && !part_.attempt) {
        next_(piece.attempt);
      }
      told_ = piece.attempt;
    }
    opened_ = true;
    if (!piece.text.empty()) {
      sink_(piece.text);
    }
  }
  return {};
}

void RemoteLogFollower::listen() {
  heard_ = read_clock().mono;
  while (true) {
    const auto ended = listen_once();
    const bool lost = !ended && may_pass(ended.error());
    if (ended.value_or(false) || (!ended && !lost) ||
        (lost && read_clock().mono - heard_ > kPatience)) {
      const std::scoped_lock lock(mutex_);
      done_ = true;
      if (!ended) {
        error_ = ended.error();
      }
      return;
    }
    if (!pause()) {
      return;
    }
  }
}

bool RemoteLogFollower::pause() {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, kPause, [&] { return stop_; });
}

/// Whether the log has come to its end; otherwise the daemon has closed the connection.
Result<bool> RemoteLogFollower::listen_once() {
  TRY_ASSIGN(HttpClient made, HttpClient::connect(server_));
  const auto client = std::make_shared<HttpClient>(std::move(made));
  {
    const std::scoped_lock lock(mutex_);
    if (stop_) {
      return true;
    }
    client_ = client;
  }
  EventLines events([&](std::string_view event, std::string_view data) { take(event, data); });
  HttpHeaders headers;
  if (!position_.empty()) {
    headers.emplace_back("Last-Event-ID", position_);
  }
  auto response = client->follow(
      log_target(part_, "log/stream"),
      [&](std::string_view text) {
        heard_ = read_clock().mono;
        events.feed(text);
        const std::scoped_lock lock(mutex_);
        return !ended_ && !stop_ && !error_;
      },
      headers);
  {
    const std::scoped_lock lock(mutex_);
    client_.reset();
    if (error_) {
      return std::unexpected(*error_);
    }
    if (stop_) {
      return true;
    }
  }
  TRY(response);
  if (response->status != kOk) {
    TRY(body_or_error(std::move(*response)));
  }
  return ended_;
}

void RemoteLogFollower::take(std::string_view event, std::string_view data) {
  boost::json::error_code wrong;
  const auto value = boost::json::parse(data, wrong);
  const auto* object = wrong ? nullptr : value.if_object();
  if (object == nullptr) {
    return;
  }
  const auto attempt = static_cast<std::uint32_t>(number_in(*object, "attempt"));
  if (event == "log") {
    position_ = fmt::format("{}:{}", attempt, number_in(*object, "offset"));
    hand_over({attempt, text_in(*object, "text")});
  } else if (event == "attempt") {
    hand_over({attempt, {}});
  } else if (event == "problem") {
    const std::scoped_lock lock(mutex_);
    error_ = Error{ErrorCode::io, text_in(*object, "message")};
  } else if (event == "end") {
    ended_ = true;
  }
}

void RemoteLogFollower::hand_over(Piece piece) {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [&] { return stop_ || held_ < kHeldMax; });
  held_ += piece.text.size();
  pieces_.push_back(std::move(piece));
}

}  // namespace berth::cli
