#pragma once
// How simulated cards are connected: what was set for a pair, else what their NUMA nodes make of
// it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace berth::simgpu {

enum class Link : std::uint8_t { nvlink, pcie_switch, numa, system, unknown };

/// By the indices of two cards, the smaller first.
using Links = std::map<std::pair<unsigned, unsigned>, Link>;

/// Takes "0-1:nvlink,2-3:system" into `links`; "0-1:auto" forgets what was set. False, and nothing
/// changed, when the text is anything else or names a card from `cards` on.
bool assign_links(Links& links, std::string_view text, unsigned cards);
/// The text that gives the same links again.
[[nodiscard]] std::string format_links(const Links& links);

/// What was set for the two cards, in either order.
[[nodiscard]] std::optional<Link> find_link(const Links& links, unsigned one, unsigned other);

}  // namespace berth::simgpu
