#pragma once
// How far a submission has come, as far as the events have told. Knows no daemon and no terminal.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/views.hpp"
#include "cli/terminal.hpp"

namespace berth::cli {

class Progress {
 public:
  void update(JobView job);

  [[nodiscard]] bool done() const { return ended_ == jobs_.size(); }
  [[nodiscard]] bool all_succeeded() const { return count(JobState::succeeded) == jobs_.size(); }
  [[nodiscard]] std::size_t size() const { return jobs_.size(); }
  [[nodiscard]] std::size_t count(JobState state) const;
  [[nodiscard]] std::vector<JobView> jobs() const;  ///< ascending id
  [[nodiscard]] const JobView* find(std::uint64_t id) const;
  /// The first job that waits; null if none does.
  [[nodiscard]] const JobView* first_waiting() const;

  /// The block that is redrawn: a bar with numbers, what runs where, why the first waiting job
  /// waits. At most `screen.height` - 2 lines, each within its width.
  [[nodiscard]] std::vector<std::string> block(const Screen& screen, Millis now) const;

 private:
  std::map<std::uint64_t, JobView> jobs_;
  std::map<JobState, std::size_t> counts_;
  std::size_t ended_ = 0;
};

/// "12:00:01 job 3 lr=0.1-s1 started on GPU 0", for logs and pipes. `job` as it is now.
[[nodiscard]] std::string event_line(const EventView& event, const JobView& job);

}  // namespace berth::cli
