#pragma once
// From what the store and State hold to what the API shows.

#include <optional>
#include <string>
#include <vector>

#include "api/views.hpp"
#include "api/wire.hpp"
#include "core/reason.hpp"
#include "core/state.hpp"
#include "daemon/process_notes.hpp"
#include "store/reader.hpp"

namespace berth {

/// What it takes to tell where an attempt's output is.
struct LogPlaces {
  std::string dir;       ///< of the logs that berth names
  std::string instance;  ///< its id
};

/// Where the output of an attempt is: where the user wanted it, or where berth puts it.
[[nodiscard]] std::string log_path(const JobRow& row, const AttemptRow& attempt,
                                   const LogPlaces& logs);
/// Why a job waits, as data; of the jobs it is about the first few.
[[nodiscard]] CauseView cause_view(const Reason& reason);
[[nodiscard]] ReasonView reason_view(const Reason& reason);

[[nodiscard]] JobView job_view(const JobRow& row, const std::string& node, const LogPlaces& logs);
[[nodiscard]] std::string_view attempt_state(const AttemptRow& row);
[[nodiscard]] EventView event_view(const HistoryRow& row);
[[nodiscard]] HistoryQuery history_query(const EventQuery& query);

/// Runs on the reading thread.
[[nodiscard]] Result<JobPage> read_page(StoreReader& reader, const JobQuery& query,
                                        const std::string& node, const LogPlaces& logs);
[[nodiscard]] Result<std::optional<JobDetail>> read_detail(StoreReader& reader, JobId id,
                                                           const std::string& node,
                                                           const LogPlaces& logs,
                                                           const std::string& dir);

/// Leaves the names of a job's variables: their values are often keys to something else, which
/// whoever may only look is not to have.
void withhold_values(JobDetail& detail);

[[nodiscard]] Result<DoneAnswer> read_done(StoreReader& reader, const DoneRequest& request,
                                           const std::string& node, const LogPlaces& logs);

/// `notes` may know more of the processes on them.
[[nodiscard]] std::vector<GpuView> make_gpu_views(const State& state, const std::string& node,
                                                  Now now, ProcessNotes* notes = nullptr);
/// In the order of State, with those that wait in line.
[[nodiscard]] std::vector<QueueView> make_queue_views(const State& state);

}  // namespace berth
