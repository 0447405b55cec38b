#include "cli/top_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "cli/describe.hpp"

namespace berth::cli {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool has(const std::string& filter, const std::string& text) {
  return filter.empty() || lower(text).find(lower(filter)) != std::string::npos;
}

bool has(const std::string& filter, const JobView& job) {
  return has(filter, fmt::format("{} {} {} {} {}", job.id, job.name, job.queue,
                                 to_string(job.state), job.name.empty() ? job.command : ""));
}

class Rows {
 public:
  explicit Rows(const std::string& filter) : filter_(filter) {}

  /// A title with the jobs below it; `all`: how many there are in truth.
  void section(const std::string& title, const std::vector<JobView>& jobs, std::uint64_t all,
               const std::string& more) {
    const std::size_t begin = out_.size();
    for (const JobView& job : jobs) {
      if (has(filter_, job)) {
        TopRow row{TopRow::Kind::job, fmt::format("job {}", job.id)};
        row.job = &job;
        out_.push_back(std::move(row));
      }
    }
    const std::size_t shown = out_.size() - begin;
    all = std::max<std::uint64_t>(all, jobs.size());
    if (shown == 0 && (all == jobs.size() || filter_.empty())) {
      return;
    }
    const std::string count =
        filter_.empty() ? fmt::format("{}", all) : fmt::format("{} of {}", shown, all);
    out_.insert(out_.begin() + static_cast<std::ptrdiff_t>(begin),
                TopRow{TopRow::Kind::title, "", fmt::format("{} {}", title, count)});
    if (all > jobs.size()) {
      note(filter_.empty() ? fmt::format("… {} more: {}", all - jobs.size(), more)
                           : fmt::format("… not looked at: {} more; {}", all - jobs.size(), more));
    }
  }

  void note(std::string text) { out_.push_back(TopRow{TopRow::Kind::note, "", std::move(text)}); }

  std::vector<TopRow> take(const std::string& empty) {
    if (out_.empty()) {
      note(filter_.empty() ? empty : fmt::format("nothing matches '{}'", printable(filter_)));
    }
    return std::move(out_);
  }

  void add(TopRow row, const std::string& text) {
    if (has(filter_, text)) {
      out_.push_back(std::move(row));
    }
  }

 private:
  const std::string& filter_;
  std::vector<TopRow> out_;
};

std::uint64_t ended_count(const TopData& data) {
  return count_of(data, JobState::succeeded) + count_of(data, JobState::failed) +
         count_of(data, JobState::killed) + count_of(data, JobState::cancelled);
}

std::vector<TopRow> job_rows(const TopData& data, const TopState& state) {
  Rows rows(state.filter);
  rows.section("RUNNING", data.running, count_of(data, JobState::running),
               "berth ls --state running");
  rows.section("PAUSED", data.paused, count_of(data, JobState::paused), "berth ls --state paused");
  rows.section("WAITING", data.queued, count_of(data, JobState::queued), "berth ls --state queued");
  rows.section("FINISHED", data.ended, ended_count(data), "berth ls --all");
  return rows.take(data.complete ? "no jobs yet; try: berth add python train.py" : "…");
}

/// The chosen row by its key, otherwise the nearest that can be chosen.
std::size_t place(const std::vector<TopRow>& rows, const TopCursor& cursor) {
  if (!cursor.key.empty()) {
    const auto same = std::ranges::find(rows, cursor.key, &TopRow::key);
    if (same != rows.end()) {
      return static_cast<std::size_t>(same - rows.begin());
    }
  }
  const std::size_t from = std::min(cursor.index, rows.empty() ? 0 : rows.size() - 1);
  for (std::size_t at = from; at < rows.size(); ++at) {
    if (rows[at].can_be_chosen()) {
      return at;
    }
  }
  for (std::size_t at = from; at > 0; --at) {
    if (rows[at - 1].can_be_chosen()) {
      return at - 1;
    }
  }
  return 0;
}

}  // namespace

std::uint64_t count_of(const TopData& data, JobState state) {
  const auto it = data.status.counts.find(state);
  return it == data.status.counts.end() ? 0 : it->second;
}

std::vector<TopRow> top_rows(const TopData& data, const TopState& state) {
  Rows rows(state.filter);
  switch (state.pane) {
    case TopPane::jobs:
      return job_rows(data, state);
    case TopPane::finished:
      rows.section("FINISHED", data.ended, ended_count(data), "berth ls --all");
      return rows.take("no job has ended yet");
    case TopPane::queues:
      for (const QueueView& queue : data.status.queues) {
        TopRow row{TopRow::Kind::queue, "queue " + queue.name};
        row.queue = &queue;
        rows.add(std::move(row), queue.name);
      }
      return rows.take("no queues yet: the first job makes one");
    case TopPane::gpus:
      for (const GpuView& gpu : data.status.gpus) {
        TopRow row{TopRow::Kind::gpu, fmt::format("gpu {}", gpu.index)};
        row.gpu = &gpu;
        rows.add(std::move(row), fmt::format("{} {} {}", gpu.index, gpu.name, gpu.state));
      }
      return rows.take("no GPUs found; berth doctor tells why");
  }
  return {};
}

const TopRow* chosen_row(const std::vector<TopRow>& rows, const TopState& state) {
  const std::size_t at = state.cursor().index;
  return at < rows.size() && rows[at].can_be_chosen() ? &rows[at] : nullptr;
}

const JobView* chosen_job(const TopData& data, const TopState& state,
                          const std::vector<TopRow>& rows) {
  if (state.mode == TopMode::job || state.mode == TopMode::log) {
    for (const auto* list : {&data.running, &data.paused, &data.queued, &data.ended}) {
      const auto found = std::ranges::find(*list, state.subject, &JobView::id);
      if (found != list->end()) {
        return &*found;
      }
    }
    return nullptr;
  }
  const TopRow* row = chosen_row(rows, state);
  return row == nullptr ? nullptr : row->job;
}

void settle(TopState& state, const std::vector<TopRow>& rows, std::size_t height) {
  TopCursor& cursor = state.cursor();
  cursor.index = place(rows, cursor);
  cursor.key = cursor.index < rows.size() ? rows[cursor.index].key : "";
  height = std::max<std::size_t>(height, 1);
  if (cursor.index < cursor.first) {
    cursor.first = cursor.index;
    // The title above the first row of a section belongs to it.
    if (cursor.first > 0 && height > 1 && !rows[cursor.first - 1].can_be_chosen()) {
      --cursor.first;
    }
  }
  if (cursor.index >= cursor.first + height) {
    cursor.first = cursor.index + 1 - height;
  }
  cursor.first = std::min(cursor.first, rows.size() > height ? rows.size() - height : 0);
}

void settle_text(TopState& state, std::size_t lines, std::size_t height) {
  const std::size_t last = lines > height ? lines - height : 0;
  state.scroll = state.at_end ? last : std::min(state.scroll, last);
}

std::optional<GpuMemory> memory_of(const GpuView& gpu) {
  if (!gpu.memory_total || !gpu.memory_used || *gpu.memory_total == 0) {
    return std::nullopt;
  }
  GpuMemory out;
  out.total = *gpu.memory_total;
  const Bytes used = std::min(*gpu.memory_used, out.total);
  Bytes ours = 0;
  bool strangers = false;
  bool told = gpu.processes.has_value();  // by every process
  for (const GpuProcessView& process : gpu.processes.value_or(std::vector<GpuProcessView>())) {
    strangers = strangers || process.job == 0;
    told = told && process.memory.has_value();
    ours += process.job != 0 ? process.memory.value_or(0) : 0;
  }
  if (gpu.claims.empty()) {
    ours = 0;
  } else if (!strangers || !told) {
    ours = used;  // with what the driver keeps for itself
  }
  out.jobs = std::min(ours, used);
  out.others = used - out.jobs;
  Bytes claims = 0;
  for (const ClaimView& claim : gpu.claims) {
    claims += claim.memory.value_or(out.total);
  }
  out.claimed = std::min(claims > out.jobs ? claims - out.jobs : 0, out.total - used);
  return out;
}

std::optional<Bytes> gpu_memory_of(const TopData& data, std::uint64_t job) {
  std::optional<Bytes> sum;
  for (const GpuView& gpu : data.status.gpus) {
    if (!gpu.processes || std::ranges::find(gpu.claims, job, &ClaimView::job) == gpu.claims.end()) {
      continue;
    }
    sum = sum.value_or(0);
    for (const GpuProcessView& process : *gpu.processes) {
      if (process.job == job && !process.memory) {
        return std::nullopt;
      }
      *sum += process.job == job ? process.memory.value_or(0) : 0;
    }
  }
  return sum;
}

}  // namespace berth::cli
