#pragma once
// One job in full, as `berth show` and `berth top` tell it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/views.hpp"
#include "cli/terminal.hpp"

namespace berth::cli {

/// `why`: of a job that waits. `strays`: cards that it is at work on and was not given.
[[nodiscard]] std::string show_text(const JobDetail& detail, const std::optional<WhyView>& why,
                                    const Screen& screen, Millis now,
                                    const std::vector<std::uint32_t>& strays = {});

/// Of all cards those on which the job has processes though they do not belong to it.
[[nodiscard]] std::vector<std::uint32_t> strays_of(std::uint64_t job,
                                                   const std::vector<GpuView>& gpus);

}  // namespace berth::cli
