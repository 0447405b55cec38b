#pragma once
// Values that are put into a command for bash, so that it takes each of them for what it is.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

/// What stands around a place of a shell text, which says what a value must look like there.
enum class ShellPlace : std::uint8_t {
  bare,
  single,      ///< '…'
  twofold,     ///< "…"
  escaped,     ///< $'…'
  here,        ///< a here-document
  here_plain,  ///< one that is not expanded, as behind <<'END'
  comment,
};

/// Walks along a shell text. Knows quotes, substitutions, comments and here-documents, which is
/// enough for commands as people write them; it is no parser.
class ShellReader {
 public:
  explicit ShellReader(std::string_view text) : text_(text) {}

  /// The place at this offset, which must not be before the one that was asked for last.
  [[nodiscard]] ShellPlace place_at(std::size_t offset);

 private:
  /// Something that is open, and what closes it; bare is the inside of ( ), $( ) or ` `.
  struct Open {
    ShellPlace place = ShellPlace::bare;
    char close = 0;
  };
  struct HereDocument {
    std::string end;
    bool expands = true;
    bool tabs = false;  ///< <<-: its lines may begin with tabs
    std::size_t first = 0, last = 0;
  };

  [[nodiscard]] ShellPlace place() const {
    return open_.empty() ? ShellPlace::bare : open_.back().place;
  }
  void step();
  void step_bare();
  void enter(ShellPlace place, char close, std::size_t size);
  [[nodiscard]] bool begins_word() const;
  void announce_here_document();
  void begin_here_documents();

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Open> open_;
  std::vector<HereDocument> announced_;  ///< begin with the next line
  std::vector<HereDocument> documents_;
};

/// Whether a value means the same at every place, with quotes and without. A path may begin with ~,
/// which is meant.
[[nodiscard]] bool is_plain_value(std::string_view value);

/// `value` so that bash reads exactly it at such a place. One that is plain stays as it is, and so
/// does an empty one, which is how a sweep leaves an option out.
[[nodiscard]] std::string quote_value(std::string_view value, ShellPlace place);

}  // namespace berth
