#pragma once
// --watch: the same output again and again, in place.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/terminal.hpp"

namespace berth::cli {

/// How a command makes one picture of what it shows.
using Picture = std::function<Result<std::string>(Daemon&, const Screen&)>;

/// The lines of `text` that fit the screen, each within its width; the last one says so if lines
/// were left out. Colours stay whole.
[[nodiscard]] std::vector<std::string> fit(std::string_view text, const Screen& screen);

/// Shows pictures on the alternate screen until q or Ctrl-C. A daemon that goes away is waited for,
/// not started again: whoever stopped it may have meant it. Refused where there is no terminal.
[[nodiscard]] Outcome watch(Millis every, const std::string& title, const Picture& picture);

/// Shows `picture` once, through a pager if it is long; or watches it, if `every` is set.
[[nodiscard]] Outcome show_picture(const std::optional<Millis>& every, const std::string& title,
                                   const Picture& picture);

}  // namespace berth::cli
