#include "simgpu/text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "simgpu/state.hpp"

namespace berth::simgpu {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kKib = 1024;
constexpr std::array<Unit, 13> kSizes{{{"", 1},
                                       {"B", 1},
                                       {"K", kKib},
                                       {"KiB", kKib},
                                       {"M", kKib* kKib},
                                       {"MiB", kKib* kKib},
                                       {"G", kKib* kKib* kKib},
                                       {"GiB", kKib* kKib* kKib},
                                       {"T", kKib* kKib* kKib* kKib},
                                       {"TiB", kKib* kKib* kKib* kKib},
                                       {"k", kKib},
                                       {"m", kKib* kKib},
                                       {"g", kKib* kKib* kKib}}};
constexpr std::array<Unit, 5> kTimes{{{"", 1e3}, {"ms", 1}, {"s", 1e3}, {"m", 6e4}, {"h", 3.6e6}}};

std::string quote(std::string_view text) {
  return std::string(1, '\'').append(text).append("'");
}

template <std::size_t N>
Outcome<std::uint64_t> parse_with_unit(std::string_view text, const std::array<Unit, N>& units,
                                       std::string_view what, std::string_view example) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error == std::errc{} && value >= 0) {
    std::string_view name(rest, static_cast<std::size_t>(end - rest));
    while (name.starts_with(' ')) {
      name.remove_prefix(1);
    }
    for (const Unit& unit : units) {
      const double scaled = std::round(value * unit.factor);
      if (name == unit.name && scaled < 9e18) {
        return static_cast<std::uint64_t>(scaled);
      }
    }
  }
  return std::unexpected(quote(text) + " is not a " + std::string(what) + "; write it like " +
                         std::string(example));
}

}  // namespace

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end) {
    return std::nullopt;
  }
  return value;
}

Outcome<std::uint64_t> parse_size(std::string_view text) {
  return parse_with_unit(text, kSizes, "size", "24GiB, 512MiB or 1024");
}

Outcome<std::uint64_t> parse_milliseconds(std::string_view text) {
  return parse_with_unit(text, kTimes, "time", "250ms, 3s, 1.5 or 2m");
}

Outcome<std::vector<std::uint64_t>> parse_spec(std::string_view text) {
  std::vector<std::uint64_t> cards;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view group = rest.substr(0, comma);
    const std::size_t cross = group.find('x');
    const auto count = cross == group.npos ? std::nullopt : parse_number(group.substr(0, cross));
    if (!count || *count == 0) {
      return std::unexpected(quote(text) +
                             " does not describe GPUs; write COUNTxMEMORY, like 8x24GiB or "
                             "2x24GiB,1x80GiB");
    }
    const auto memory = parse_size(group.substr(cross + 1));
    if (!memory) {
      return std::unexpected(memory.error());
    }
    if (*memory == 0 || *count > kCardsMax - cards.size()) {
      return std::unexpected(quote(text) + ": at most " + std::to_string(kCardsMax) +
                             " GPUs, none without memory");
    }
    cards.insert(cards.end(), *count, *memory);
    if (comma == rest.npos) {
      return cards;
    }
    rest.remove_prefix(comma + 1);
  }
}

std::string format_spec(const std::vector<std::uint64_t>& cards) {
  std::string spec;
  for (std::size_t i = 0; i < cards.size();) {
    std::size_t end = i;
    while (end < cards.size() && cards[end] == cards[i]) {
      ++end;
    }
    std::uint64_t amount = cards[i];
    const char* unit = "";
    for (const char* next : {"KiB", "MiB", "GiB"}) {
      if (amount % 1024 != 0) {
        break;
      }
      amount /= 1024;
      unit = next;
    }
    if (!spec.empty()) {
      spec += ',';
    }
    spec.append(std::to_string(end - i)).append("x").append(std::to_string(amount)).append(unit);
    i = end;
  }
  return spec;
}

std::string format_torch_size(std::uint64_t bytes) {
  std::array<char, 48> text{};
  const auto value = static_cast<double>(bytes);
  if (bytes <= 1024) {
    std::snprintf(text.data(), text.size(), "%llu bytes", static_cast<unsigned long long>(bytes));
  } else if (bytes <= 1024ULL * 1024) {
    std::snprintf(text.data(), text.size(), "%.2f KiB", value / kKib);
  } else if (bytes <= 1024ULL * 1024 * 1024) {
    std::snprintf(text.data(), text.size(), "%.2f MiB", value / (kKib * kKib));
  } else {
    std::snprintf(text.data(), text.size(), "%.2f GiB", value / (kKib * kKib * kKib));
  }
  return text.data();
}

}  // namespace berth::simgpu
