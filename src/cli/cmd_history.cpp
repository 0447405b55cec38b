// berth history.

#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/table.hpp"

namespace berth::cli {
namespace {

Style style_of_kind(const std::string& kind) {
  const auto state = job_state_from(kind);
  return state ? style_of(*state) : Style::plain;
}

std::string text_of(const std::vector<EventView>& events, const Screen& screen, Millis now) {
  Table table({{"WHEN"}, {"WHAT"}, {"JOB", Align::right}, {"BATCH", Align::right}, {"DETAIL"}});
  for (const EventView& event : events) {
    const auto id = [](std::uint64_t number) {
      return number == 0 ? std::string() : fmt::format("{}", number);
    };
    table.add({{relative_time(event.time, now), Style::dim},
               {printable(event.kind), style_of_kind(event.kind)},
               {id(event.job)},
               {id(event.batch)},
               {printable(event.detail)}});
  }
  return table.render(screen);
}

/// One line without a table around it: what comes later is not known.
std::string line_of(const EventView& event, const Screen& screen) {
  std::string line = fmt::format("{} {:<14}", clock_time(event.time), printable(event.kind));
  line = styled(line, style_of_kind(event.kind), screen);
  if (event.job != 0) {
    line += fmt::format(" job {}", event.job);
  }
  if (!event.detail.empty()) {
    line += "  " + printable(event.detail);
  }
  return line + "\n";
}

}  // namespace

Outcome run_history(const HistoryOptions& options) {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  EventQuery query;
  query.ids = options.ids;
  query.kinds = options.kinds;
  if (options.since) {
    query.since = std::max(read_clock().wall - *options.since, Millis(0));
  }
  // Where following begins: nothing that happens while the past is shown may be missed.
  EventQuery end;
  end.descending = true;
  end.limit = 1;
  TRY_ASSIGN(const EventPage newest, daemon.get<EventPage>(event_query_target(end)));
  std::uint64_t last = newest.events.empty() ? 0 : newest.events.front().seq;

  query.descending = true;
  query.after = last + 1;
  std::vector<EventView> events;
  while (events.size() < options.limit) {
    query.limit = static_cast<std::uint32_t>(
        std::min<std::size_t>(options.limit - events.size(), kPageLimitMax));
    TRY_ASSIGN(EventPage page, daemon.get<EventPage>(event_query_target(query)));
    std::ranges::move(page.events, std::back_inserter(events));
    if (!page.more || page.last == 0) {
      break;
    }
    query.after = page.last;
  }
  std::ranges::reverse(events);
  const Screen screen = look_at_stdout();
  if (options.json && !options.follow) {
    print(encode_array(events));
    return 0;
  }
  if (!options.follow) {
    if (events.empty()) {
      warn("nothing happened that matches");
    } else {
      print(text_of(events, screen, read_clock().wall));
    }
    return 0;
  }
  const auto tell = [&](const EventView& event) {
    print(options.json ? encode(event) + "\n" : line_of(event, screen));
  };
  std::ranges::for_each(events, tell);
  query.descending = false;
  query.since.reset();
  query.limit = 1000;
  query.wait = kLongPollMax / 2;
  while (std::fflush(stdout) == 0) {
    query.after = last;
    TRY_ASSIGN(const EventPage page,
               daemon.get<EventPage>(event_query_target(query), query.wait + Millis(60'000)));
    std::ranges::for_each(page.events, tell);
    last = std::max(last, page.last);
  }
  return 1;  // nobody reads what is told
}

}  // namespace berth::cli
