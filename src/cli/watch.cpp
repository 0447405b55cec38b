#include "cli/watch.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/units.hpp"
#include "cli/interrupt.hpp"
#include "cli/pager.hpp"

namespace berth::cli {
namespace {

/// Takes the alternate screen and the keys, and gives them back.
class FullScreen {
 public:
  FullScreen() {
    keys_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (keys_) {
      termios quiet = before_;
      quiet.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      ::tcsetattr(STDIN_FILENO, TCSANOW, &quiet);
    }
    print("\x1b[?1049h\x1b[?25l");
  }
  ~FullScreen() {
    print("\x1b[?25h\x1b[?1049l");
    std::fflush(stdout);
    if (keys_) {
      ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    }
  }
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  /// Waits until `deadline`, a key or a signal; whether to stop.
  [[nodiscard]] bool stops_before(Millis deadline) const {
    while (!interrupted()) {
      const Millis left = deadline - read_clock().mono;
      if (left <= Millis(0)) {
        return false;
      }
      pollfd keys{keys_ ? STDIN_FILENO : -1, POLLIN, 0};
      const int ready = ::poll(&keys, 1, static_cast<int>(std::min(left, Millis(60'000)).count()));
      if (ready < 0) {
        return interrupted();  // a resize draws anew
      }
      char key = 0;
      if (ready == 1 && (::read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q')) {
        return true;
      }
      if (ready == 1) {
        return false;  // any other key draws at once
      }
    }
    return true;
  }

 private:
  termios before_{};
  bool keys_ = false;
};

/// Makes a change of the window's size interrupt what waits.
class CatchResize {
 public:
  CatchResize() {
    struct sigaction action{};
    action.sa_handler = [](int) {};
    ::sigaction(SIGWINCH, &action, &before_);
  }
  ~CatchResize() { ::sigaction(SIGWINCH, &before_, nullptr); }
  CatchResize(const CatchResize&) = delete;
  CatchResize& operator=(const CatchResize&) = delete;

 private:
  struct sigaction before_{};
};

void draw(const std::vector<std::string>& lines) {
  std::string frame = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    frame += lines[i] + "\x1b[K" + (i + 1 < lines.size() ? "\r\n" : "");
  }
  print(frame + "\x1b[J");
  std::fflush(stdout);
}

}  // namespace

std::vector<std::string> fit(std::string_view text, const Screen& screen) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    lines.push_back(shorten_styled(line, screen.width.value_or(80)));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  const std::size_t room = std::max<std::size_t>(screen.height, 2);
  if (lines.size() > room) {
    const std::size_t hidden = lines.size() - room + 1;
    lines.resize(room - 1);
    lines.push_back(fmt::format("… {} more lines", hidden));
  }
  return lines;
}

Outcome watch(Millis every, const std::string& title, const Picture& picture) {
  if (::isatty(STDOUT_FILENO) != 1) {
    return fail(ErrorCode::invalid,
                "--watch draws on a terminal, and standard output is none; leave it out, or use "
                "--json in a loop of your own");
  }
  // The first picture before the screen is taken: what fails at once is told as usual.
  TRY_ASSIGN(Daemon first, Daemon::open());
  TRY_ASSIGN(std::string text, picture(first, look_at_stdout()));
  TRY_ASSIGN(Daemon daemon, Daemon::open(Daemon::Start::never));
  const CatchInterrupt catcher;
  const CatchResize resize;
  const FullScreen full;
  std::string trouble;
  while (true) {
    Screen screen = look_at_stdout();
    const std::string head = fmt::format("{}, every {}, {}; q ends", title, format_duration(every),
                                         clock_time(read_clock().wall));
    std::vector<std::string> lines{
        styled(shorten(head, screen.width.value_or(80)), Style::dim, screen)};
    if (!trouble.empty()) {
      lines.push_back(styled(shorten(trouble, screen.width.value_or(80)), Style::bad, screen));
    }
    screen.height -= std::min(screen.height, lines.size());
    std::ranges::move(fit(text, screen), std::back_inserter(lines));
    draw(lines);
    if (full.stops_before(read_clock().mono + every)) {
      return interrupted() ? interrupt_code() : 0;
    }
    auto next = picture(daemon, look_at_stdout());
    trouble = next ? "" : printable(next.error().message);
    if (next) {
      text = std::move(*next);
    }
  }
}

Outcome show_picture(const std::optional<Millis>& every, const std::string& title,
                     const Picture& picture) {
  if (every) {
    return watch(*every, title, picture);
  }
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  const Screen screen = look_at_stdout();
  TRY_ASSIGN(const std::string text, picture(daemon, screen));
  print_paged(text, screen);
  return 0;
}

}  // namespace berth::cli
