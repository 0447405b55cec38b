#include "cli/progress.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/describe.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t kBarMax = 16;

std::string bar(std::size_t done, std::size_t total, std::size_t width) {
  const std::size_t filled = total == 0 ? 0 : done * width / total;
  std::string out;
  for (std::size_t i = 0; i < width; ++i) {
    out += i < filled ? "█" : "░";
  }
  return out;
}

}  // namespace

void Progress::update(JobView job) {
  const auto it = jobs_.find(job.id);
  if (it != jobs_.end()) {
    --counts_[it->second.state];
    ended_ -= is_terminal(it->second.state) ? 1 : 0;
  }
  ++counts_[job.state];
  ended_ += is_terminal(job.state) ? 1 : 0;
  jobs_.insert_or_assign(job.id, std::move(job));
}

std::size_t Progress::count(JobState state) const {
  const auto it = counts_.find(state);
  return it == counts_.end() ? 0 : it->second;
}

std::vector<JobView> Progress::jobs() const {
  std::vector<JobView> out;
  out.reserve(jobs_.size());
  for (const auto& [id, job] : jobs_) {
    out.push_back(job);
  }
  return out;
}

const JobView* Progress::find(std::uint64_t id) const {
  const auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : &it->second;
}

const JobView* Progress::first_waiting() const {
  for (const auto& [id, job] : jobs_) {
    if (job.state == JobState::queued) {
      return &job;
    }
  }
  return nullptr;
}

std::vector<std::string> Progress::block(const Screen& screen, Millis now) const {
  const std::size_t width = screen.width.value_or(80);
  const std::size_t failed =
      count(JobState::failed) + count(JobState::killed) + count(JobState::cancelled);
  const std::size_t bar_width = std::clamp<std::size_t>(width / 5, 5, kBarMax);
  std::string numbers =
      fmt::format(" {}/{} done, {} running, {} waiting", ended_, jobs_.size(),
                  count(JobState::running) + count(JobState::paused), count(JobState::queued));
  if (failed > 0) {
    numbers += fmt::format(", {} not succeeded", failed);
  }
  numbers += fmt::format(", {} left", jobs_.size() - ended_);
  std::vector<std::string> lines{
      styled(bar(ended_, jobs_.size(), bar_width), failed > 0 ? Style::bad : Style::good, screen) +
      shorten(numbers, width - std::min(width, bar_width))};

  const std::size_t room = std::max<std::size_t>(screen.height, 6) - 5;
  std::size_t hidden = 0;
  for (const auto& [id, job] : jobs_) {
    if (job.state != JobState::running && job.state != JobState::paused) {
      continue;
    }
    if (lines.size() > room) {
      ++hidden;
      continue;
    }
    const std::string where =
        job.gpu_indices.empty() ? "no GPU" : fmt::format("GPU {}", gpu_list(job.gpu_indices));
    lines.push_back(
        shorten(fmt::format("  {:<8} {:>6}  {}  {}{}", where, run_time(job, now), id, label(job),
                            job.attempts > 1 ? fmt::format(" (try {})", job.attempts) : ""),
                width));
  }
  if (hidden > 0) {
    lines.push_back(shorten(fmt::format("  … and {} more running", hidden), width));
  }
  if (const JobView* waiting = first_waiting()) {
    lines.push_back(styled(
        shorten(
            fmt::format("  next: {} {}{}", waiting->id, label(*waiting),
                        waiting->reason.empty() ? "" : ", waits: " + printable(waiting->reason)),
            width),
        Style::dim, screen));
  }
  return lines;
}

std::string event_line(const EventView& event, const JobView& job) {
  std::string what = printable(event.kind);
  std::string detail = printable(event.detail);
  if (event.kind == "started" && detail.empty()) {
    what += job.gpu_indices.empty() ? " without a GPU"
                                    : fmt::format(" on GPU {}", gpu_list(job.gpu_indices));
  }
  if (detail.empty() && event.kind == "failed") {
    detail = failure_text(job);
  }
  std::string who = fmt::format("job {}", event.job);
  if (!job.name.empty()) {
    who += " " + printable(job.name);
  }
  return fmt::format("{} {} {}{}{}", clock_time(event.time), who, what, detail.empty() ? "" : ": ",
                     detail);
}

}  // namespace berth::cli
