#pragma once
// Secrets: made, kept as hashes, compared without telling by the time it takes how near a guess
// was.

#include <string>
#include <string_view>

namespace berth {

/// 256 bits nobody can foretell, in characters that need no quoting.
[[nodiscard]] std::string new_secret();
/// SHA-256, in hexadecimal. Secrets are random, so nothing slower is needed.
[[nodiscard]] std::string secret_hash(std::string_view secret);
/// In constant time, if both are equally long.
[[nodiscard]] bool same_secret(std::string_view a, std::string_view b);
/// What a page that holds this session's cookie must show to change something. It follows from the
/// cookie, and the cookie does not follow from it.
[[nodiscard]] std::string csrf_of(std::string_view session_secret);

}  // namespace berth
