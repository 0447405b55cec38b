#pragma once
// What `berth top` asks the daemon, and in which order. One thread uses it; it has no state of the
// screen.

#include <map>
#include <memory>
#include <string>

#include "cli/log_stream.hpp"
#include "cli/top_keys.hpp"
#include "cli/top_link.hpp"
#include "cli/top_log.hpp"
#include "cli/top_model.hpp"
#include "cli/top_source.hpp"

namespace berth::cli {

class TopAsker {
 public:
  explicit TopAsker(TopLink& link) : link_(link) {}

  /// Status, cards, and a page of each kind of jobs; what cannot have changed is not asked for.
  void ask_round();
  [[nodiscard]] const TopData& data() const { return data_; }

  void look_at(std::uint64_t job, bool log);
  /// `detail`: ask the daemon, too; otherwise only read on in the log.
  void ask_subject(bool detail);
  [[nodiscard]] const TopSubject& subject() const { return subject_; }

  [[nodiscard]] TopMessage carry_out(const TopCommand& command);

 private:
  [[nodiscard]] Status ask_all();
  [[nodiscard]] Status ask_jobs();
  void ask_limits();
  [[nodiscard]] Status ask_detail();
  [[nodiscard]] Status read_log();
  [[nodiscard]] Result<std::string> control(const TopCommand& command);

  TopLink& link_;
  TopData data_;
  /// Time limits by job, none included, and which round asked last.
  struct Limit {
    Millis limit{0};
    std::uint64_t round = 0;
  };
  std::map<std::uint64_t, Limit> limits_;
  std::uint64_t round_ = 0;
  std::map<JobState, std::uint64_t> counts_;  ///< in the last round that was answered
  bool hurried_ = false;                      ///< jobs have been changed from here
  TopSubject subject_;
  std::unique_ptr<FollowedLog> follower_;
  std::shared_ptr<TopLog> log_;
};

}  // namespace berth::cli
