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

/// " (with lr=0.1)": said when it is the matrix that made the value what it is.
[[nodiscard]] std::string made_by(std::string_view text, const Combination& combination);

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
/// A point in time, see parse_moment().
[[nodiscard]] std::optional<Millis> read_moment(const Node& node, std::string_view what, Millis now,
                                                const Combination& combination,
                                                Diagnostics& diagnostics);
/// true or false.
[[nodiscard]] std::optional<bool> read_flag(const Node& node, std::string_view what,
                                            const Combination& combination,
                                            Diagnostics& diagnostics);
/// A map of names to counts; what could be read of it.
[[nodiscard]] std::map<std::string, std::uint64_t> read_resources(const Node& node,
                                                                  const Combination& combination,
                                                                  Diagnostics& diagnostics);

/// Why `name` cannot name a job or a batch; empty: it can.
[[nodiscard]] std::string name_problem(std::string_view name);

/// Whether `name` can name a queue or a resource: short, UTF-8, and no blank, comma, '=' or
/// control character in it.
[[nodiscard]] bool is_label(std::string_view name);

}  // namespace berth
