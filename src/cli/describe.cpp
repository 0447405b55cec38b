#include "cli/describe.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/idset.hpp"
#include "base/units.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t kWhole = 99;  ///< of a column: cut, it would mislead

std::string size_or(const std::optional<Bytes>& size, const char* unknown) {
  return size ? format_size(*size) : unknown;
}

Style style_of_gpu(const std::string& state) {
  if (state == "free") return Style::good;
  if (state == "claimed") return Style::active;
  if (state == "trouble" || state == "drained") return Style::bad;
  return Style::plain;
}

std::string others_on(const GpuView& gpu) {
  if (!gpu.processes) {
    return "?";
  }
  std::vector<std::string> others;
  for (const std::uint64_t job : strays_on(gpu)) {
    others.push_back(fmt::format("job {} (strays)", job));
  }
  for (const GpuProcessView& process : *gpu.processes) {
    if (process.job == 0) {
      others.push_back(fmt::format("{} {}", process.pid, printable(process.name)));
    }
  }
  return fmt::format("{}", fmt::join(others, ", "));
}

}  // namespace

std::string label(const JobView& job) {
  constexpr std::size_t kWidest = 60;  // a command can be of any length
  return job.name.empty() ? shorten(printable(job.command), kWidest) : printable(job.name);
}

std::string id_list(const std::vector<std::uint64_t>& ids) {
  IdSet set;
  for (const std::uint64_t id : ids) {
    set.add(id);
  }
  return set.to_string();
}

std::string gpu_list(const std::vector<std::uint32_t>& indices) {
  return fmt::format("{}", fmt::join(indices, ","));
}

std::string gpu_request(const JobView& job) {
  std::string out = job.gpus.min == job.gpus.max
                        ? fmt::format("{}", job.gpus.min)
                        : fmt::format("{}..{}", job.gpus.min, job.gpus.max);
  if (job.gpu_memory && job.gpus.max > 0) {
    out += " × " + format_size(*job.gpu_memory);
  }
  return out;
}

std::string run_time(const JobView& job, Millis now) {
  if (!job.started_at || job.state == JobState::queued) {
    return {};
  }
  // The two readings may be from either side of a jump of the wall clock.
  return format_duration(std::max(job.ended_at.value_or(now) - *job.started_at, Millis(0)));
}

std::string failure_text(const JobView& job) {
  if (job.state != JobState::failed) {
    return is_terminal(job.state) && job.state != JobState::succeeded
               ? std::string(to_string(job.state))
               : std::string();
  }
  const std::string exit = job.exit_code ? fmt::format("exit {}", *job.exit_code) : "";
  if (!job.failure_class || *job.failure_class == FailureClass::exit) {
    return exit.empty() ? "failed" : exit;
  }
  const std::string kind(to_string(*job.failure_class));
  return exit.empty() ? kind : fmt::format("{} ({})", kind, exit);
}

std::string predicate(JobState state) {
  const std::string_view verb = state == JobState::succeeded || state == JobState::failed ? "has"
                                : is_terminal(state)                                      ? "was"
                                                                                          : "is";
  return fmt::format("{} {}", verb, to_string(state));
}

std::string remark(const JobView& job) {
  if (job.state == JobState::queued || (job.state == JobState::paused && !job.reason.empty())) {
    return (job.expedited ? "starts next; " : "") + printable(job.reason);
  }
  if (!job.message.empty()) {
    return printable(job.message);
  }
  return failure_text(job);
}

std::string job_table(const std::vector<JobView>& jobs, const Screen& screen, Millis now) {
  Table table({{"ID", Align::right, kWhole},
               {"NAME", Align::left, 10},
               {"STATE", Align::left, kWhole},
               {"QUEUE", Align::left, 6, 3},
               {"GPU", Align::left, 5, 2},
               {"TIME", Align::right, kWhole, 1},
               {"TRY", Align::right, kWhole, 4},
               {"SUBMITTED", Align::left, kWhole, 5},
               {"REMARK", Align::left, 12}});
  const bool one_queue =
      std::ranges::all_of(jobs, [](const JobView& job) { return job.queue == "default"; });
  for (const JobView& job : jobs) {
    table.add({{fmt::format("{}", job.id)},
               {label(job)},
               {std::string(to_string(job.state)), style_of(job.state)},
               {one_queue ? "" : printable(job.queue)},
               {gpu_list(job.gpu_indices)},
               {run_time(job, now)},
               {job.attempts > 1 ? fmt::format("{}", job.attempts) : ""},
               {relative_time(job.submitted_at, now), Style::dim},
               {remark(job), job.state == JobState::failed ? Style::bad : Style::plain}});
  }
  return table.render(screen);
}

std::string summary_table(const std::vector<JobView>& jobs, const Screen& screen, Millis now) {
  Table table({{"ID", Align::right, kWhole},
               {"NAME", Align::left, 10},
               {"STATE", Align::left, kWhole},
               {"GPU", Align::left, 5, 3},
               {"TIME", Align::right, kWhole, 1},
               {"ATTEMPTS", Align::right, kWhole, 4},
               {"EXIT", Align::right, kWhole, 2},
               {"REMARK", Align::left, 12}});
  for (const JobView& job : jobs) {
    table.add({{fmt::format("{}", job.id)},
               {label(job)},
               {std::string(to_string(job.state)), style_of(job.state)},
               {gpu_list(job.gpu_indices)},
               {run_time(job, now)},
               {fmt::format("{}", job.attempts)},
               {job.exit_code ? fmt::format("{}", *job.exit_code) : "-"},
               {job.state == JobState::succeeded ? "" : remark(job), Style::bad}});
  }
  return table.render(screen);
}

std::vector<std::uint64_t> strays_on(const GpuView& gpu) {
  std::vector<std::uint64_t> jobs;
  for (const GpuProcessView& process : gpu.processes.value_or(std::vector<GpuProcessView>())) {
    if (process.job != 0 &&
        std::ranges::find(gpu.claims, process.job, &ClaimView::job) == gpu.claims.end() &&
        std::ranges::find(jobs, process.job) == jobs.end()) {
      jobs.push_back(process.job);
    }
  }
  return jobs;
}

std::string gpu_word(const GpuView& gpu) {
  return gpu.lost ? "lost" : printable(gpu.state);
}

std::string gpu_remark(const GpuView& gpu) {
  return printable(gpu.trouble.empty() ? gpu.reserved : gpu.trouble);
}

std::string gpu_table(const std::vector<GpuView>& gpus, const Screen& screen) {
  Table table({{"GPU", Align::right, kWhole},
               {"NAME", Align::left, 10, 5},
               {"MEMORY", Align::right, kWhole},
               {"FREE", Align::right, kWhole, 2},
               {"UTIL", Align::right, kWhole, 1},
               {"STATE", Align::left, kWhole},
               {"JOBS", Align::left, 5},
               {"OTHERS", Align::left, 20, 4}});
  std::string remarks;
  for (const GpuView& gpu : gpus) {
    std::vector<std::uint64_t> jobs;
    for (const ClaimView& claim : gpu.claims) {
      jobs.push_back(claim.job);
    }
    // A daemon of before does not tell what is left.
    table.add(
        {{fmt::format("{}", gpu.index)},
         {printable(gpu.name)},
         {fmt::format("{} / {}", size_or(gpu.memory_used, "?"), size_or(gpu.memory_total, "?"))},
         {size_or(gpu.memory_left ? gpu.memory_left : gpu.memory_free, "?")},
         {gpu.utilization ? fmt::format("{} %", *gpu.utilization) : "?"},
         {gpu_word(gpu), style_of_gpu(gpu.state)},
         {fmt::format("{}", fmt::join(jobs, ","))},
         {others_on(gpu)}});
    if (const std::string remark = gpu_remark(gpu); !remark.empty()) {
      remarks +=
          styled(fmt::format("GPU {}: {}", gpu.index, remark), style_of_gpu(gpu.state), screen) +
          "\n";
    }
  }
  return table.render(screen) + remarks;
}

namespace {

/// "GPUs: 5 of 8 free, 1 reserved, 1 drained".
std::string gpu_counts(const StatusView& status) {
  const auto gpus_that_are = [&](std::string_view word) {
    return std::ranges::count(status.gpus, word, gpu_word);
  };
  if (!status.probe.age && status.gpus.empty()) {
    return "GPUs: not looked at yet";
  }
  std::string out;
  if (const auto unknown = gpus_that_are("unknown"); unknown == 0) {
    out = fmt::format("GPUs: {} of {} free", gpus_that_are("free"), status.gpus.size());
  } else {  // what was free then may not be now
    out = fmt::format("GPUs: {} of {} cannot be judged", unknown, status.gpus.size());
  }
  for (const std::string_view word : {"reserved", "drained", "lost", "trouble"}) {
    if (const auto count = gpus_that_are(word); count > 0) {
      out += fmt::format(", {} {}", count, word == "trouble" ? "in trouble" : word);
    }
  }
  return out;
}

/// Cards that nobody gets, and what to do about it.
std::string gpu_troubles(const StatusView& status, const Screen& screen) {
  std::string out;
  for (const GpuView& gpu : status.gpus) {
    if (gpu.trouble.empty()) {
      continue;
    }
    const std::string back = gpu.drained_why.empty()
                                 ? ""
                                 : fmt::format("; berth resume --gpu {} puts it back", gpu.index);
    out += styled(fmt::format("GPU {} {}{}", gpu.index,
                              gpu.drained_why.empty()
                                  ? fmt::format("cannot be used: {}", printable(gpu.trouble))
                                  : fmt::format("is {}", printable(gpu.trouble)),
                              back),
                  Style::bad, screen) +
           "\n";
  }
  return out;
}

/// "queues: default (2 running, 3 waiting), car (limit 1)".
std::string queue_line(const std::vector<QueueView>& queues) {
  constexpr std::size_t kShown = 20;
  std::vector<std::string> parts;
  for (const QueueView& queue : queues) {
    if (parts.size() == kShown) {
      parts.push_back(fmt::format("… and {} more", queues.size() - kShown));
      break;
    }
    std::vector<std::string> facts;
    if (queue.paused) {
      facts.emplace_back("paused");
    }
    if (queue.limit > 0) {
      facts.push_back(fmt::format("limit {}", queue.limit));
    }
    if (queue.running > 0) {
      facts.push_back(fmt::format("{} running", queue.running));
    }
    if (queue.waiting.value_or(0) > 0) {
      facts.push_back(fmt::format("{} waiting", *queue.waiting));
    }
    parts.push_back(facts.empty()
                        ? printable(queue.name)
                        : fmt::format("{} ({})", printable(queue.name), fmt::join(facts, ", ")));
  }
  return parts.empty() ? "" : fmt::format("queues: {}\n", fmt::join(parts, ", "));
}

}  // namespace

std::string status_text(const StatusView& status, const Screen& screen, const ListenView& listen) {
  const auto count = [&](JobState state) {
    const auto it = status.counts.find(state);
    return it == status.counts.end() ? 0 : it->second;
  };
  std::string out =
      fmt::format("berth {} on {}, pid {}, up {}, state in {}\n", status.version,
                  status.node.empty() ? "this machine" : printable(status.node), status.pid,
                  format_duration(status.uptime), printable(status.instance));
  out +=
      fmt::format("jobs: {} running, {} queued", count(JobState::running), count(JobState::queued));
  for (const JobState state : {JobState::paused, JobState::succeeded, JobState::failed,
                               JobState::killed, JobState::cancelled}) {
    if (count(state) > 0) {
      out += fmt::format(", {} {}", count(state), to_string(state));
    }
  }
  out += "\n" + gpu_counts(status);
  if (status.probe.simulated) {
    out += ", simulated";
  }
  if (!status.probe.driver.empty()) {
    out += fmt::format(" ({})", printable(status.probe.driver));
  }
  if (status.probe.age && *status.probe.age > Millis(10'000)) {
    out += fmt::format(", last seen {} ago", format_duration(*status.probe.age));
  }
  out += "\n";
  if (!status.probe.error.empty()) {
    out += styled("GPU probe: " + printable(status.probe.error), Style::bad, screen) + "\n";
  }
  out += gpu_troubles(status, screen) + queue_line(status.queues);
  if (listen.listening) {
    out += fmt::format("listening: {}{}\n", printable(listen.url),
                       listen.moved ? " (the usual port is taken)" : "");
  }
  if (status.paused) {
    out += styled("berth is paused and starts nothing; berth resume --instance lets it go on",
                  Style::bad, screen) +
           "\n";
  }
  for (const QueueView& queue : status.queues) {
    if (queue.paused) {
      out += styled(fmt::format("queue '{}' is paused; berth resume --queue {} lets it start jobs",
                                printable(queue.name), printable(queue.name)),
                    Style::bad, screen) +
             "\n";
    }
  }
  for (const std::string& problem : status.problems) {
    out += styled(printable(problem), Style::bad, screen) + "\n";
  }
  if (status.space.low) {
    out +=
        styled("disk space is low: " + printable(status.space.detail), Style::bad, screen) + "\n";
  }
  return out;
}

}  // namespace berth::cli
