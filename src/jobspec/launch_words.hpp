#pragma once
// The words that a launch puts in (core/placeholders.hpp), and texts that it must leave as they
// are.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.hpp"

namespace berth {

/// `text` written so that it comes out of a launch as it is here: `{port}` as `{{port}}`.
[[nodiscard]] std::string protect_launch_words(std::string_view text);

/// `{first_id}` is the id of the first job that was submitted together with this one: the id that
/// the tasks of an array have in common. Whoever submits knows only how far each job is from the
/// first, so what is submitted has `{job_id~3}` instead.
inline constexpr std::string_view kFirstId = "first_id";
void fill_first_id(std::vector<JobSpec>& jobs);

/// What to say of an axis that has the name of such a word, which then means the axis; else empty.
[[nodiscard]] std::string hidden_word(std::string_view axis);

/// Of `job_id~3` the 3: the job so many places before.
[[nodiscard]] std::optional<std::uint64_t> places_back(std::string_view word);

}  // namespace berth
