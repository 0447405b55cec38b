#include "daemon/log_routes.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "api/http_answer.hpp"
#include "api/text.hpp"
#include "base/utf8.hpp"
#include "daemon/live_streams.hpp"
#include "daemon/views.hpp"

#include <boost/json.hpp>

namespace berth {
namespace {

constexpr std::size_t kFollowers = 200;
/// A log is sent in such pieces, the next when the one before has left.
constexpr std::size_t kPiece = 256UL * 1024;
/// Shorter ones are one piece, and have a length in their header.
constexpr std::size_t kWholeMax = 1024UL * 1024;
constexpr std::size_t kFollowPiece = 64UL * 1024;
constexpr Millis kPoll{250};
constexpr Millis kPollMax{2'000};
constexpr Millis kHeartbeat{15'000};

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return !text.empty() && error == std::errc() && at == end ? std::optional(number) : std::nullopt;
}

std::string header_of(const HttpRequest& request, const std::string& name) {
  const auto header = request.headers.find(name);
  return header == request.headers.end() ? std::string() : header->second;
}

/// Sends a part of a log piece by piece.
class LogSender : public std::enable_shared_from_this<LogSender> {
 public:
  LogSender(Loop& loop, Worker& files, AttemptLog log, ByteRange range)
      : loop_(loop), files_(files), log_(std::move(log)), at_(range.from), end_(range.to + 1) {}

  void send(const std::shared_ptr<ResponseSink>& sink) {
    if (at_ >= end_) {
      sink->close();
      return;
    }
    const std::size_t size = std::min<std::uint64_t>(kPiece, end_ - at_);
    files_.post([self = shared_from_this(), sink, size] {
      auto piece = std::make_shared<Result<std::string>>(self->log_.read(self->at_, size));
      self->loop_.post([self, sink, piece] {
        if (!*piece || (*piece)->empty()) {
          return;  // breaks the answer off: the client sees that it is incomplete
        }
        self->at_ += (*piece)->size();
        sink->write(std::move(**piece));
        sink->on_drained([self, sink] { self->send(sink); });
      });
    });
  }

 private:
  Loop& loop_;
  Worker& files_;
  AttemptLog log_;
  std::uint64_t at_;
  std::uint64_t end_;
};

Error no_log(std::uint64_t job) {
  return {
      ErrorCode::not_found,
      fmt::format("job {} has no such attempt, so there is no log; GET /api/jobs/{} tells of its "
                  "attempts",
                  job, job)};
}

}  // namespace

Result<std::optional<ByteRange>> parse_range(std::string_view header, std::uint64_t size) {
  constexpr std::string_view kUnit = "bytes=";
  if (!header.starts_with(kUnit) || header.find(',') != std::string_view::npos) {
    return std::optional<ByteRange>();
  }
  header.remove_prefix(kUnit.size());
  const auto dash = header.find('-');
  if (dash == std::string_view::npos) {
    return std::optional<ByteRange>();
  }
  const auto from = parse_number(header.substr(0, dash));
  const auto to = parse_number(header.substr(dash + 1));
  ByteRange range;
  if (dash == 0 && to) {
    range = {size - std::min(size, *to), size - 1};
    if (*to == 0 || size == 0) {
      return fail(ErrorCode::invalid, fmt::format("the log has {} bytes", size));
    }
    return std::optional(range);
  }
  if (!from || (dash + 1 < header.size() && !to) || (to && *to < *from)) {
    return std::optional<ByteRange>();  // not a range at all
  }
  if (*from >= size) {
    return fail(ErrorCode::invalid, fmt::format("the log has {} bytes", size));
  }
  range = {*from, std::min(to.value_or(size - 1), size - 1)};
  return std::optional(range);
}

LogRoutes::LogRoutes(Loop& loop, Worker& readers, StoreReader& reader, Worker& files,
                     const ServiceConfig& config)
    : loop_(loop), readers_(readers), reader_(reader), files_(files), config_(config) {}

Result<LogRoutes::Found> LogRoutes::find(StoreReader& reader, std::uint64_t job,
                                         std::uint32_t attempt) const {
  TRY_ASSIGN(const auto row, reader.job(JobId{job}));
  if (!row) {
    return fail(ErrorCode::not_found,
                fmt::format("there is no job {}; `berth ls --all` lists them", job));
  }
  TRY_ASSIGN(const auto attempts, reader.attempts(JobId{job}));
  Found found;
  found.state = row->state;
  for (const AttemptRow& one : attempts) {
    found.last = one.number;
    if (attempt == 0 || one.number == attempt) {
      found.attempt = one.number;
      found.ended = one.ended.has_value();
      found.dropped = one.verdict.log_dropped;
      found.path = log_path(*row, one, config_.log_places());
    }
  }
  return found;
}

void LogRoutes::find_then(std::uint64_t job, std::uint32_t attempt,
                          std::function<void(Result<Found>)> then) {
  readers_.post([this, job, attempt, then = std::move(then)] {
    auto found = std::make_shared<Result<Found>>(find(reader_, job, attempt));
    loop_.post([found, then] { then(std::move(*found)); });
  });
}

void LogRoutes::get(std::uint64_t job, const HttpRequest& request, Respond respond) {
  const auto query = parse_log_query(request.query);
  if (!query) {
    respond(error_response(query.error()));
    return;
  }
  HttpRequest asked;
  asked.headers = request.headers;
  find_then(job, query->attempt,
            [this, job, query = *query, asked = std::move(asked),
             respond = std::move(respond)](const Result<Found>& found) mutable {
              if (!found || found->attempt == 0) {
                respond(error_response(found ? no_log(job) : found.error()));
                return;
              }
              answer(asked, query, job, *found, std::move(respond));
            });
}

namespace {

/// What is answered, once the log is open.
HttpResponse log_response(const HttpRequest& request, const AttemptQuery& query, Loop& loop,
                          Worker& files, AttemptLog log) {
  HttpResponse response;
  response.content_type = "text/plain; charset=utf-8";
  response.headers.emplace_back("ETag", log.tag());
  response.headers.emplace_back("Cache-Control", "no-cache");
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  if (is_known_tag(header_of(request, "if-none-match"), log.tag())) {
    response.status = 304;
    return response;
  }
  const std::string condition = header_of(request, "if-range");
  // A part of the last lines would be a part of something that is different the next time.
  const bool may_part = !query.lines && (condition.empty() || condition == log.tag());
  const auto range =
      may_part ? parse_range(header_of(request, "range"), log.size()) : std::optional<ByteRange>();
  if (!range) {
    response = error_response(range.error());
    response.status = 416;
    response.headers.emplace_back("Content-Range", fmt::format("bytes */{}", log.size()));
    return response;
  }
  if (*range) {
    response.status = 206;
    response.headers.emplace_back(
        "Content-Range", fmt::format("bytes {}-{}/{}", (*range)->from, (*range)->to, log.size()));
  }
  if (!query.lines) {
    response.headers.emplace_back("Accept-Ranges", "bytes");
  }
  if (log.size() == 0) {
    return response;
  }
  ByteRange part = range->value_or(ByteRange{0, log.size() - 1});
  if (query.lines) {
    const auto begin = log.last_lines(*query.lines);
    if (!begin) {
      return error_response(begin.error());
    }
    if (*begin == log.size()) {
      return response;
    }
    part.from = *begin;
  }
  if (part.to - part.from < kWholeMax) {
    auto text = log.read(part.from, part.to - part.from + 1);
    if (!text) {
      return error_response(text.error());
    }
    response.body = std::move(*text);
    return response;
  }
  response.stream = [sender = std::make_shared<LogSender>(loop, files, std::move(log), part)](
                        const std::shared_ptr<ResponseSink>& sink) { sender->send(sink); };
  return response;
}

}  // namespace

void LogRoutes::answer(const HttpRequest& request, const AttemptQuery& query, std::uint64_t job,
                       const Found& found, Respond respond) {
  files_.post([this, request, query, job, found, respond = std::move(respond)] {
    auto response = std::make_shared<HttpResponse>();
    if (auto log = AttemptLog::open(found.path, config_.shown_files())) {
      *response = log_response(request, query, loop_, files_, std::move(*log));
      if (query.download && response->status < 300) {
        response->headers.emplace_back(
            "Content-Disposition",
            fmt::format("attachment; filename=\"job-{}.{}.log\"", job, found.attempt));
      }
    } else {
      *response = error_response(log.error());
    }
    loop_.post([response, respond] { respond(std::move(*response)); });
  });
}

// --- following
// ------------------------------------------------------------------------------------

struct LogRoutes::Follower {
  std::uint64_t job = 0;
  std::uint32_t only = 0;              ///< the attempt asked for; 0: all from the last one on
  std::uint32_t attempt = 0;           ///< the one being read; 0: none yet
  std::uint64_t offset = 0;            ///< where to begin
  std::optional<std::uint64_t> lines;  ///< instead: with the last so many
  std::unique_ptr<LogTailer> tailer;   ///< on the thread that reads files
  std::string path;
  std::shared_ptr<ResponseSink> sink;
  std::string held;  ///< the beginning of a character of which the rest has not come
  Millis pause = kPoll;
  Millis told{0};  ///< when it was last sent something
  Loop::Handle timer;
};

namespace {

/// How many bytes at the end of a text begin a character that is not complete.
std::size_t incomplete_end(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0U) == 0x80U) {
      continue;
    }
    const std::size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

}  // namespace

void LogRoutes::follow(std::uint64_t job, const HttpRequest& request, Respond respond) {
  auto query = parse_log_stream_query(request.query);
  if (!query) {
    respond(error_response(query.error()));
    return;
  }
  if (followers_.size() >= kFollowers) {
    respond(error_response(
        {ErrorCode::busy, fmt::format("{} logs are being followed already", kFollowers)}));
    return;
  }
  auto follower = std::make_shared<Follower>();
  follower->job = job;
  follower->only = query->attempt;
  follower->offset = query->offset;
  follower->lines = query->lines;
  std::uint32_t from = query->attempt;
  const std::string last = header_of(request, "last-event-id");
  const auto colon = last.find(':');
  if (const auto attempt = parse_number(last.substr(0, colon));
      attempt && colon != std::string::npos && *attempt <= UINT32_MAX) {
    from = static_cast<std::uint32_t>(*attempt);
    follower->offset = parse_number(last.substr(colon + 1)).value_or(0);
    follower->lines.reset();
  }
  find_then(job, from, [this, follower, respond = std::move(respond)](const Result<Found>& found) {
    if (!found) {
      respond(error_response(found.error()));
      return;
    }
    if (follower->only != 0 && found->attempt == 0) {
      respond(error_response(no_log(follower->job)));
      return;
    }
    follower->attempt = found->attempt;
    follower->path = found->path;
    HttpResponse response;
    response.content_type = "text/event-stream";
    response.headers.emplace_back("Cache-Control", "no-store");
    response.headers.emplace_back("X-Accel-Buffering", "no");
    response.stream = [this, follower](const std::shared_ptr<ResponseSink>& sink) {
      follower->sink = sink;
      followers_.push_back(follower);
      sink->on_gone([this, weak = std::weak_ptr(follower)] {
        if (const auto gone = weak.lock()) {
          drop(gone);
        }
      });
      sink->write(": berth\n\n");
      follower->told = read_clock().mono;
      look(follower);
    };
    respond(std::move(response));
  });
}

void LogRoutes::keep_alive(Follower& follower) {
  const Millis now = read_clock().mono;
  if (now - follower.told >= kHeartbeat) {
    follower.sink->write(":\n\n");
    follower.told = now;
  }
}

void LogRoutes::look(const FollowerPtr& follower) {
  if (!follower->sink) {
    return;
  }
  find_then(follower->job, follower->attempt, [this, follower](const Result<Found>& found) {
    if (!follower->sink) {
      return;
    }
    if (!found) {
      drop(follower);  // it has been removed; the answer breaks off
      return;
    }
    if (found->attempt == 0 && !is_terminal(found->state)) {
      keep_alive(*follower);
      again(follower, kPollMax);
      return;
    }
    read(follower, *found);
  });
}

void LogRoutes::read(const FollowerPtr& follower, const Found& found) {
  if (follower->attempt == 0 && found.attempt != 0) {
    follower->attempt = found.attempt;
    follower->path = found.path;
  }
  if (follower->attempt == 0) {
    tell(follower, found, LogTailer::Piece{});
    return;
  }
  if (!follower->tailer) {
    follower->tailer =
        std::make_unique<LogTailer>(follower->path, config_.shown_files(), follower->offset);
  }
  const auto dropped = found.ended ? std::optional(found.dropped) : std::nullopt;
  files_.post([this, follower, found, dropped] {
    auto piece = std::make_shared<Result<LogTailer::Piece>>();
    Status begun;
    if (follower->lines) {
      begun = follower->tailer->skip_to_last(*std::exchange(follower->lines, {}), dropped);
    }
    if (begun) {
      *piece = follower->tailer->read(kFollowPiece, dropped);
    } else {
      *piece = std::unexpected(begun.error());
    }
    loop_.post([this, follower, found, piece] { tell(follower, found, std::move(*piece)); });
  });
}

void LogRoutes::tell(const FollowerPtr& follower, const Found& found,
                     Result<LogTailer::Piece> piece) {
  if (!follower->sink) {
    return;
  }
  if (!piece && piece.error().code != ErrorCode::not_found) {
    const boost::json::object data{{"message", to_utf8(piece.error().message)}};
    follower->sink->write(server_sent_event({}, "problem", boost::json::serialize(data)));
    follower->sink->close();
    drop(follower);
    return;
  }
  if (piece && !piece->text.empty()) {
    std::string text = std::exchange(follower->held, {}) + piece->text;
    const std::size_t rest = found.ended && !piece->more ? 0 : incomplete_end(text);
    follower->held = text.substr(text.size() - rest);
    text.resize(text.size() - rest);
    const std::uint64_t at = piece->at - rest;
    const boost::json::object data{
        {"attempt", follower->attempt}, {"offset", at}, {"text", to_utf8(text)}};
    follower->sink->write(server_sent_event(fmt::format("{}:{}", follower->attempt, at), "log",
                                            boost::json::serialize(data)));
    follower->told = read_clock().mono;
    follower->pause = kPoll;
    if (piece->more) {
      follower->sink->on_drained([this, follower] { look(follower); });
      return;
    }
  } else {
    keep_alive(*follower);
  }
  if (follower->attempt == 0 || found.ended) {
    next_attempt(follower, found);
    return;
  }
  again(follower, follower->pause);
  follower->pause = std::min(follower->pause * 2, kPollMax);
}

void LogRoutes::next_attempt(const FollowerPtr& follower, const Found& found) {
  const bool last = follower->only != 0 || follower->attempt >= found.last;
  if (!last) {
    const std::string before = follower->path;
    ++follower->attempt;
    follower->held.clear();
    find_then(follower->job, follower->attempt,
              [this, follower, before](const Result<Found>& next) {
                if (!follower->sink || !next || next->attempt == 0) {
                  drop(follower);
                  return;
                }
                follower->path = next->path;
                if (next->path != before) {  // else one file for all of them: it goes on
                  follower->tailer.reset();
                  follower->offset = 0;
                }
                follower->sink->write(server_sent_event(
                    {}, "attempt", fmt::format("{{\"attempt\":{}}}", follower->attempt)));
                look(follower);
              });
    return;
  }
  if (is_terminal(found.state) || follower->only != 0) {
    follower->sink->write(
        server_sent_event({}, "end", fmt::format("{{\"state\":\"{}\"}}", to_string(found.state))));
    follower->sink->close();
    drop(follower);
    return;
  }
  again(follower, kPollMax);  // it waits for another attempt
}

void LogRoutes::again(const FollowerPtr& follower, Millis delay) {
  follower->timer = loop_.after(delay, [this, weak = std::weak_ptr(follower)] {
    if (const auto alive = weak.lock()) {
      look(alive);
    }
  });
}

void LogRoutes::drop(const FollowerPtr& follower) {
  follower->sink.reset();
  follower->timer.reset();
  followers_.remove(follower);
}

void LogRoutes::close() {
  for (const FollowerPtr& follower : std::list(followers_)) {
    follower->sink->close();
    drop(follower);
  }
}

}  // namespace berth
