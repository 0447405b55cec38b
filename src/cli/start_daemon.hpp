#pragma once
// Starting berthd when none answers.

#include <functional>

#include "api/paths.hpp"
#include "base/result.hpp"

namespace berth::cli {

/// Starts the berthd that lies beside this program, detached from this session, and returns when
/// `answers` says that some daemon does: ours, or that of somebody who was quicker, for then ours
/// finds the lock taken and ends. An error carries what berthd said; `conflict` means that the one
/// that was quicker has gone meanwhile, and trying again may help.
[[nodiscard]] Status start_daemon(const InstancePaths& paths, const std::function<bool()>& answers);

/// The path of a program in the directory of this one.
[[nodiscard]] Result<std::string> sibling_program(const std::string& name);

/// Whether some daemon holds the instance's lock. Looks without taking it, so as not to be in the
/// way of one that is just starting.
[[nodiscard]] bool lock_is_held(const InstancePaths& paths);

}  // namespace berth::cli
