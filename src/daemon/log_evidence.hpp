#pragma once
// What an attempt that has ended says of its end: the last of what it wrote, if it failed, and what
// it reported of itself. The files may lie on a mount that hangs: they are
// read by threads that may be given up, and nobody waits for them longer than a few seconds.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/time.hpp"
#include "core/self_report.hpp"
#include "daemon/loop.hpp"

namespace berth {

/// Where to look.
struct LogPlace {
  std::string path;        ///< absolute
  std::uint64_t from = 0;  ///< what stands before is somebody else's
};

/// Of one attempt. What is empty is not looked at.
struct EvidencePlaces {
  LogPlace log;
  bool failed = false;          ///< otherwise its log is read only if it reports a failure
  std::string report = {};      ///< what BERTH_REPORT names
  std::string state_file = {};  ///< uni_id.json, where `uni_id` may have an entry
  std::string uni_id = {};
};

struct FoundEvidence {
  std::string log_end;
  SelfReport report;
};

inline constexpr std::uint64_t kLogEvidenceSize = 64UL * 1024;

/// The end of a log, with what its supervisor had no time to put together. Blocks. Empty when there
/// is nothing to read, or no regular file.
[[nodiscard]] std::string read_log_end(const LogPlace& place);

/// All of it. Blocks.
[[nodiscard]] FoundEvidence read_evidence(const EvidencePlaces& places);

/// Belongs to the loop's thread.
class LogEvidence {
 public:
  using Done = std::function<void(FoundEvidence)>;
  using Read = std::function<FoundEvidence(const EvidencePlaces&)>;

  explicit LogEvidence(Loop& loop, Millis patience = Millis(3'000), Read read = read_evidence);
  /// Whoever has not been told by then is not told any more.
  ~LogEvidence();
  LogEvidence(const LogEvidence&) = delete;
  LogEvidence& operator=(const LogEvidence&) = delete;

  /// Calls `done` once, on the loop's thread: with what was found, or with nothing.
  void read(EvidencePlaces places, Done done);

 private:
  struct Shared;
  struct Waiting {
    Done done;
    Loop::Handle timer;
  };

  void finish(std::uint64_t ticket, FoundEvidence found);

  Loop& loop_;
  Millis patience_;
  std::shared_ptr<Shared> shared_;
  std::map<std::uint64_t, Waiting> waiting_;
  std::uint64_t last_ticket_ = 0;
};

}  // namespace berth
