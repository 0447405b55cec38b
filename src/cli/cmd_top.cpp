// berth top.

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/full_screen.hpp"
#include "cli/top_draw.hpp"
#include "cli/top_keys.hpp"
#include "cli/top_source.hpp"

namespace berth::cli {
namespace {

constexpr int kEscapeMs = 50;   ///< a sequence of a slow line is longer than that only in pieces
constexpr int kClockMs = 1000;  ///< times on the screen go on between answers

Status check_terminal() {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
    return fail(ErrorCode::invalid,
                "top needs a terminal for its keys and its screen; berth ls --watch only "
                "draws, berth ls --json is for programs");
  }
  const char* term = std::getenv("TERM");
  if (term == nullptr || *term == '\0' || std::string_view(term) == "dumb") {
    return fail(ErrorCode::invalid,
                fmt::format("top cannot draw on a terminal like this (TERM is {}); berth "
                            "lists the same once, berth --watch or berth ls --watch again and "
                            "again",
                            term == nullptr || *term == '\0' ? "not set" : term));
  }
  return {};
}

/// Whether the locale says UTF-8. By its name: a remote machine need not have it installed.
bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') {
      std::string text(value);
      std::ranges::transform(text, text.begin(),
                             [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
    }
  }
  return false;
}

class Top {
 public:
  Top(TerminalSignals& signals, TopSource& source) : signals_(signals), source_(source) {
    theme_.color = look_at_stdout().color;
    theme_.unicode = locale_is_utf8();
  }

  Outcome run() {
    while (true) {
      measure();
      TRY(draw());
      TRY(wait());
      if (code_) {
        return *code_;
      }
    }
  }

 private:
  void measure() {
    const Screen screen = look_at_stdout();
    const TopSize size{screen.width.value_or(80), screen.height};
    if (size != size_) {
      size_ = size;
      shown_.clear();
    }
  }

  Status draw() {
    const Millis now = read_clock().wall;
    const TopLayout layout = top_layout(data_, state_, size_);
    settle(state_, top_rows(data_, state_), layout.body);
    if (state_.mode != TopMode::list) {
      settle_text(state_, top_text(state_, subject_, size_, now).size(), layout.body);
    }
    TopFrame next = draw_top(data_, state_, subject_, size_, theme_, now);
    TRY(write_terminal(paint(shown_, next, size_, theme_)));
    shown_ = std::move(next);
    return {};
  }

  /// Until there is a reason to draw.
  Status wait() {
    std::array<pollfd, 3> fds{pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{signals_.fd(), POLLIN, 0},
                              pollfd{source_.news_fd(), POLLIN, 0}};
    const int ready = ::poll(fds.data(), fds.size(), reader_.waits() ? kEscapeMs : kClockMs);
    if (ready < 0 && errno != EINTR) {
      return fail_errno("cannot wait for keys", errno);
    }
    while (const auto number = signals_.next()) {
      obey(*number);
    }
    if (ready == 0) {
      keys(reader_.pause());
    } else if (ready > 0 && fds[0].revents != 0) {
      read_keys();
    }
    if (ready > 0 && fds[2].revents != 0) {
      take_news();
    }
    return {};
  }

  void obey(int number) {
    if (number == SIGWINCH) {
      shown_.clear();
    } else if (number == SIGTSTP) {
      screen_.leave();
      TerminalSignals::stop();
      screen_.enter();
      shown_.clear();
      source_.send({TopCommand::What::refresh});
    } else {
      code_ = 128 + number;
    }
  }

  void read_keys() {
    std::array<char, 256> bytes{};
    const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got > 0) {
      keys(reader_.feed({bytes.data(), static_cast<std::size_t>(got)}));
    } else if (got == 0 || errno != EINTR) {
      code_ = 128 + SIGHUP;  // the terminal is gone
    }
  }

  void keys(const std::vector<TopKey>& pressed) {
    for (const TopKey& key : pressed) {
      const bool was_frozen = state_.frozen;
      const auto command = press(key, state_, data_, subject_, size_);
      // Each key acts on what the one before it has made.
      settle(state_, top_rows(data_, state_), top_layout(data_, state_, size_).body);
      const bool close = state_.mode == TopMode::job || state_.mode == TopMode::log;
      source_.look_at(close ? state_.subject : 0, state_.mode == TopMode::log);
      if (was_frozen != state_.frozen) {
        source_.freeze(state_.frozen);
      }
      if (command && command->what == TopCommand::What::quit) {
        code_ = 0;
        return;
      }
      if (command) {
        source_.send(*command);
      }
    }
  }

  void take_news() {
    TopSource::News news = source_.take();
    if (news.data) {
      data_ = std::move(*news.data);
    }
    if (news.subject) {
      subject_ = std::move(*news.subject);
    }
    for (TopMessage& message : news.messages) {
      state_.message = std::move(message.text);
      state_.message_bad = message.bad;
    }
  }

  TerminalSignals& signals_;
  TopSource& source_;
  FullScreen screen_;
  TopTheme theme_;
  TopSize size_{0, 0};
  TopData data_;
  TopSubject subject_;
  TopState state_;
  TopFrame shown_;
  TopKeyReader reader_;
  std::optional<int> code_;
};

}  // namespace

Outcome run_top(const TopOptions& options) {
  TRY(check_terminal());
  // What fails at once is told as usual, before the screen is taken. From then on the daemon is not
  // started again: whoever stopped it may have meant it.
  TRY_ASSIGN(Daemon first, Daemon::open());
  TRY_ASSIGN(const StatusView status, first.get<StatusView>("/api/status"));
  TRY_ASSIGN(TerminalSignals signals, TerminalSignals::take());
  TRY_ASSIGN(const auto source, TopSource::start(first.paths(), options.every));
  Top top(signals, *source);
  return top.run();
}

}  // namespace berth::cli
