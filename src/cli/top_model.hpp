#pragma once
// What `berth top` knows, and what of it is in view: plain values, no terminal and no daemon.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/views.hpp"

namespace berth::cli {

/// How many jobs of each kind are asked for: never the whole backlog.
inline constexpr std::size_t kTopRunning = 200;
inline constexpr std::size_t kTopPaused = 50;
inline constexpr std::size_t kTopQueued = 100;
inline constexpr std::size_t kTopEnded = 50;

/// What the daemon has told.
struct TopData {
  StatusView status;
  std::vector<JobView> running;            ///< ascending
  std::vector<JobView> paused;             ///< stopped, or held before their start
  std::vector<JobView> queued;             ///< the first ones
  std::vector<JobView> ended;              ///< the newest first
  std::map<std::uint64_t, Millis> limits;  ///< time limits of running jobs that have one
  bool complete = false;                   ///< there has been a whole round of answers
  Millis answered{0};                      ///< wall time of the last answer
  std::string trouble;                     ///< why there is none now; empty: there is
};

/// The job that is looked at closely.
struct TopSubject {
  std::uint64_t job = 0;  ///< 0: none
  bool log = false;       ///< its log, otherwise all about it
  std::optional<JobDetail> detail;
  std::optional<WhyView> why;
  std::shared_ptr<const std::vector<std::string>> lines;  ///< of the log; null: none yet
  std::string trouble;
};

enum class TopPane : std::uint8_t { jobs, queues, finished, gpus };
inline constexpr std::size_t kTopPanes = 4;
enum class TopMode : std::uint8_t { list, job, log, help };

/// Where one stands in a list.
struct TopCursor {
  std::string key;        ///< of the chosen row; keeps its place when rows come and go
  std::size_t index = 0;  ///< among all rows
  std::size_t first = 0;  ///< the row at the top
};

/// What is asked before it is done.
struct TopQuestion {
  std::uint64_t job = 0;
  std::string text;
};

/// What the person at the keys has chosen.
struct TopState {
  TopPane pane = TopPane::jobs;
  TopMode mode = TopMode::list;
  std::array<TopCursor, kTopPanes> cursors;
  std::string filter;
  bool typing = false;  ///< the filter is being typed
  bool frozen = false;  ///< no news is wanted for now
  std::optional<TopQuestion> question;
  std::string message;
  bool message_bad = false;
  std::uint64_t subject = 0;  ///< in modes job and log
  std::size_t scroll = 0;     ///< of a text: its line at the top
  bool at_end = false;        ///< of a text: stay at its end as it grows

  [[nodiscard]] TopCursor& cursor() { return cursors[static_cast<std::size_t>(pane)]; }
  [[nodiscard]] const TopCursor& cursor() const { return cursors[static_cast<std::size_t>(pane)]; }
};

/// One line of a list. The pointers lead into the TopData it was made from.
struct TopRow {
  enum class Kind : std::uint8_t { title, note, job, queue, gpu };
  Kind kind = Kind::note;
  std::string key = {};   ///< of what can be chosen
  std::string text = {};  ///< of titles and notes
  const JobView* job = nullptr;
  const QueueView* queue = nullptr;
  const GpuView* gpu = nullptr;

  [[nodiscard]] bool can_be_chosen() const { return !key.empty(); }
};

/// The rows of the pane in view, as the filter leaves them.
[[nodiscard]] std::vector<TopRow> top_rows(const TopData& data, const TopState& state);

/// The chosen row; null if there is none.
[[nodiscard]] const TopRow* chosen_row(const std::vector<TopRow>& rows, const TopState& state);
/// The job that keys act on: the chosen one, or the one looked at. Null: none.
[[nodiscard]] const JobView* chosen_job(const TopData& data, const TopState& state,
                                        const std::vector<TopRow>& rows);

/// Puts the cursor on a row that exists, the same as before if it is still there, and keeps it
/// among the `height` rows in view.
void settle(TopState& state, const std::vector<TopRow>& rows, std::size_t height);
/// Keeps a text of `lines` lines in a view of `height`.
void settle_text(TopState& state, std::size_t lines, std::size_t height);

/// How many jobs are in this state, by the daemon's own count.
[[nodiscard]] std::uint64_t count_of(const TopData& data, JobState state);

/// How the memory of a card is divided.
struct GpuMemory {
  Bytes total = 0;
  Bytes jobs = 0;     ///< used by jobs
  Bytes others = 0;   ///< used by others
  Bytes claimed = 0;  ///< kept for jobs, not used yet
};
/// None where the card does not tell.
[[nodiscard]] std::optional<GpuMemory> memory_of(const GpuView& gpu);

/// What the processes of a job use on all its cards; none if it has none, or they do not tell.
[[nodiscard]] std::optional<Bytes> gpu_memory_of(const TopData& data, std::uint64_t job);

}  // namespace berth::cli
