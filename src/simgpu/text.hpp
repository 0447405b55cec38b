#pragma once
// Sizes and times as the command line of the simulator takes them, and as PyTorch prints them.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::simgpu {

/// The error is a sentence for the person who typed the command.
template <class T>
using Outcome = std::expected<T, std::string>;

[[nodiscard]] std::optional<std::uint64_t> parse_number(std::string_view text);

/// "24GiB", "512MiB", "1.5G", "1024" (bytes). KiB/K, MiB/M, GiB/G, TiB/T, all binary.
[[nodiscard]] Outcome<std::uint64_t> parse_size(std::string_view text);

/// "250ms", "3s", "1.5", "2m", "1h"; a bare number is seconds. Milliseconds.
[[nodiscard]] Outcome<std::uint64_t> parse_milliseconds(std::string_view text);

/// "8x24GiB" or "2x24GiB,1x80GiB": the memory of each card, in order of its index.
[[nodiscard]] Outcome<std::vector<std::uint64_t>> parse_spec(std::string_view text);

/// The one spelling of a list of cards, so that two specs can be compared.
[[nodiscard]] std::string format_spec(const std::vector<std::uint64_t>& cards);

/// As PyTorch's allocator prints sizes: "20.00 MiB", "79.32 GiB".
[[nodiscard]] std::string format_torch_size(std::uint64_t bytes);

}  // namespace berth::simgpu
