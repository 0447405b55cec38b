// The lists of `berth top`: jobs, queues, finished jobs, cards.

#include <fmt/format.h>

#include <algorithm>

#include "base/units.hpp"
#include "cli/describe.hpp"
#include "cli/top_draw.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t kMark = 2;  ///< "> " before the chosen row
constexpr std::size_t kWide = 110;

/// The columns that all sections of jobs share.
struct JobColumns {
  std::size_t id = 4;
  std::size_t name = 8;
  std::size_t gpu = 3;    ///< of running jobs
  std::size_t time = 7;   ///< likewise
  std::size_t limit = 0;  ///< 0: left out, as below
  std::size_t queue = 0;
  std::size_t memory = 0;
  std::size_t age = 0;
  bool command = false;
};

std::string limit_text(const JobView& job, const TopData& data) {
  const auto limit = data.limits.find(job.id);
  return limit == data.limits.end() ? "" : format_duration(limit->second);
}

/// Nine tenths of its time are over.
bool ends_soon(const JobView& job, const TopData& data, Millis now) {
  const auto limit = data.limits.find(job.id);
  return limit != data.limits.end() && job.started_at &&
         (now - *job.started_at) * 10 > limit->second * 9;
}

std::string memory_text(const JobView& job, const TopData& data) {
  const auto used = gpu_memory_of(data, job.id);
  if (!job.gpu_memory) {
    return used ? format_size(*used) : "";
  }
  return fmt::format(
      "{} of {}", used ? format_size(*used) : "?",
      format_size(*job.gpu_memory * std::max<std::size_t>(job.gpu_indices.size(), 1)));
}

JobColumns columns_for(const std::vector<TopRow>& rows, const TopData& data, std::size_t width,
                       Millis now) {
  JobColumns out;
  std::size_t name = 0;
  bool queues = false;
  for (const TopRow& row : rows) {
    if (row.job == nullptr) {
      continue;
    }
    const JobView& job = *row.job;
    out.id = std::max(out.id, fmt::formatted_size("{}", job.id));
    name = std::max(name, display_width(label(job)));
    queues = queues || job.queue != "default";
    if (job.state == JobState::running || job.state == JobState::paused) {
      out.gpu = std::max(out.gpu, gpu_list(job.gpu_indices).size());
      out.time = std::max(out.time, run_time(job, now).size());
      out.limit = std::max(out.limit, limit_text(job, data).size());
      out.memory = std::max(out.memory, memory_text(job, data).size());
    }
  }
  out.name = std::clamp<std::size_t>(name, 8, std::max<std::size_t>(width / 4, 8));
  out.gpu = std::min<std::size_t>(out.gpu, width >= kWide ? 16 : 8);
  out.limit = out.limit > 0 ? std::max<std::size_t>(out.limit, 5) : 0;
  out.memory = std::max<std::size_t>(out.memory, 7);
  out.queue = queues && width >= 70 ? std::clamp<std::size_t>(width / 10, 7, 16) : 0;
  out.age = width >= kWide ? 8 : 0;
  out.command = width >= kWide;
  return out;
}

void add_head(TopLineBuilder& line, const std::string& id, const std::string& name,
              const std::string& queue, const JobColumns& columns, Style style) {
  line.column(id, columns.id, style, true);
  line.column(name, columns.name, style);
  if (columns.queue > 0) {
    line.column(queue, columns.queue, style);
  }
}

/// A section's title names its columns, too.
TopLine title_line(const std::string& text, const JobColumns& columns, std::size_t width) {
  TopLineBuilder line(width);
  const std::size_t head = kMark + columns.id + columns.name + 2;
  if (columns.queue == 0 && display_width(text) >= head) {
    line.add(shorten(text, width), Style::bold);  // and no names of columns, which would not fit
    return line.take();
  }
  line.add(shorten(text, head - 1), Style::bold);
  line.pad_to(head);
  if (columns.queue > 0) {
    line.column("QUEUE", columns.queue, Style::dim);
  }
  if (text.starts_with("RUNNING") || text.starts_with("PAUSED")) {
    line.column("GPU", columns.gpu, Style::dim);
    line.column("TIME", columns.time, Style::dim, true);
    if (columns.limit > 0) {
      line.column("LIMIT", columns.limit, Style::dim, true);
    }
    if (line.left() >= columns.memory) {
      line.column("MEMORY", columns.memory, Style::dim, true);
    }
    if (columns.command) {
      line.add("COMMAND", Style::dim);
    }
  } else if (text.starts_with("WAITING")) {
    if (columns.age > 0) {
      line.column("SINCE", columns.age, Style::dim);
    }
    line.add("WHY", Style::dim);
  } else {
    line.column("STATE", 9, Style::dim);
    line.column("TIME", 7, Style::dim, true);
    line.column("ENDED", 8, Style::dim);
    line.add("HOW", Style::dim);
  }
  return line.take();
}

void add_running(TopLineBuilder& line, const JobView& job, const JobColumns& columns,
                 const TopData& data, Millis now) {
  line.column(job.gpu_indices.empty() ? "-" : gpu_list(job.gpu_indices), columns.gpu);
  line.column(run_time(job, now), columns.time,
              ends_soon(job, data, now) ? Style::bad : Style::plain, true);
  if (columns.limit > 0) {
    line.column(limit_text(job, data), columns.limit, Style::dim, true);
  }
  if (line.left() >= columns.memory) {
    line.column(memory_text(job, data), columns.memory, Style::plain, true);
  }
  if (job.state == JobState::paused) {
    line.add(job.started_at ? "paused " : "held ", Style::bad);
  }
  if (job.attempts > 1) {
    line.add(fmt::format("try {} ", job.attempts), Style::bold);
  }
  if (columns.command) {
    line.add(printable(job.command), Style::dim);
  }
}

TopLine job_line(const JobView& job, const JobColumns& columns, const TopData& data,
                 std::size_t width, Millis now) {
  TopLineBuilder line(width);
  line.add("  ");
  add_head(line, fmt::format("{}", job.id), label(job), printable(job.queue), columns,
           job.state == JobState::queued ? Style::plain : style_of(job.state));
  switch (job.state) {
    case JobState::running:
    case JobState::paused:
      add_running(line, job, columns, data, now);
      break;
    case JobState::queued: {
      if (columns.age > 0) {
        line.column(relative_time(job.submitted_at, now), columns.age, Style::dim);
      }
      const std::string why = remark(job);
      if (job.priority != JobView().priority) {
        line.add(fmt::format("[priority {}] ", job.priority), Style::bold);
      }
      line.add(why.empty() ? "starts next" : why);
      break;
    }
    case JobState::succeeded:
    case JobState::failed:
    case JobState::killed:
    case JobState::cancelled:
      line.column(to_string(job.state), 9, style_of(job.state));
      line.column(run_time(job, now), 7, Style::plain, true);
      line.column(job.ended_at ? relative_time(*job.ended_at, now) : "", 8, Style::dim);
      line.add(job.state == JobState::failed ? remark(job) : printable(job.message),
               job.state == JobState::failed ? Style::bad : Style::dim);
      break;
  }
  return line.take();
}

/// How many jobs of those that were asked for wait in the queue; "12+" where more may.
std::string waiting_in(const TopData& data, const QueueView& queue) {
  const auto count = std::ranges::count(data.queued, queue.name, &JobView::queue);
  return fmt::format("{}{}", count,
                     count_of(data, JobState::queued) > data.queued.size() ? "+" : "");
}

TopLine queue_head(std::size_t width) {
  TopLineBuilder line(width);
  line.add("  ");
  line.column("QUEUE", std::clamp<std::size_t>(width / 3, 8, 30), Style::dim);
  line.column("RUNNING", 7, Style::dim, true);
  line.column("LIMIT", 5, Style::dim, true);
  line.column("WAITING", 7, Style::dim, true);
  line.add("STATE", Style::dim);
  return line.take();
}

TopLine queue_line(const QueueView& queue, const TopData& data, std::size_t width) {
  TopLineBuilder line(width);
  line.add("  ");
  line.column(printable(queue.name), std::clamp<std::size_t>(width / 3, 8, 30));
  line.column(fmt::format("{}", queue.running), 7, Style::plain, true);
  line.column(queue.limit > 0 ? fmt::format("{}", queue.limit) : "-", 5, Style::plain, true);
  line.column(waiting_in(data, queue), 7, Style::plain, true);
  line.add(queue.paused ? "paused" : "open", queue.paused ? Style::bad : Style::good);
  return line.take();
}

TopLine note_line(const std::string& text, std::size_t width) {
  TopLineBuilder line(width);
  line.add("  ");
  line.add(text, Style::dim);
  return line.take();
}

void mark(TopLine& line) {
  line.chosen = true;
  if (!line.spans.empty() && line.spans.front().text.starts_with(' ')) {
    line.spans.front().text[0] = '>';
  }
}

}  // namespace

std::vector<TopLine> list_lines(const TopData& data, const TopState& state, const TopLayout& layout,
                                std::size_t width, Millis now) {
  const std::vector<TopRow> rows = top_rows(data, state);
  const JobColumns columns = columns_for(rows, data, width, now);
  std::vector<TopLine> out;
  if (layout.caption) {
    out.push_back(queue_head(width));
  }
  const TopCursor& cursor = state.cursor();
  for (std::size_t i = cursor.first; i < std::min(rows.size(), cursor.first + layout.body); ++i) {
    const TopRow& row = rows[i];
    switch (row.kind) {
      case TopRow::Kind::title:
        out.push_back(title_line(row.text, columns, width));
        break;
      case TopRow::Kind::note:
        out.push_back(note_line(row.text, width));
        break;
      case TopRow::Kind::job:
        out.push_back(job_line(*row.job, columns, data, width, now));
        break;
      case TopRow::Kind::queue:
        out.push_back(queue_line(*row.queue, data, width));
        break;
      case TopRow::Kind::gpu:
        out.push_back(gpu_line(*row.gpu, width, true));
        break;
    }
    if (i == cursor.index && row.can_be_chosen()) {
      mark(out.back());
    }
  }
  return out;
}

}  // namespace berth::cli
