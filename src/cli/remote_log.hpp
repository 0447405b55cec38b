#pragma once
// Logs of another machine's jobs, as its API tells them.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "api/http.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "cli/daemon.hpp"
#include "cli/log_stream.hpp"

namespace berth::cli {

/// Server-Sent Events out of a text that arrives in pieces.
class EventLines {
 public:
  /// The name of the event and its data.
  using Take = std::function<void(std::string_view name, std::string_view data)>;
  explicit EventLines(Take take) : take_(std::move(take)) {}
  void feed(std::string_view text);

 private:
  void line(std::string_view text);

  Take take_;
  std::string partial_;
  std::string name_;
  std::string data_;
};

/// Which part of a job's log is wanted.
struct LogPart {
  std::uint64_t job = 0;
  std::optional<std::uint32_t> attempt;  ///< none: the last one, and those that follow it
  std::optional<std::uint64_t> lines;    ///< the last so many; none: all
};

/// One attempt's log as it stands.
[[nodiscard]] Status copy_remote_log(Daemon& daemon, const LogPart& part, const LogSink& sink);

/// How long it is. None: it is not there.
[[nodiscard]] Result<std::optional<std::uint64_t>> remote_log_size(Daemon& daemon,
                                                                   const LogPart& part);

/// Listens to the daemon of another machine on a thread of its own, so that many logs can be
/// followed at once and keys and interrupts are noticed meanwhile. A connection that breaks, as
/// when the daemon is replaced, is made again, and the log goes on where it was.
class RemoteLogFollower final : public FollowedLog {
 public:
  RemoteLogFollower(HttpRemote server, LogPart part, LogSink sink);
  RemoteLogFollower(const RemoteLogFollower&) = delete;
  RemoteLogFollower& operator=(const RemoteLogFollower&) = delete;
  ~RemoteLogFollower() override;

  /// The first call begins to listen.
  [[nodiscard]] Status look(const JobDetail& detail,
                            const std::function<void(std::uint32_t)>& next) override;
  [[nodiscard]] Status drain() override;
  [[nodiscard]] bool over() const override { return over_; }
  [[nodiscard]] bool opened() const override { return opened_; }

 private:
  struct Piece {
    std::uint32_t attempt = 0;
    std::string text;
  };

  // On the thread that listens.
  void listen();
  [[nodiscard]] Result<bool> listen_once();
  void take(std::string_view event, std::string_view data);
  void hand_over(Piece piece);
  [[nodiscard]] bool pause();  ///< false: it is time to stop

  HttpRemote server_;
  LogPart part_;
  LogSink sink_;
  std::function<void(std::uint32_t)> next_;
  std::uint32_t told_ = 0;  ///< the attempt that was handed on last
  bool over_ = false;
  bool opened_ = false;

  // Of the thread that listens.
  std::string position_;  ///< behind the last event, as the daemon takes it
  Millis heard_{0};       ///< when there was last a connection
  bool ended_ = false;    ///< the daemon has said so

  std::mutex mutex_;
  std::condition_variable wake_;
  std::shared_ptr<HttpClient> client_;  ///< the connection under way
  std::vector<Piece> pieces_;
  std::size_t held_ = 0;  ///< bytes in `pieces_`
  bool stop_ = false;
  bool done_ = false;  ///< nothing will be added to `pieces_` any more
  std::optional<Error> error_;
  std::thread thread_;
};

}  // namespace berth::cli
