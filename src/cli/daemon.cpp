#include "cli/daemon.hpp"

#include <algorithm>
#include <charconv>
#include <thread>

#include <fmt/format.h>

#include "cli/interrupt.hpp"
#include "cli/server.hpp"
#include "cli/start_daemon.hpp"
#include "cli/terminal.hpp"

namespace berth::cli {
namespace {

constexpr int kTries = 4;
constexpr Millis kSuccessorPatience{5'000};
constexpr Millis kSuccessorPause{50};
constexpr int kServiceUnavailable = 503;
/// Submissions of more jobs than this are sent as a stream.
constexpr std::size_t kStreamAbove = 1'000;
constexpr std::size_t kPiece = 256 * 1024;
constexpr Millis kStreamTimeout{120'000};
constexpr Millis kHeadTimeout{60'000};

/// What a stream asks of its jobs. A file that is written the other way round goes in one body.
bool follows_only_earlier(const std::vector<JobSpec>& jobs) {
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (std::ranges::any_of(jobs[i].after_index, [i](std::uint32_t at) { return at >= i; })) {
      return false;
    }
  }
  return true;
}
constexpr int kTooManyRequests = 429;
constexpr int kBusyPauseUsual = 1;  ///< seconds, where the daemon names none
constexpr int kBusyPauseMax = 60;

std::string header(const HttpResponse& response, std::string_view name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) {
      return value;
    }
  }
  return {};
}

/// How long to wait before asking a busy daemon again.
std::chrono::seconds busy_pause(const HttpResponse& response) {
  const std::string text = header(response, "retry-after");
  int seconds = kBusyPauseUsual;
  if (const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
      error != std::errc()) {
    seconds = kBusyPauseUsual;
  }
  return std::chrono::seconds(std::clamp(seconds, 0, kBusyPauseMax));
}

}  // namespace

Result<Daemon> Daemon::open(Start start) {
  if (chosen_server()) {
    Daemon daemon({}, Start::never);
    TRY(daemon.connect());
    TRY_ASSIGN(const StatusView status, daemon.get<StatusView>("/api/status"));
    TRY_ASSIGN(daemon.paths_, instance_in(status.instance));
    return daemon;
  }
  TRY_ASSIGN(InstancePaths paths, find_instance());
  Daemon daemon(std::move(paths), start);
  TRY(daemon.connect());
  return daemon;
}

Result<HttpClient> Daemon::dial() const {
  return chosen_server() ? HttpClient::connect(*chosen_server())
                         : HttpClient::connect(paths_.socket);
}

Status Daemon::connect() {
  auto client = dial();
  if (!client && client.error().code == ErrorCode::unavailable && start_ == Start::if_needed) {
    const auto start = [&] {
      return start_daemon(paths_, [&] {
        client = dial();
        return client.has_value();
      });
    };
    Status started = start();
    if (!started && started.error().code == ErrorCode::conflict) {
      started = start();
    }
    TRY(started);
  }
  if (!client) {
    return std::unexpected(std::move(client.error()));
  }
  client_ = std::move(*client);
  return {};
}

bool Daemon::await_successor() {
  client_.reset();
  const Millis begun = read_clock().mono;
  while (read_clock().mono - begun < kSuccessorPatience) {
    std::this_thread::sleep_for(kSuccessorPause);
    if (auto client = dial()) {
      client_ = std::move(*client);
      return true;
    }
  }
  return false;
}

Result<std::string> Daemon::call(const std::string& method, const std::string& target,
                                 const std::string& body, Millis timeout) {
  TRY_ASSIGN(HttpResponse response, exchange(method, timeout, [&] {
               return client_->request(method, target, body, timeout);
             }));
  return body_or_error(std::move(response));
}

Result<HttpResponse> Daemon::exchange(const std::string& method, Millis timeout,
                                      const std::function<Result<HttpResponse>()>& send) {
  Error last;
  for (int tries = 0; tries < kTries; ++tries) {
    if (!client_) {
      TRY(connect());
    }
    const Millis begun = read_clock().mono;
    auto response = send();
    if (response && response->status == kServiceUnavailable && method == "GET" &&
        await_successor()) {
      continue;
    }
    if (response) {
      if (header(*response, "connection") == "close") {
        client_.reset();
      }
      if (response->status == kTooManyRequests) {
        if (!told_busy_) {
          warn("the daemon is busy; waiting");
          told_busy_ = true;
        }
        const Millis until = read_clock().mono + busy_pause(*response);
        while (read_clock().mono < until && !interrupted()) {
          std::this_thread::sleep_for(kSuccessorPause);
        }
        if (interrupted()) {
          return fail(ErrorCode::unavailable, "the daemon was busy");
        }
        --tries;  // it has answered: as often as it takes
        continue;
      }
      return response;
    }
    client_.reset();
    last = std::move(response.error());
    if (read_clock().mono - begun >= timeout) {
      break;  // it is there, but it is stuck: asking again would only take as long again
    }
  }
  return std::unexpected(std::move(last));
}

Status Daemon::follow(const std::string& target,
                      const std::function<bool(std::string_view)>& take) {
  if (!client_) {
    TRY(connect());
  }
  auto response = client_->follow(target, take);
  client_.reset();  // it may be in the middle of something
  TRY(response);
  TRY(body_or_error(std::move(*response)));
  return {};
}

Result<HttpResponse> Daemon::head(const std::string& target, const HttpHeaders& headers) {
  return exchange("GET", kHeadTimeout, [&] {
    return client_->follow(target, [](std::string_view) { return false; }, headers, kHeadTimeout);
  });
}

Result<SubmitAnswer> Daemon::submit(const event::Submit& submit) {
  if (submit.jobs.size() > kStreamAbove && follows_only_earlier(submit.jobs)) {
    return submit_stream(submit);
  }
  TRY_ASSIGN(const std::string body,
             call("POST", "/api/jobs", encode_submit(submit), Millis(120'000)));
  return decode_answer<SubmitAnswer>(body);
}

Result<SubmitAnswer> Daemon::submit_stream(const event::Submit& submit) {
  // A line at a time would be slow, all at once would take as much memory again.
  const auto send = [&] {
    std::size_t sent = 0;
    bool begun = false;
    return client_->stream("POST", "/api/jobs", [&] {
      std::string piece;
      if (!std::exchange(begun, true)) {
        piece = encode_stream_head(submit) + "\n";
      }
      while (sent < submit.jobs.size() && piece.size() < kPiece) {
        piece += encode_stream_job(submit.jobs[sent++]);
        piece += '\n';
      }
      return piece;
    });
  };
  TRY_ASSIGN(HttpResponse response, exchange("POST", kStreamTimeout, send));
  TRY_ASSIGN(const std::string body, body_or_error(std::move(response)));
  return decode_answer<SubmitAnswer>(body);
}

Result<std::vector<DoneView>> Daemon::done(const std::vector<DoneQuestion>& questions) {
  std::vector<DoneView> all;
  while (all.size() < questions.size()) {
    const auto from = questions.begin() + static_cast<std::ptrdiff_t>(all.size());
    const auto count = std::min<std::ptrdiff_t>(questions.end() - from, kDoneMax);
    TRY_ASSIGN(const std::string body,
               call("POST", "/api/done", encode_done({{from, from + count}})));
    TRY_ASSIGN(DoneAnswer answer, decode_answer<DoneAnswer>(body));
    if (std::cmp_not_equal(answer.jobs.size(), count)) {
      return fail(ErrorCode::invalid,
                  fmt::format("the daemon answered {} of {} questions; is it of another version? "
                              "(berth stop ends it, jobs go on)",
                              answer.jobs.size(), count));
    }
    std::ranges::move(answer.jobs, std::back_inserter(all));
  }
  return all;
}

Result<std::vector<JobView>> Daemon::jobs(JobQuery query, std::size_t max) {
  std::vector<JobView> all;
  while (all.size() < max) {
    query.limit = static_cast<std::uint32_t>(std::min<std::size_t>(max - all.size(), 2000));
    TRY_ASSIGN(JobPage page, get<JobPage>(job_query_target(query)));
    std::ranges::move(page.jobs, std::back_inserter(all));
    if (!page.next) {
      break;
    }
    query.after = *page.next;
  }
  return all;
}

std::vector<IdSet> in_parts(const IdSet& ids, std::size_t ranges) {
  std::vector<IdSet> parts;
  for (std::size_t i = 0; i < ids.ranges().size(); ++i) {
    if (i % ranges == 0) {
      parts.emplace_back();
    }
    parts.back().add(ids.ranges()[i].first, ids.ranges()[i].second);
  }
  return parts;
}

}  // namespace berth::cli
