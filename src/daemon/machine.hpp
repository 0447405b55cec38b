#pragma once
// What the daemon asks of the machine it is on, and of its own process.

#include <string>

#include "core/rules.hpp"

namespace berth {

/// This boot of the machine.
[[nodiscard]] std::string this_boot();
[[nodiscard]] std::string host_name();
[[nodiscard]] std::string home_directory();
[[nodiscard]] std::string user_name();
[[nodiscard]] HostCapacity host_capacity();
/// Where berth's programs are.
[[nodiscard]] std::string program_directory();
/// Every running job holds a descriptor or two; the usual soft limit of 1024 would be the first
/// wall.
void raise_descriptor_limit();

}  // namespace berth
