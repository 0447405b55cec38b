#pragma once
// What a job inherits from the process that submits it.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "core/event.hpp"
#include "core/job.hpp"

namespace berth {

/// The longest single string execve takes, less its terminating NUL.
inline constexpr std::size_t kArgumentMax = 131'071;

/// Whether a job should see this variable. Those that describe one terminal, one login or one
/// attempt are left out: they would be wrong later, and make equal environments differ.
[[nodiscard]] bool is_inherited(std::string_view name);

/// The environment of this process as a job should see it.
[[nodiscard]] Environment capture_environment(const char* const* environ,
                                              const std::string& instance_dir);

/// Random: what a request is known by when it is sent again.
[[nodiscard]] std::string fresh_key();

/// Fills in environment, umask, niceness, `{first_id}` and a fresh client key. A job that has an
/// environment has the names of those variables alone that it wants to keep. Changes nothing of
/// this process, so any thread may call it.
[[nodiscard]] Status complete_submission(event::Submit& submit, const std::string& instance_dir);

}  // namespace berth
