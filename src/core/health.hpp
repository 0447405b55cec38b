#pragma once
// When a card is not to be trusted any more.

#include <cstdint>
#include <optional>
#include <string>

#include "core/gpu.hpp"

namespace berth {

/// Errors that the driver blames on the program that ran; the card is fine.
[[nodiscard]] bool is_application_xid(std::uint32_t xid);

/// Why the card should be taken out of use, if it should. `ecc_known`: errors that somebody has
/// been told of and that are not news.
[[nodiscard]] std::optional<std::string> sickness(const GpuFacts& facts, std::uint64_t ecc_known);

}  // namespace berth
