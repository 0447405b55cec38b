#pragma once
// Readers of single values. Each reports what is wrong and returns nullopt. `what` names the value
// in messages; `combination` fills in what the matrix leaves open.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.hpp"
#include "base/units.hpp"
#include "jobspec/matrix.hpp"
#include "jobspec/yaml_tree.hpp"

namespace berth {

/// Any scalar, without NUL.
[[nodiscard]] std::optional<std::string> read_text(const Node& node, std::string_view what,
                                                   const Combination& combination,
                                                   Diagnostics& diagnostics);
[[nodiscard]] std::optional<std::int64_t> read_integer(const Node& node, std::string_view what,
                                                       std::int64_t min, std::int64_t max,
                                                       const Combination& combination,
                                                       Diagnostics& diagnostics);
[[nodiscard]] std::optional<Bytes> read_size(const Node& node, std::string_view what,
                                             const Combination& combination,
                                             Diagnostics& diagnostics);
[[nodiscard]] std::optional<Millis> read_duration(const Node& node, std::string_view what,
                                                  const Combination& combination,
                                                  Diagnostics& diagnostics);
/// 0 to 100, with or without '%'.
[[nodiscard]] std::optional<std::uint32_t> read_percent(const Node& node, std::string_view what,
                                                        const Combination& combination,
                                                        Diagnostics& diagnostics);
/// A map of names to counts; what could be read of it.
[[nodiscard]] std::map<std::string, std::uint64_t> read_resources(const Node& node,
                                                                  const Combination& combination,
                                                                  Diagnostics& diagnostics);

/// Whether `name` can name a queue or a resource: short, UTF-8, and no blank, comma, '=' or
/// control character in it.
[[nodiscard]] bool is_label(std::string_view name);

}  // namespace berth
