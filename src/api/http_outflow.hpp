#pragma once
// The bytes of a streamed answer between whoever makes them and the connection: chunks, a count of
// what is unsent, and the end, which may come from either side.

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "api/http.hpp"

namespace berth {

/// How a client knows where an answer of unknown length ends.
enum class StreamEnd { last_chunk, close };

/// On the io thread alone. The connection takes a piece at a time, and says when it is sent.
class Outflow : public std::enable_shared_from_this<Outflow> {
 public:
  /// `ready` is called when there is something to do for the connection. Whoever lets more than
  /// `limit` bytes come together is broken off.
  Outflow(std::size_t limit, StreamEnd end, std::function<void()> ready);

  /// The header of the answer goes first.
  void begin(std::string header);
  /// What its maker writes to. Without a close() there, the answer is broken off when this goes.
  [[nodiscard]] std::shared_ptr<ResponseSink> sink();

  [[nodiscard]] bool writing() const { return !current_.empty(); }
  [[nodiscard]] bool broken() const { return broken_; }
  [[nodiscard]] bool ended() const { return ended_; }
  /// The next piece, which stays until sent(); empty: there is none.
  const std::string& take();
  void sent();
  /// The client is there no longer.
  void gone();

 private:
  class Sink;
  void write(const std::string& piece);
  void end(bool complete);
  void queue(std::string bytes);
  [[nodiscard]] std::size_t pending() const { return current_.size() + queued_; }

  std::size_t limit_;
  StreamEnd end_;
  std::function<void()> ready_;
  std::string current_;            ///< with the connection
  std::deque<std::string> queue_;  ///< already in chunks, if there are any
  std::size_t queued_ = 0;         ///< bytes in it
  std::function<void()> drained_;
  std::function<void()> gone_;
  bool ended_ = false;
  bool broken_ = false;
  bool left_ = false;
};

}  // namespace berth
