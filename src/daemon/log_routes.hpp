#pragma once
// Logs over the API: as they are, in parts, or followed while they grow.

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "api/http.hpp"
#include "api/resources.hpp"
#include "daemon/attempt_log.hpp"
#include "daemon/loop.hpp"
#include "daemon/service_config.hpp"
#include "daemon/worker.hpp"
#include "store/reader.hpp"

namespace berth {

class LogRoutes {
 public:
  LogRoutes(Loop& loop, Worker& readers, StoreReader& reader, Worker& files,
            const ServiceConfig& config);

  void get(std::uint64_t job, const HttpRequest& request, Respond respond);
  void follow(std::uint64_t job, const HttpRequest& request, Respond respond);
  void close();

 private:
  /// An attempt of which the log is asked for, and what has become of it.
  struct Found {
    JobState state = JobState::queued;
    std::uint32_t attempt = 0;  ///< 0: there is none
    std::uint32_t last = 0;     ///< the number of the last one
    bool ended = false;
    std::uint64_t dropped = 0;
    std::string path;
  };
  struct Follower;
  using FollowerPtr = std::shared_ptr<Follower>;

  [[nodiscard]] Result<Found> find(StoreReader& reader, std::uint64_t job,
                                   std::uint32_t attempt) const;
  void find_then(std::uint64_t job, std::uint32_t attempt, std::function<void(Result<Found>)> then);
  void answer(const HttpRequest& request, const AttemptQuery& query, std::uint64_t job,
              const Found& found, Respond respond);
  /// A client takes silence for a broken connection.
  static void keep_alive(Follower& follower);
  void look(const FollowerPtr& follower);
  void read(const FollowerPtr& follower, const Found& found);
  void tell(const FollowerPtr& follower, const Found& found, Result<LogTailer::Piece> piece);
  void next_attempt(const FollowerPtr& follower, const Found& found);
  void again(const FollowerPtr& follower, Millis delay);
  void drop(const FollowerPtr& follower);

  Loop& loop_;
  Worker& readers_;
  StoreReader& reader_;
  Worker& files_;
  const ServiceConfig& config_;
  std::list<FollowerPtr> followers_;
};

/// What `Range` asks for of a text of this size; none: all of it, also when it asks for several
/// parts. An error: nothing of that is there.
struct ByteRange {
  std::uint64_t from = 0;
  std::uint64_t to = 0;  ///< the last byte
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};
[[nodiscard]] Result<std::optional<ByteRange>> parse_range(std::string_view header,
                                                           std::uint64_t size);

}  // namespace berth
