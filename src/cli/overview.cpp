#include "cli/overview.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/describe.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t kBar = 6;
constexpr std::size_t kGpuRows = 4;
constexpr std::size_t kNameMax = 28;

std::string bar(std::uint64_t part, std::uint64_t whole) {
  const std::size_t filled =
      whole == 0 ? 0 : std::min<std::size_t>((part * kBar + whole / 2) / whole, kBar);
  std::string out;
  for (std::size_t i = 0; i < kBar; ++i) {
    out += i < filled ? "█" : "░";
  }
  return out;
}

std::string padded(const std::string& text, std::size_t width) {
  const std::size_t used = display_width(text);
  return text + std::string(width - std::min(width, used), ' ');
}

struct Brief {
  std::string text;
  std::string word;  ///< the same in fewer columns
  Style style;
  bool notable;  ///< more than free or used by jobs
};

/// One card in a few words: "0 ████░░ 12/24 GiB 45% job 7".
Brief brief(const GpuView& gpu) {
  std::string memory = "?";
  std::string filled = bar(0, 1);
  if (gpu.memory_used && gpu.memory_total) {
    memory = fmt::format("{:.0f}/{:.0f} GiB",
                         static_cast<double>(*gpu.memory_used) / static_cast<double>(kGiB),
                         static_cast<double>(*gpu.memory_total) / static_cast<double>(kGiB));
    filled = bar(*gpu.memory_used, *gpu.memory_total);
  }
  std::string word = gpu_word(gpu);
  std::string state = gpu_remark(gpu);
  Style style = Style::plain;
  bool notable = true;
  if (!gpu.trouble.empty()) {
    style = Style::bad;
  } else if (!gpu.claims.empty()) {
    std::vector<std::uint64_t> jobs;
    for (const ClaimView& claim : gpu.claims) {
      jobs.push_back(claim.job);
    }
    word = state = fmt::format("job {}", fmt::join(jobs, ","));
    style = Style::active;
    notable = false;
  } else if (gpu.state == "free") {
    word = state = "free";
    style = Style::good;
    notable = false;
  } else if (gpu.state == "foreign") {
    const std::vector<std::uint64_t> strays = strays_on(gpu);
    word = strays.empty() ? "others" : fmt::format("job {} strays", fmt::join(strays, ","));
    state = state.empty() ? word : state;
  }
  const std::string head =
      fmt::format("{:>2} {} {:>9} {:>4} ", gpu.index, filled, memory,
                  gpu.utilization ? fmt::format("{}%", *gpu.utilization) : "?");
  return {head + (state.empty() ? word : state), head + word, style, notable};
}

/// Those that fit, what is out of the ordinary before the rest; in their order.
std::vector<Brief> choose(const std::vector<Brief>& all, std::size_t room) {
  const auto notable = static_cast<std::size_t>(std::ranges::count_if(all, &Brief::notable));
  std::size_t others = room - std::min(room, notable);
  std::size_t left = room;
  std::vector<Brief> out;
  for (const Brief& one : all) {
    std::size_t& quota = one.notable ? left : others;
    if (left > 0 && quota > 0) {
      others -= one.notable ? 0 : 1;
      --left;
      out.push_back(one);
    }
  }
  return out;
}

/// The cards side by side, as many as fit beside each other.
std::vector<std::string> gpu_lines(const std::vector<GpuView>& gpus, const Screen& screen) {
  const std::size_t width = screen.width.value_or(80);
  const std::size_t room = width > 4 ? width - 4 : 1;  // behind "GPU "
  std::vector<Brief> cells;
  for (const GpuView& gpu : gpus) {
    cells.push_back(brief(gpu));
  }
  const auto widest_of = [&] {
    std::size_t widest = 0;
    for (const Brief& cell : cells) {
      widest = std::max(widest, display_width(cell.text));
    }
    return std::min(widest, std::max<std::size_t>(room, 30));
  };
  const auto columns_of = [&](std::size_t cell) {
    return std::max<std::size_t>((room + 3) / (cell + 3), 1);
  };
  std::size_t widest = widest_of();
  if (columns_of(widest) * kGpuRows < cells.size()) {
    // Rather all of them in a word each than some at length.
    for (Brief& cell : cells) {
      cell.text = cell.word;
    }
    widest = widest_of();
  }
  const std::size_t columns = columns_of(widest);
  const std::size_t all = cells.size();
  cells = choose(cells, columns * kGpuRows);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < cells.size(); i += columns) {
    std::string line = i == 0 ? "GPU " : "    ";
    const std::size_t end = std::min(i + columns, cells.size());
    for (std::size_t k = i; k < end; ++k) {
      const std::string text = shorten(cells[k].text, std::min(widest, room));
      const std::size_t padding = k + 1 < end ? widest + 3 - display_width(text) : 0;
      line += styled(text, cells[k].style, screen) + std::string(padding, ' ');
    }
    lines.push_back(line);
  }
  if (all > cells.size()) {
    lines.push_back(fmt::format("    … and {} more: berth gpus", all - cells.size()));
  }
  return lines;
}

std::string counts_line(const Overview& overview, const Screen& screen) {
  const StatusView& status = overview.status;
  const auto count = [&](JobState state) {
    const auto it = status.counts.find(state);
    return it == status.counts.end() ? 0 : it->second;
  };
  std::string line = styled(
      fmt::format("{} running, {} queued", count(JobState::running), count(JobState::queued)),
      Style::bold, screen);
  if (count(JobState::paused) > 0) {
    line += fmt::format(", {} paused", count(JobState::paused));
  }
  if (!overview.failed.empty()) {
    line += ", " + styled(fmt::format("{}{} failed since yesterday", overview.failed.size(),
                                      overview.failed_more ? "+" : ""),
                          Style::bad, screen);
  }
  return line + styled(fmt::format("  on {}{}",
                                   status.node.empty() ? "this machine" : printable(status.node),
                                   status.probe.simulated ? ", simulated GPUs" : ""),
                       Style::dim, screen);
}

/// "█░░░░░ 45m 02s of 2h 00m", or how long it has run.
std::string time_text(const JobView& job, const Overview& overview, const Screen& screen,
                      Millis now) {
  std::string run = run_time(job, now);
  const auto limit = overview.limits.find(job.id);
  if (limit == overview.limits.end() || !job.started_at || run.empty()) {
    return run;
  }
  const Millis elapsed = std::max(now - *job.started_at, Millis(0));
  if (screen.width.value_or(80) < 60) {
    return fmt::format("{} of {}", run, format_duration(limit->second));
  }
  return fmt::format("{} {} of {}",
                     bar(static_cast<std::uint64_t>(elapsed.count()),
                         static_cast<std::uint64_t>(limit->second.count())),
                     run, format_duration(limit->second));
}

struct Section {
  std::string title;
  Style style = Style::plain;
  struct Row {
    std::string text;
    std::uint64_t jobs = 1;  ///< that it stands for
  };
  std::vector<Row> rows;
  std::string more;       ///< what shows those that are left out
  std::uint64_t all = 0;  ///< how many jobs there are in truth

  /// How many jobs the first rows stand for.
  [[nodiscard]] std::uint64_t covers(std::size_t count) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < std::min(count, rows.size()); ++i) {
      sum += rows[i].jobs;
    }
    return sum;
  }
};

std::size_t name_width(const std::vector<JobView>& jobs, const Screen& screen) {
  std::size_t width = 0;
  for (const JobView& job : jobs) {
    width = std::max(width, display_width(label(job)));
  }
  return std::min({width, kNameMax, std::max<std::size_t>(screen.width.value_or(80) / 3, 8)});
}

std::string head(const JobView& job, std::size_t width) {
  return fmt::format("  {:>5} {}", job.id, padded(shorten(label(job), width), width));
}

std::vector<Section> sections(const Overview& overview, const Screen& screen, Millis now) {
  std::vector<Section> out;
  const auto count = [&](JobState state) {
    const auto it = overview.status.counts.find(state);
    return it == overview.status.counts.end() ? std::uint64_t{0} : it->second;
  };
  Section running{"Running",
                  Style::active,
                  {},
                  "berth ls --state running",
                  std::max<std::uint64_t>(count(JobState::running) + count(JobState::paused),
                                          overview.active.size())};
  std::size_t width = name_width(overview.active, screen);
  for (const JobView& job : overview.active) {
    const std::string where =
        job.gpu_indices.empty() ? "no GPU" : "GPU " + gpu_list(job.gpu_indices);
    running.rows.push_back({fmt::format(
        "{}  {}  {}{}{}", head(job, width), padded(where, 6),
        job.state == JobState::paused ? "paused, " : "", time_text(job, overview, screen, now),
        job.attempts > 1 ? fmt::format(" (try {})", job.attempts) : "")});
  }
  Section waiting{"Waiting",
                  Style::bold,
                  {},
                  "berth ls --state queued",
                  std::max<std::uint64_t>(count(JobState::queued), overview.queued.size())};
  // Of those that follow each other and wait for the same, one stands for all.
  std::vector<std::pair<JobView, std::uint64_t>> kinds;
  for (const JobView& job : overview.queued) {
    if (!kinds.empty() && !job.reason.empty() && kinds.back().first.reason == job.reason) {
      ++kinds.back().second;
    } else {
      kinds.emplace_back(job, 1);
    }
  }
  std::vector<JobView> first;
  for (const auto& [job, jobs] : kinds) {
    first.push_back(job);
  }
  width = name_width(first, screen);
  for (const auto& [job, jobs] : kinds) {
    const std::string why = remark(job);
    waiting.rows.push_back({fmt::format("{}  {}{}", head(job, width),
                                        jobs > 1 ? fmt::format("and {} like it: ", jobs - 1) : "",
                                        why.empty() ? "starts next" : why),
                            jobs});
  }
  Section failed{"Failed since yesterday",
                 Style::bad,
                 {},
                 "berth ls --state failed --since yesterday",
                 overview.failed.size()};
  width = name_width(overview.failed, screen);
  for (const JobView& job : overview.failed) {
    failed.rows.push_back(
        {fmt::format("{}  {}{}", head(job, width), remark(job),
                     job.ended_at ? ", " + relative_time(*job.ended_at, now) : "")});
  }
  for (Section* section : {&running, &waiting, &failed}) {
    if (!section->rows.empty()) {
      out.push_back(std::move(*section));
    }
  }
  return out;
}

/// What one would most likely do next.
std::string hint(const Overview& overview) {
  if (!overview.failed.empty()) {
    const std::uint64_t id = overview.failed.front().id;
    return fmt::format("berth log {0} shows what it wrote, berth show {0} the rest", id);
  }
  if (!overview.active.empty()) {
    return fmt::format("berth log -f {} follows it, berth --watch goes on showing this",
                       overview.active.back().id);
  }
  if (!overview.queued.empty()) {
    return fmt::format("berth why {} tells more, berth doctor looks for trouble",
                       overview.queued.front().id);
  }
  const bool any = std::ranges::any_of(overview.status.counts,
                                       [](const auto& entry) { return entry.second > 0; });
  return any ? "nothing runs and nothing waits: berth ls shows what has ended, berth add CMD… "
               "queues "
               "a command"
             : "nothing here yet. Queue a command:   berth add python train.py\n"
               "                  Run a job file:    berth run sweep.yaml\n"
               "                  See what there is: berth --help";
}

}  // namespace

std::string overview_text(const Overview& overview, const Screen& screen, Millis now) {
  const std::size_t width = screen.width.value_or(80);
  const std::size_t height = std::max<std::size_t>(screen.terminal ? screen.height : 24, 12) - 1;
  std::vector<std::string> lines{shorten_styled(counts_line(overview, screen), width)};
  const auto add = [&](const std::string& text, Style style = Style::plain) {
    lines.push_back(styled(screen.width ? shorten(text, width) : text, style, screen));
  };
  if (!overview.status.gpus.empty()) {
    std::ranges::move(gpu_lines(overview.status.gpus, screen), std::back_inserter(lines));
  } else if (!overview.status.probe.age && overview.status.probe.error.empty()) {
    add("GPUs: not looked at yet", Style::dim);
  } else {
    add("no GPUs found; berth doctor tells why", Style::dim);
  }
  if (!overview.status.probe.error.empty()) {
    add("GPU probe: " + printable(overview.status.probe.error), Style::bad);
  }
  if (overview.status.paused) {
    add("berth is paused and starts nothing; berth resume --instance lets it go on", Style::bad);
  }
  if (overview.status.space.low) {
    add("disk space is low: " + printable(overview.status.space.detail), Style::bad);
  }
  std::vector<Section> parts = sections(overview, screen, now);
  const std::string next = hint(overview);
  // Each part gets a share of the lines that are left; what one does not need, the others get.
  const std::size_t fixed = lines.size() + 2 * parts.size() + 2 +
                            static_cast<std::size_t>(std::ranges::count(next, '\n'));
  std::size_t left = height > fixed ? height - fixed : 0;
  std::vector<std::size_t> share(parts.size(), 0);
  for (bool grown = true; grown && left > 0;) {
    grown = false;
    for (std::size_t i = 0; i < parts.size() && left > 0; ++i) {
      const std::size_t wanted =
          parts[i].rows.size() + (parts[i].all > parts[i].covers(SIZE_MAX) ? 1 : 0);
      if (share[i] < wanted) {
        ++share[i];
        --left;
        grown = true;
      }
    }
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Section& part = parts[i];
    lines.emplace_back();
    add(fmt::format("{} ({}{})", part.title, part.all,
                    part.style == Style::bad && overview.failed_more ? "+" : ""),
        part.style);
    const bool all = part.rows.size() <= share[i] && part.all <= part.covers(SIZE_MAX);
    const std::size_t shown =
        all ? part.rows.size() : std::min(part.rows.size(), share[i] > 0 ? share[i] - 1 : 0);
    for (std::size_t k = 0; k < shown; ++k) {
      add(part.rows[k].text);
    }
    if (!all && share[i] > 0) {
      add(fmt::format("        … {} more: {}", part.all - part.covers(shown), part.more),
          Style::dim);
    }
  }
  lines.emplace_back();
  std::string_view rest = next;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    add(std::string(line), Style::dim);
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

}  // namespace berth::cli
