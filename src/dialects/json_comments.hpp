#pragma once
// JSON as people write it: with // and /* */ comments and commas behind the last item.

#include <string>
#include <string_view>
#include <vector>

#include "jobspec/diagnostic.hpp"

namespace berth {

/// `text` with comments and such commas, and tabs between values, turned into blanks: every other
/// byte stays where it was, so places in the result are places in `text`.
[[nodiscard]] std::string blank_comments(std::string_view text, Diagnostics& diagnostics);

/// The keys of the outermost object, as far as the text is JSON.
[[nodiscard]] std::vector<std::string> top_keys(std::string_view text);

/// A mistake where brackets of a text without comments are open at its end.
void check_brackets(std::string_view text, Diagnostics& diagnostics);

}  // namespace berth
