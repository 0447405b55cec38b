#pragma once
// The texts of the driver's and the cards' files, and the settings within them.

#include <optional>
#include <string>
#include <string_view>

#include "simgpu/state.hpp"

namespace berth::simgpu {

[[nodiscard]] std::string encode(const Driver& driver);
[[nodiscard]] std::string encode(const Card& card);

/// nullopt when the text is damaged. A setting of an unknown value keeps its default.
[[nodiscard]] std::optional<Driver> decode_driver(std::string_view text);
[[nodiscard]] std::optional<Card> decode_card(std::string_view text, unsigned index);

/// False, and nothing meant, when there is no such key or it does not take the value.
bool assign(Driver& driver, std::string_view key, std::string_view value);
bool assign(Card& card, std::string_view key, std::string_view value);

}  // namespace berth::simgpu
