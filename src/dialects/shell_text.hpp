#pragma once
// Commands for bash that are put together from words.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

/// `word` so that bash reads exactly it. `{gpu_list}` and the like stay as they are.
[[nodiscard]] std::string quote_word(std::string_view word);

/// What a placeholder stands for: any number of words; none: it is not ours and stays.
using Placeholder = std::function<std::optional<std::vector<std::string>>(std::string_view)>;

/// `text` with every `{word}` replaced by the words it stands for, quoted as the place needs: on
/// their own, or inside the quotes that `text` has there. `{{word}}` and `${word}` are left alone.
[[nodiscard]] std::string fill_in(std::string_view text, const Placeholder& words_of);

}  // namespace berth
