#include "cli/top_draw.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "api/text.hpp"
#include "base/units.hpp"
#include "cli/describe.hpp"
#include "cli/show.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t kShort = 14;      ///< fewer lines than this: one line of head
constexpr std::size_t kRichCell = 60;   ///< columns in which a card tells everything
constexpr std::size_t kLeastCell = 36;  ///< in which it tells enough

constexpr std::string_view kHelp =
    R"(berth top: the GPUs, the jobs and the queues of this instance, as they change

  Up Down j k       choose a job, a queue or a GPU
  PgUp PgDn g G     a page up or down, the first, the last
  Tab, Left, Right  jobs, queues, finished jobs, GPUs
  Enter             all about the job and why it waits; of a queue: its jobs
  l                 the job's log, as it grows
  K                 kill the job, after a question
  p                 pause or resume the job, or the chosen queue
  s                 start the job before all others
  + -               let the job go earlier or later (lower numbers go first)
  /                 show only what has this text in its id, name, queue or state
  Space             stop updates, and go on
  r                 ask the daemon now
  Esc, q            back; q in a list ends berth top

Memory of a GPU:  █ used by jobs   ▓ used by others   ▒ kept for jobs   ░ free
)";

TopLine head_line(const TopData& data, const TopState& state, std::size_t width, Millis now) {
  TopLineBuilder line(width);
  line.add("berth top", Style::bold);
  line.add("  " + (data.status.node.empty() ? "this machine" : printable(data.status.node)));
  if (!data.trouble.empty()) {
    line.add(data.complete
                 ? fmt::format("  no answer since {}, trying again: ", clock_time(data.answered))
                 : "  no answer yet: ",
             Style::bad);
    line.add(printable(data.trouble), Style::bad);
    return line.take();
  }
  const std::string right = state.frozen ? "updates stopped" : clock_time(now);
  const std::size_t end = width > right.size() ? width - right.size() : 0;
  const std::string instance = "  " + printable(data.status.instance);
  if (line.left() > right.size() + 3) {
    line.add(shorten(instance, line.left() - right.size() - 2), Style::dim);
    line.pad_to(end);
    line.add(right, state.frozen ? Style::bad : Style::dim);
  }
  return line.take();
}

std::string gpu_summary(const TopData& data) {
  const auto& gpus = data.status.gpus;
  if (gpus.empty()) {
    return data.complete ? "no GPUs" : "";
  }
  std::size_t free = 0;
  std::uint64_t busy = 0;
  std::uint64_t told = 0;
  Bytes used = 0;
  Bytes total = 0;
  for (const GpuView& gpu : gpus) {
    free += gpu.state == "free" ? 1 : 0;
    told += gpu.utilization ? 1 : 0;
    busy += gpu.utilization.value_or(0);
    used += gpu.memory_used.value_or(0);
    total += gpu.memory_total.value_or(0);
  }
  std::string out = fmt::format("GPUs: {}/{} free", free, gpus.size());
  if (told > 0) {
    out += fmt::format(", {}% busy", busy / told);
  }
  if (total > 0) {
    out += fmt::format(", {}/{} GiB", used / kGiB, total / kGiB);
  }
  return out + (data.status.probe.simulated ? ", simulated" : "");
}

/// What is out of order, the worst of it.
std::string trouble(const TopData& data) {
  if (data.status.space.low) {
    return "disk space is low";
  }
  if (!data.status.probe.error.empty()) {
    return "GPU probe: " + printable(data.status.probe.error);
  }
  return data.status.problems.empty() ? "" : printable(data.status.problems.front());
}

/// What somebody should know who wonders why nothing starts.
std::string warning(const TopData& data) {
  if (data.status.paused) {
    const std::string more = trouble(data);
    return "berth is paused: berth resume --instance" + (more.empty() ? "" : "; " + more);
  }
  if (const std::string bad = trouble(data); !bad.empty()) {
    return bad;
  }
  std::string paused;
  for (const QueueView& queue : data.status.queues) {
    if (queue.paused) {
      paused += (paused.empty() ? "paused: " : ", ") + printable(queue.name);
    }
  }
  return paused;
}

TopLine counts_line(const TopData& data, std::size_t width) {
  TopLineBuilder line(width);
  line.add(fmt::format("{} running", count_of(data, JobState::running)), Style::active);
  line.add(fmt::format("  {} queued", count_of(data, JobState::queued)));
  if (count_of(data, JobState::paused) > 0) {
    line.add(fmt::format("  {} paused", count_of(data, JobState::paused)));
  }
  if (const std::string what = warning(data); !what.empty()) {
    line.add("  " + what, Style::bad);
  }
  line.add("  " + gpu_summary(data), Style::dim);
  return line.take();
}

std::vector<TopLine> gpu_strip(const TopData& data, const TopLayout& layout, std::size_t width) {
  std::vector<TopLine> out;
  const auto& gpus = data.status.gpus;
  const std::size_t room = layout.gpu_lines * layout.gpu_columns;
  // The last place tells how many are left out.
  const std::size_t shown = gpus.size() > room ? room - 1 : gpus.size();
  const std::size_t cell = width / layout.gpu_columns;
  for (std::size_t y = 0; y < layout.gpu_lines; ++y) {
    TopLineBuilder line(width);
    for (std::size_t x = 0; x < layout.gpu_columns; ++x) {
      const std::size_t at = x * layout.gpu_lines + y;
      line.pad_to(x * cell);
      if (at < shown) {
        for (const TopSpan& span :
             gpu_line(gpus[at], cell - (layout.gpu_columns > 1 ? 1 : 0), false).spans) {
          line.add(span.text, span.style);
        }
      } else if (at == shown && gpus.size() > shown) {
        line.add(fmt::format("  … {} more GPUs: Tab", gpus.size() - shown), Style::dim);
      }
    }
    out.push_back(line.take());
  }
  return out;
}

TopLine tabs_line(const TopData& data, const TopState& state, std::size_t width) {
  constexpr std::array<std::string_view, kTopPanes> kNames{"Jobs", "Queues", "Finished", "GPUs"};
  TopLineBuilder line(width);
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const bool here = static_cast<std::size_t>(state.pane) == i;
    line.add("──", Style::dim);
    line.add(here ? fmt::format("[{}]", kNames[i]) : fmt::format(" {} ", kNames[i]),
             here ? Style::bold : Style::dim);
  }
  if (!state.filter.empty() && !state.typing) {
    line.add(fmt::format("── only '{}' ", printable(state.filter)), Style::bold);
  }
  if (!data.trouble.empty() && data.complete) {
    line.add("── as it was ", Style::bad);
  }
  while (line.left() > 0) {
    line.add("─", Style::dim);
  }
  return line.take();
}

/// As many hints as fit, the most useful first.
TopLine foot_line(const TopState& state, std::size_t width) {
  TopLineBuilder line(width);
  if (state.question) {
    line.add(state.question->text + " [y/n] ", Style::bold);
    return line.take();
  }
  if (state.typing) {
    line.add("/" + printable(state.filter), Style::bold);
    line.add("█", Style::dim);
    return line.take();
  }
  if (!state.message.empty()) {
    line.add(state.message, state.message_bad ? Style::bad : Style::good);
    return line.take();
  }
  std::vector<std::string_view> hints{
      "q quit",  "? help",   "Enter look", "l log",   "K kill",
      "p pause", "Tab pane", "/ filter",   "s start", "Space stop updates"};
  if (state.mode != TopMode::list) {
    hints = {"q back", "Up Down scroll", "G end", "l log", "Enter look", "K kill", "p pause"};
  }
  for (const std::string_view hint : hints) {
    if (line.left() >= display_width(hint) + 2) {
      line.add(fmt::format("{}  ", hint), Style::dim);
    }
  }
  return line.take();
}

/// Hard breaks: a log is not prose.
void add_broken(std::vector<std::string>& out, std::string_view line, std::size_t width) {
  std::string piece;
  std::size_t used = 0;
  while (!line.empty()) {
    const std::string_view sign = line.substr(0, std::max<std::size_t>(utf8_length(line), 1));
    const std::size_t wide = display_width(sign);
    if (used + wide > width && !piece.empty()) {
      out.push_back(std::exchange(piece, ""));
      used = 0;
    }
    piece += sign;
    used += wide;
    line.remove_prefix(sign.size());
  }
  out.push_back(std::move(piece));
}

std::string job_text(const TopSubject& subject, std::size_t width, Millis now) {
  if (!subject.detail) {
    return subject.trouble.empty() ? "…\n" : printable(subject.trouble) + "\n";
  }
  Screen screen;
  screen.width = width;
  return show_text(*subject.detail, subject.why, screen, now);
}

void text_lines(std::vector<TopLine>& out, const TopState& state, const TopSubject& subject,
                const TopLayout& layout, const TopSize& size, Millis now) {
  TopLineBuilder title(size.width);
  title.add("──", Style::dim);
  title.add(
      state.mode == TopMode::help
          ? " help "
          : fmt::format(" job {}{} ", state.subject, state.mode == TopMode::log ? ", its log" : ""),
      Style::bold);
  if (state.mode == TopMode::log && subject.detail) {
    title.add(fmt::format("── {} ", to_string(subject.detail->job.state)), Style::dim);
  }
  const std::vector<std::string> lines = top_text(state, subject, size, now);
  const std::size_t end = std::min(lines.size(), state.scroll + layout.body);
  if (lines.size() > layout.body) {
    title.add(fmt::format("── lines {} to {} of {} ", state.scroll + 1, end, lines.size()),
              Style::dim);
  }
  while (title.left() > 0) {
    title.add("─", Style::dim);
  }
  out.push_back(title.take());
  for (std::size_t i = state.scroll; i < end; ++i) {
    TopLineBuilder line(size.width);
    line.add(lines[i]);
    out.push_back(line.take());
  }
}

}  // namespace

TopLayout top_layout(const TopData& data, const TopState& state, const TopSize& size) {
  TopLayout out;
  out.head = size.height < kShort ? 1 : 2;
  const std::size_t room = size.height > out.head + 2 ? size.height - out.head - 2 : 1;
  const std::size_t gpus = data.status.gpus.size();
  if (state.mode == TopMode::list && state.pane != TopPane::gpus && gpus > 0) {
    const std::size_t most = std::max<std::size_t>(room * 2 / 5, 1);
    out.gpu_columns = std::clamp<std::size_t>(size.width / kRichCell, 1, gpus);
    if (gpus > most * out.gpu_columns) {
      out.gpu_columns = std::max<std::size_t>(size.width / kLeastCell, 1);
    }
    out.gpu_lines = std::min((gpus + out.gpu_columns - 1) / out.gpu_columns, most);
  }
  out.body = room > out.gpu_lines ? room - out.gpu_lines : 1;
  if (state.mode == TopMode::list && state.pane == TopPane::queues && out.body > 2) {
    out.caption = true;
    --out.body;
  }
  return out;
}

std::vector<std::string> top_text(const TopState& state, const TopSubject& subject,
                                  const TopSize& size, Millis now) {
  std::vector<std::string> out;
  const auto split = [&](std::string_view text) {
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      add_broken(out, line, size.width);
      text.remove_prefix(std::min(text.size(), line.size() + 1));
    }
  };
  if (state.mode == TopMode::help) {
    split(kHelp);
  } else if (state.mode == TopMode::job) {
    split(subject.job == state.subject && !subject.log ? job_text(subject, size.width, now) : "…");
  } else if (subject.job != state.subject || !subject.log) {
    out.emplace_back("…");
  } else {
    if (subject.lines) {
      for (const std::string& line : *subject.lines) {
        add_broken(out, line, size.width);
      }
    } else {
      out.emplace_back(subject.trouble.empty() ? "nothing has been written yet" : "");
    }
    if (!subject.trouble.empty()) {
      add_broken(out, printable(subject.trouble), size.width);
    }
  }
  return out;
}

TopFrame draw_top(const TopData& data, const TopState& state, const TopSubject& subject,
                  const TopSize& size, const TopTheme& theme, Millis now) {
  const TopLayout layout = top_layout(data, state, size);
  TopFrame out;
  if (layout.head > 1 || !data.trouble.empty() || state.frozen) {
    out.push_back(head_line(data, state, size.width, now));
  }
  if (out.size() < layout.head) {
    out.push_back(counts_line(data, size.width));
  }
  if (state.mode == TopMode::list) {
    if (layout.gpu_lines > 0) {
      std::ranges::move(gpu_strip(data, layout, size.width), std::back_inserter(out));
    }
    out.push_back(tabs_line(data, state, size.width));
    std::ranges::move(list_lines(data, state, layout, size.width, now), std::back_inserter(out));
  } else {
    text_lines(out, state, subject, layout, size, now);
  }
  // However small the screen is, the last line is for questions and messages.
  out.resize(size.height > 0 ? size.height - 1 : 0);
  if (size.height > 0) {
    out.push_back(foot_line(state, size.width));
  }
  if (!theme.unicode) {
    for (TopLine& line : out) {
      for (TopSpan& span : line.spans) {
        span.text = to_ascii(span.text);
      }
    }
  }
  return out;
}

}  // namespace berth::cli
