#pragma once
// Regular expressions for logs. They never go back in the text, so no pattern and no line, however
// strange, takes longer than the one's length times the other's.

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "results/patience.hpp"

namespace berth {

/// The usual syntax: . [a-z] [^…] \d \w \s \b ^ $ | (…) (?:…) * + ? {2,5}, lazy forms with ?, and
/// (?i) in front for either case. References back and looking around are refused: they are what
/// cannot be had in linear time.
class Pattern {
 public:
  [[nodiscard]] static Result<Pattern> compile(std::string_view text);
  /// As it was written.
  [[nodiscard]] const std::string& text() const { return text_; }

  struct Match {
    std::size_t begin = 0;
    std::size_t end = 0;
    /// What the first group has caught, or all of it where there is none.
    std::string_view caught;
  };
  /// The first match at or after `from`. None, too, when patience has ended.
  [[nodiscard]] std::optional<Match> find(std::string_view text, std::size_t from,
                                          Patience& patience) const;
  [[nodiscard]] std::optional<Match> find(std::string_view text, std::size_t from = 0) const {
    Patience endless;
    return find(text, from, endless);
  }
  /// What a byte of text costs at most.
  [[nodiscard]] std::size_t steps() const { return steps_.size(); }

  using Bytes256 = std::bitset<256>;
  struct Step {
    enum class Kind : std::uint8_t { bytes, fork, jump, save, check, match };
    enum class Check : std::uint8_t { begin, end, word, no_word };
    Kind kind = Kind::match;
    Check check = Check::begin;
    std::uint32_t to = 0;  ///< fork: tried first; jump: there; bytes: which set; save: which slot
    std::uint32_t other = 0;  ///< fork: tried then
  };

 private:
  Pattern() = default;
  void find_first_bytes();

  std::string text_;
  std::vector<Step> steps_;
  std::vector<Bytes256> sets_;
  bool has_group_ = false;
  bool may_be_empty_ = false;  ///< or begins with a check: every position has to be tried
  Bytes256 first_;             ///< what a match can begin with
};

}  // namespace berth
