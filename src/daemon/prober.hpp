#pragma once
// Keeps a probe process and turns its answers into events.
//
// A call stuck in a driver cannot be cancelled, so a probe that does not answer is abandoned: it is
// told to die, nobody waits for it, and another takes its place after a while. The daemon holds
// nothing that such a process could keep hostage.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"
#include "core/event.hpp"
#include "daemon/loop.hpp"
#include "gpu/probe.hpp"

namespace berth {

struct ProberConfig {
  int program_fd = -1;                 ///< this very program, opened at start
  std::vector<std::string> arguments;  ///< of the probe process, argv[0] first
  std::vector<std::string> environment;
  Millis patience{10'000};  ///< how long an answer may take
  Millis period{2'000};     ///< between looks while somebody wants to know, at most
};

class Prober {
 public:
  struct Hooks {
    std::function<void(Event)> emit;
    std::function<bool()> wanted;                   ///< whether to go on looking periodically
    std::function<std::optional<Millis>()> within;  ///< how old a look may become; none: any age
    std::function<AttemptId(std::uint32_t)> attempt_of_shim;  ///< by pid; none if it is not one
  };

  Prober(Loop& loop, ProberConfig config, Hooks hooks);
  ~Prober();

  /// A look that begins after this call. Calls while one is outstanding are one.
  void request();
  /// Calls back after the next answer or failure of a look that began after this call, or at once
  /// if no probe can run at present.
  void after_fresh(std::function<void()> then);

 private:
  void launch();
  void ask();
  void on_output();
  void answer(const std::string& line);
  void fail(const std::string& why);
  void abandon();
  void look_again_later();
  void tell_waiters();
  void attribute(ProbeReply& reply);

  Loop& loop_;
  ProberConfig config_;
  Hooks hooks_;
  Fd to_probe_;
  Fd from_probe_;
  Fd pidfd_;
  pid_t pid_ = -1;
  std::string buffer_;
  std::uint64_t asked_ = 0;  ///< number of the last question
  bool outstanding_ = false;
  bool again_ = false;    ///< somebody asked while one was outstanding
  bool resting_ = false;  ///< after a failure, until the next try
  Millis rest_{1'000};
  std::vector<std::function<void()>> waiters_;       ///< for the outstanding look
  std::vector<std::function<void()>> next_waiters_;  ///< for the one after it
  /// Who a process was found to belong to while its supervisor lived; the supervisor may go first.
  std::map<std::pair<std::uint32_t, std::uint64_t>, AttemptId> owners_;
  Loop::Handle output_watch_;
  Loop::Handle patience_;
  Loop::Handle timer_;
  struct Abandoned {
    Fd pidfd;
    Loop::Handle watch;
  };
  std::map<pid_t, Abandoned> abandoned_;
};

}  // namespace berth
