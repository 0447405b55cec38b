#pragma once
// A submission that arrives as NDJSON: read from the socket, decoded on a worker and handed to the
// engine at the pace of the disk, with a bounded amount in memory at any time.

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/http.hpp"
#include "api/ndjson.hpp"
#include "api/wire.hpp"
#include "daemon/loop.hpp"
#include "daemon/worker.hpp"
#include "engine/part_submission.hpp"

namespace berth {

class StreamSubmit : public std::enable_shared_from_this<StreamSubmit> {
 public:
  /// `done` is called once, when it is answered or the client has gone.
  static void start(Loop& loop, Engine& engine, Worker& decoder, HttpRequest request,
                    Respond respond, std::function<void()> done);

 private:
  /// What one piece of the body came to. Made on the worker.
  struct Decoded {
    std::optional<StreamHead> head;
    std::deque<std::vector<JobSpec>> parts;
    std::size_t weight = 0;  ///< of the last part
    std::optional<Error> error;
    bool end = false;
  };

  StreamSubmit(Loop& loop, Engine& engine, Worker& decoder, HttpRequest request, Respond respond,
               std::function<void()> done);
  void read();
  void decode(std::string piece);
  [[nodiscard]] Decoded decode_piece(const std::string& piece);
  Status take_line(std::string_view line, Decoded& out);
  void decoded(Decoded piece);
  void begin(const StreamHead& head);
  void feed();
  void finish(const Result<Answer>& answer);
  void fail_with(const Error& error);

  Loop& loop_;
  Engine& engine_;
  Worker& decoder_;
  HttpRequest request_;
  Respond respond_;
  std::function<void()> done_;
  std::shared_ptr<PartSubmission> submission_;
  std::deque<std::vector<JobSpec>> parts_;  ///< decoded, not yet given to the engine
  bool reading_ = false;
  bool feeding_ = false;
  bool complete_ = false;  ///< all of the body has been decoded
  bool ended_ = false;
  bool over_ = false;

  // The worker's, and only touched there.
  LineSplitter lines_;
  std::optional<StreamHead> head_;
  std::uint64_t jobs_ = 0;  ///< so far
};

}  // namespace berth
