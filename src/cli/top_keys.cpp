#include "cli/top_keys.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/describe.hpp"

namespace berth::cli {
namespace {

using Code = TopKey::Code;
using What = TopCommand::What;

bool is(const TopKey& key, std::string_view text) {
  return key.code == Code::text && key.text == text;
}

/// How a key moves, in lines; none: it does not.
std::optional<std::ptrdiff_t> movement(const TopKey& key, std::size_t page) {
  const auto lines = static_cast<std::ptrdiff_t>(std::max<std::size_t>(page, 2) - 1);
  constexpr std::ptrdiff_t kFar = 1'000'000'000;
  if (key.code == Code::down || is(key, "j")) return 1;
  if (key.code == Code::up || is(key, "k")) return -1;
  if (key.code == Code::page_down) return lines;
  if (key.code == Code::page_up) return -lines;
  if (key.code == Code::home || is(key, "g")) return -kFar;
  if (key.code == Code::end || is(key, "G")) return kFar;
  return std::nullopt;
}

/// The next row that can be chosen in this direction, from `by` rows away on; where there is none,
/// the last one before it.
void move_cursor(TopState& state, const std::vector<TopRow>& rows, std::ptrdiff_t by) {
  TopCursor& cursor = state.cursor();
  if (rows.empty()) {
    return;
  }
  const auto size = static_cast<std::ptrdiff_t>(rows.size());
  const std::ptrdiff_t here =
      std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(cursor.index), size - 1);
  const std::ptrdiff_t step = by < 0 ? -1 : 1;
  const std::ptrdiff_t wanted = std::clamp<std::ptrdiff_t>(here + by, 0, size - 1);
  const auto find = [&](std::ptrdiff_t at, std::ptrdiff_t direction) -> std::optional<std::size_t> {
    for (; at >= 0 && at < size; at += direction) {
      if (rows[static_cast<std::size_t>(at)].can_be_chosen()) {
        return static_cast<std::size_t>(at);
      }
    }
    return std::nullopt;
  };
  auto found = find(wanted, step);
  if (!found) {
    found = find(wanted, -step);
  }
  if (found) {
    cursor.index = *found;
    cursor.key = rows[*found].key;
  }
}

void scroll_by(TopState& state, std::ptrdiff_t by, std::size_t lines, std::size_t height) {
  const auto last = static_cast<std::ptrdiff_t>(lines > height ? lines - height : 0);
  const std::ptrdiff_t at =
      std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(state.scroll) + by, 0, last);
  state.scroll = static_cast<std::size_t>(at);
  // A log is followed while its end is in view.
  state.at_end = state.mode == TopMode::log && at == last;
}

void look_at(TopState& state, std::uint64_t job, TopMode mode) {
  state.mode = mode;
  state.subject = job;
  state.scroll = 0;
  state.at_end = mode == TopMode::log;
}

void tell(TopState& state, std::string text, bool bad) {
  state.message = std::move(text);
  state.message_bad = bad;
}

void switch_pane(TopState& state, std::size_t by) {
  state.pane = static_cast<TopPane>((static_cast<std::size_t>(state.pane) + by) % kTopPanes);
}

std::optional<TopCommand> answer(const TopKey& key, TopState& state) {
  const std::uint64_t job = state.question->job;
  if (is(key, "y") || is(key, "Y")) {
    state.question.reset();
    return TopCommand{What::kill, job};
  }
  if (is(key, "n") || is(key, "N") || is(key, "q") || key.code == Code::escape ||
      key.code == Code::enter) {
    state.question.reset();
    tell(state, fmt::format("job {} was left alone", job), false);
  }
  return std::nullopt;
}

void type(const TopKey& key, TopState& state) {
  switch (key.code) {
    case Code::text:
      state.filter += key.text;
      break;
    case Code::backspace:
      while (!state.filter.empty() &&
             (static_cast<unsigned char>(state.filter.back()) & 0xC0U) == 0x80) {
        state.filter.pop_back();
      }
      if (!state.filter.empty()) {
        state.filter.pop_back();
      } else {
        state.typing = false;
      }
      break;
    case Code::enter:
      state.typing = false;
      break;
    case Code::escape:
      state.typing = false;
      state.filter.clear();
      break;
    default:
      break;
  }
}

void ask_kill(TopState& state, const JobView& job) {
  if (is_terminal(job.state)) {
    tell(state, fmt::format("job {} has ended already", job.id), true);
    return;
  }
  const char* what = job.state == JobState::running || job.started_at ? "kill" : "cancel";
  state.question =
      TopQuestion{job.id, fmt::format("{} job {} {}?", what, job.id, shorten(label(job), 30))};
}

/// Keys that act on one job.
std::optional<TopCommand> act(const TopKey& key, TopState& state, const JobView& job) {
  if (is(key, "K")) {
    ask_kill(state, job);
    return std::nullopt;
  }
  if (is(key, "p")) {
    return TopCommand{job.state == JobState::paused ? What::resume : What::pause, job.id};
  }
  if (is(key, "s")) {
    return TopCommand{What::start, job.id};
  }
  if (is(key, "+") || is(key, "=") || is(key, "-")) {
    const std::int32_t by = is(key, "-") ? 1 : -1;  // lower goes first
    return TopCommand{What::priority, job.id, "", job.priority + by};
  }
  if (is(key, "l")) {
    look_at(state, job.id, TopMode::log);
  } else if (key.code == Code::enter) {
    look_at(state, job.id, TopMode::job);
  }
  return std::nullopt;
}

bool acts_on_a_job(const TopKey& key) {
  return key.code == Code::enter || is(key, "K") || is(key, "p") || is(key, "s") || is(key, "+") ||
         is(key, "=") || is(key, "-") || is(key, "l");
}

std::optional<TopCommand> act_on_queue(const TopKey& key, TopState& state, const QueueView& queue) {
  if (is(key, "p")) {
    return TopCommand{queue.paused ? What::resume_queue : What::pause_queue, 0, queue.name};
  }
  if (key.code == Code::enter) {
    state.filter = queue.name;
    state.pane = TopPane::jobs;
  } else {
    tell(state, "that key is for jobs; here: p pauses or resumes, Enter shows its jobs", true);
  }
  return std::nullopt;
}

std::optional<TopCommand> act_on_row(const TopKey& key, TopState& state, const TopData& data,
                                     const TopSubject& subject, const std::vector<TopRow>& rows) {
  if (const JobView* job = chosen_job(data, state, rows)) {
    return act(key, state, *job);
  }
  // One that is in none of the lists.
  if (state.mode != TopMode::list && subject.job == state.subject && subject.detail) {
    return act(key, state, subject.detail->job);
  }
  const TopRow* row = state.mode == TopMode::list ? chosen_row(rows, state) : nullptr;
  if (row != nullptr && row->queue != nullptr) {
    return act_on_queue(key, state, *row->queue);
  }
  if (row != nullptr && row->gpu != nullptr) {
    if (row->gpu->claims.empty() || (key.code != Code::enter && !is(key, "l"))) {
      tell(state, "no job is chosen; Enter on a GPU shows the job that has it", true);
    } else {
      look_at(state, row->gpu->claims.front().job, is(key, "l") ? TopMode::log : TopMode::job);
    }
    return std::nullopt;
  }
  tell(state, "no job is chosen", true);
  return std::nullopt;
}

std::optional<TopCommand> press_in_text(const TopKey& key, TopState& state,
                                        const TopSubject& subject, const TopSize& size,
                                        std::size_t body) {
  if (const auto by = movement(key, body)) {
    // The time of day decides about words, not about lines.
    scroll_by(state, *by, top_text(state, subject, size, Millis(0)).size(), body);
  } else if (is(key, "q") || key.code == Code::escape || key.code == Code::left ||
             key.code == Code::backspace || is(key, "?")) {
    state.mode = TopMode::list;
    state.subject = 0;
  }
  return std::nullopt;
}

std::optional<TopCommand> press_in_list(const TopKey& key, TopState& state,
                                        const std::vector<TopRow>& rows, std::size_t body) {
  if (const auto by = movement(key, body)) {
    move_cursor(state, rows, *by);
  } else if (key.code == Code::tab || key.code == Code::right) {
    switch_pane(state, 1);
  } else if (key.code == Code::back_tab || key.code == Code::left) {
    switch_pane(state, kTopPanes - 1);
  } else if (is(key, "/")) {
    state.typing = true;
    state.filter.clear();
  } else if (key.code == Code::escape) {
    state.filter.clear();
  } else if (is(key, "q") || is(key, "Q")) {
    return TopCommand{What::quit};
  }
  return std::nullopt;
}

}  // namespace

std::optional<TopCommand> press(const TopKey& key, TopState& state, const TopData& data,
                                const TopSubject& subject, const TopSize& size) {
  state.message.clear();
  if (state.question) {
    return answer(key, state);
  }
  if (state.typing) {
    type(key, state);
    return std::nullopt;
  }
  if (is(key, " ")) {
    state.frozen = !state.frozen;
    return state.frozen ? std::nullopt : std::optional(TopCommand{What::refresh});
  }
  if (is(key, "r")) {
    return TopCommand{What::refresh};
  }
  const std::vector<TopRow> rows = top_rows(data, state);
  const std::size_t body = top_layout(data, state, size).body;
  if (state.mode != TopMode::help && acts_on_a_job(key)) {
    return act_on_row(key, state, data, subject, rows);
  }
  if (is(key, "?") && state.mode == TopMode::list) {
    look_at(state, 0, TopMode::help);
    return std::nullopt;
  }
  return state.mode == TopMode::list ? press_in_list(key, state, rows, body)
                                     : press_in_text(key, state, subject, size, body);
}

}  // namespace berth::cli
