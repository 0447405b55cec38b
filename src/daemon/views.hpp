#pragma once
// From what the store and State hold to what the API shows.

#include <optional>
#include <string>
#include <vector>

#include "api/views.hpp"
#include "api/wire.hpp"
#include "core/state.hpp"
#include "store/reader.hpp"

namespace berth {

[[nodiscard]] JobView job_view(const JobRow& row, const std::string& node, const std::string& logs);
[[nodiscard]] EventView event_view(const HistoryRow& row);
[[nodiscard]] HistoryQuery history_query(const EventQuery& query);

/// Runs on the reading thread.
[[nodiscard]] Result<JobPage> read_page(StoreReader& reader, const JobQuery& query,
                                        const std::string& node, const std::string& logs);
[[nodiscard]] Result<std::optional<JobDetail>> read_detail(StoreReader& reader, JobId id,
                                                           const std::string& node,
                                                           const std::string& logs,
                                                           const std::string& dir);

[[nodiscard]] std::vector<GpuView> make_gpu_views(const State& state, const std::string& node,
                                                  Now now);

}  // namespace berth
