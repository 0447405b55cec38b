#pragma once
// Works something out from what the loop's thread owns, in a child process that has all of it as it
// was at the fork: the kernel copies a page when one of the two writes to it. So nothing is copied
// on the loop's thread, however much there is, and what is worked out may take its time.
//
// Belongs to the loop. One child at a time, in the order of asking.

#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "daemon/loop.hpp"

namespace berth {

class ForkedWork {
 public:
  /// Runs in the child, where there is one thread, this one. It may read and change whatever this
  /// thread owns, and allocate. It must not touch what another thread may have locked at the fork:
  /// no logging, no store, no worker, no loop. Descriptors are closed.
  using Work = std::function<std::string()>;
  /// `busy`: too many ask. `unavailable`: it took too long, or the child has died.
  using Then = std::function<void(Result<std::string>)>;

  struct Limits {
    Millis time{20'000};           ///< for one, from its fork on
    std::size_t waiting = 4;       ///< besides the one under way
    std::size_t bytes = 64 << 20;  ///< of a result
  };

  /// `what` is worked out, for messages: "the preview".
  ForkedWork(Loop& loop, std::string what, Limits limits);
  ~ForkedWork();
  ForkedWork(const ForkedWork&) = delete;
  ForkedWork& operator=(const ForkedWork&) = delete;

  /// Forks at once or when those before it are done, and calls `then` on the loop, later.
  void run(Work work, Then then);
  /// Ends what is under way and tells everybody who waits; the daemon is going.
  void close();

 private:
  struct Asked {
    Work work;
    Then then;
  };

  void next();
  [[nodiscard]] Status fork_for(const Work& work);
  void on_output();
  /// All of the result is here, or the child was told to die: what became of it is what is told.
  void await_end();
  void on_end();
  void give_up(Error why);
  void finish(Result<std::string> result);

  Loop& loop_;
  std::string what_;
  Limits limits_;
  std::deque<Asked> asked_;  ///< the first one is under way if there is a child
  bool closed_ = false;
  pid_t pid_ = -1;
  Fd pidfd_;
  Fd output_;
  std::string result_;
  std::optional<Error> given_up_;  ///< why the child was told to die
  Loop::Handle output_watch_;
  Loop::Handle end_watch_;
  Loop::Handle patience_;
};

}  // namespace berth
