#pragma once
// The daemon as the commands see it: requests that survive a restart of it.

#include <functional>
#include <optional>
#include <string>

#include "api/http.hpp"
#include "api/paths.hpp"
#include "api/wire.hpp"
#include "base/result.hpp"

namespace berth::cli {

class Daemon {
 public:
  enum class Start { if_needed, never };

  /// Connects, to the chosen server or starting a daemon here if none answers.
  static Result<Daemon> open(Start start = Start::if_needed);

  /// The body of the answer, or the error it carries. A lost connection is made again and the
  /// request repeated, so it must be one that may arrive twice: a read, a kill, or a submission,
  /// which its key protects. A daemon that is too busy (429) is asked again when it says; that is
  /// told once.
  Result<std::string> call(const std::string& method, const std::string& target,
                           const std::string& body = {}, Millis timeout = Millis(60'000));

  /// The decoded answer to a GET.
  template <class T>
  Result<T> get(const std::string& target, Millis timeout = Millis(60'000)) {
    TRY_ASSIGN(const std::string body, call("GET", target, {}, timeout));
    return decode_answer<T>(body);
  }

  Result<SubmitAnswer> submit(const event::Submit& submit);
  /// Which experiments have been done before, or are under way: one answer for each, in order.
  Result<std::vector<DoneView>> done(const std::vector<DoneQuestion>& questions);
  /// All jobs that match, following cursors; at most `max`.
  Result<std::vector<JobView>> jobs(JobQuery query, std::size_t max = SIZE_MAX);

  /// Hands out the body of a GET as it arrives, as long as `take` wants more. A break in between is
  /// an error.
  Status follow(const std::string& target, const std::function<bool(std::string_view)>& take);

  /// The status and the headers that a GET with these headers is answered with.
  Result<HttpResponse> head(const std::string& target, const HttpHeaders& headers);

  /// Those of the machine the daemon runs on.
  [[nodiscard]] const InstancePaths& paths() const { return paths_; }

 private:
  Result<SubmitAnswer> submit_stream(const event::Submit& submit);
  /// Sends, and tries again where that can help.
  Result<HttpResponse> exchange(const std::string& method, Millis timeout,
                                const std::function<Result<HttpResponse>()>& send);
  Daemon(InstancePaths paths, Start start) : paths_(std::move(paths)), start_(start) {}
  Status connect();
  [[nodiscard]] Result<HttpClient> dial() const;
  /// A daemon that stops cleanly may be followed by another at once, as in an upgrade. Does not
  /// start one: whoever stopped it may have meant it.
  bool await_successor();
  template <class T>
  Result<T> decode_answer(const std::string& body) {
    auto answer = decode<T>(body);
    if (!answer) {
      answer.error().message = "cannot understand the daemon: " + answer.error().message +
                               "; is it of another version? (berth stop ends it, jobs go on)";
    }
    return answer;
  }

  InstancePaths paths_;
  Start start_;
  std::optional<HttpClient> client_;
  bool told_busy_ = false;
};

/// The set in parts that fit into a request's target.
[[nodiscard]] std::vector<IdSet> in_parts(const IdSet& ids, std::size_t ranges = 500);

}  // namespace berth::cli
