#pragma once
// The keys of a GPU manager configuration that make no job: which are known, which can be passed
// over with a word about it, and which ask for something that is not there.

#include <functional>
#include <string>
#include <string_view>

#include "jobspec/yaml_tree.hpp"

namespace berth {

using ManagerWarn = std::function<void(Position at, const std::string& message)>;

/// Whether a configuration has such a key at its top.
[[nodiscard]] bool is_manager_key(std::string_view key);

/// Unknown keys and what needs leases, mail or a cluster are mistakes; what only sets up those,
/// while they are off, is a warning. Nothing is passed over in silence.
void check_manager_keys(const Node& root, Diagnostics& diagnostics, const ManagerWarn& warn);

}  // namespace berth
