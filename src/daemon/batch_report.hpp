#pragma once
// A batch in the words of the scheduler its file was written for: state/{pid}.json and the lines of
// its log. Pure: values in, texts out.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "core/job.hpp"
#include "store/rows.hpp"

namespace berth {

/// A job of a batch with what a list shows of it.
struct BatchJob {
  JobRow row;
  std::vector<Command> commands;  ///< as submitted
};

struct BatchReport {
  BatchId id;
  BatchTraits traits;
  std::vector<BatchJob> jobs;                ///< ascending id
  std::map<AttemptId, AttemptRow> attempts;  ///< those that the lines to be written tell of
};

/// "1" of "command_gpu/1".
[[nodiscard]] std::string_view queue_id(std::string_view queue);

/// Whether all of its jobs have ended.
[[nodiscard]] bool has_ended(const BatchReport& batch);

/// The text of state/{pid}.json.
[[nodiscard]] std::string state_json(const BatchReport& batch, Millis wall);

/// A line of the batch's log that tells of one line of history; empty: nothing to tell.
[[nodiscard]] std::string log_line(const BatchReport& batch, const HistoryRow& row);

/// The line with the counts, and which queues are busy.
[[nodiscard]] std::string status_line(const BatchReport& batch, Millis wall);

}  // namespace berth
