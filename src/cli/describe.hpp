#pragma once
// Jobs and GPUs in words and tables, as several commands show them.

#include <string>
#include <vector>

#include "api/access.hpp"
#include "api/views.hpp"
#include "cli/terminal.hpp"

namespace berth::cli {

/// The job's name, or its command where it has none.
[[nodiscard]] std::string label(const JobView& job);
/// "0,3" where it runs or ran; otherwise empty.
[[nodiscard]] std::string gpu_list(const std::vector<std::uint32_t>& indices);
/// "3,5-9".
[[nodiscard]] std::string id_list(const std::vector<std::uint64_t>& ids);
/// "2", "1..4", with " × 8 GiB" for shares of cards.
[[nodiscard]] std::string gpu_request(const JobView& job);
/// How long the last attempt has run, or ran; empty if it has not.
[[nodiscard]] std::string run_time(const JobView& job, Millis now);
/// "is running", "has failed", "was killed".
[[nodiscard]] std::string predicate(JobState state);
/// Why it waits, or how it ended.
[[nodiscard]] std::string remark(const JobView& job);
/// "exit 1", "killed", "timeout", "gpu_oom (exit 1)"; empty for success.
[[nodiscard]] std::string failure_text(const JobView& job);

[[nodiscard]] std::string job_table(const std::vector<JobView>& jobs, const Screen& screen,
                                    Millis now);
/// Jobs at work on a card that they were not given.
[[nodiscard]] std::vector<std::uint64_t> strays_on(const GpuView& gpu);
/// "free", "reserved", "lost".
[[nodiscard]] std::string gpu_word(const GpuView& gpu);
/// Why jobs do not get it, whoever uses it; empty: they may.
[[nodiscard]] std::string gpu_remark(const GpuView& gpu);
[[nodiscard]] std::string gpu_table(const std::vector<GpuView>& gpus, const Screen& screen);
/// What `berth run` prints at the end.
[[nodiscard]] std::string summary_table(const std::vector<JobView>& jobs, const Screen& screen,
                                        Millis now);
/// One paragraph: version, jobs by state, GPUs, queues, the way in, trouble.
[[nodiscard]] std::string status_text(const StatusView& status, const Screen& screen,
                                      const ListenView& listen = {});

}  // namespace berth::cli
