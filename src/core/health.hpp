#pragma once
// When a card is not to be trusted any more.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "core/gpu.hpp"

namespace berth {

/// Errors that the driver blames on the program that ran; the card is fine.
[[nodiscard]] bool is_application_xid(std::uint32_t xid);

/// Why the card should be taken out of use, if it should. `ecc_known`: errors that somebody has
/// been told of and that are not news.
[[nodiscard]] std::optional<std::string> sickness(const GpuFacts& facts, std::uint64_t ecc_known);
/// The same, as a job has told it.
[[nodiscard]] std::string reported_sickness(JobId job, std::string_view what);
/// Whether a card is out of use for one of these reasons, and not because somebody wanted it so.
[[nodiscard]] bool is_sickness(std::string_view why);

}  // namespace berth
