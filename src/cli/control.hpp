#pragma once
// What the commands share that change jobs already submitted.

#include <optional>
#include <string>

#include "api/control.hpp"
#include "cli/commands.hpp"

namespace berth::cli {

/// A million jobs take a while.
inline constexpr Millis kControlTimeout{600'000};

/// None: all.
[[nodiscard]] Selection selection(const std::optional<IdSet>& ids);

/// Prints what became of each job. `unchanged` is said of those that were so already, `none` if it
/// was about no job at all.
[[nodiscard]] Outcome report_control(
    const std::string& body, const std::string& unchanged, bool json,
    const std::string& none = "there are no jobs that have not ended");

}  // namespace berth::cli
