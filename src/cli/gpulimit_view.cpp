#include "cli/gpulimit_view.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/units.hpp"
#include "cli/describe.hpp"
#include "cli/table.hpp"

namespace berth::cli::gpulimit {
namespace {

constexpr std::size_t kWhole = 99;

/// "running(GPU:0)".
std::string status_text(const JobView& task) {
  std::string text(to_string(status_of(task)));
  const TaskStatus status = status_of(task);
  const bool has_card = status == TaskStatus::running || status == TaskStatus::paused;
  if (has_card && !task.gpu_indices.empty()) {
    text += fmt::format("(GPU:{})", gpu_list(task.gpu_indices));
  }
  return text;
}

class Facts {
 public:
  void add(std::string_view name, const std::string& value) {
    if (!value.empty()) {
      text_ += fmt::format("{:<11} {}\n", fmt::format("{}:", name), value);
    }
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string when(const std::optional<Millis>& time, Millis now) {
  return time ? fmt::format("{} ({})", date_time(*time), relative_time(*time, now)) : "";
}

std::string variable(const JobDetail& task, std::string_view name) {
  const std::string prefix = fmt::format("{}=", name);
  std::string value;
  const auto look = [&](const Environment& environment) {
    for (const std::string& entry : environment) {
      if (entry.starts_with(prefix)) {
        value = entry.substr(prefix.size());
      }
    }
  };
  look(task.environment.value_or(Environment()));
  look(task.extra_env);
  return value;
}

/// What the person may have meant by a command that is not there.
std::string hint(const JobDetail& task) {
  if (task.commands.empty() || task.commands[0].shell || task.commands[0].argv.empty()) {
    return {};
  }
  const std::string& program = task.commands[0].argv[0];
  if (program.ends_with(".py")) {
    return fmt::format("a Python file is run by Python: gpulimit add python3 {} …",
                       printable(program));
  }
  const std::string here = task.job.cwd + "/" + program;
  if (program.find('/') == std::string::npos && ::access(here.c_str(), X_OK) == 0) {
    return fmt::format("it lies in the task's directory: gpulimit add ./{} …", printable(program));
  }
  if (program.find('=') != std::string::npos) {
    return fmt::format("variables are set before gpulimit: {} gpulimit add …", printable(program));
  }
  return {};
}

}  // namespace

std::string list_text(const std::vector<JobView>& tasks, bool whole, const Screen& screen,
                      Millis now) {
  Table table({{"ID", Align::right, kWhole},
               {"STATUS", Align::left, kWhole},
               {"RUN_TIMES", Align::right, kWhole, 3},
               {"PRIORITY", Align::right, kWhole, 4},
               {"TIME", Align::right, kWhole, 1},
               {"PWD", Align::left, 10, 5},
               {"CMDS", Align::left, 28},
               {"REMARK", Align::left, 12, 2}});
  for (const JobView& task : tasks) {
    const TaskStatus status = status_of(task);
    table.add({{fmt::format("{}", task.id)},
               {status_text(task), style_of(task.state)},
               {fmt::format("{}", task.attempts)},
               {fmt::format("{}", task.priority)},
               {run_time(task, now)},
               {printable(task.cwd), Style::dim},
               {printable(task.command)},
               {status == TaskStatus::complete ? "" : remark(task),
                task.state == JobState::failed ? Style::bad : Style::plain}});
  }
  Screen wide = screen;
  if (whole) {
    wide.width.reset();
  }
  return table.render(wide);
}

std::string show_text(const JobDetail& task, const std::optional<std::uint32_t>& pid,
                      const std::string& max_err_times, const Screen& screen, Millis now) {
  const JobView& job = task.job;
  const TaskStatus status = status_of(job);
  std::string state = styled(to_string(status), style_of(job.state), screen);
  if (const std::string note = remark(job); !note.empty() && status != TaskStatus::complete) {
    state += ": " + note;
  }
  Facts facts;
  facts.add("task id", fmt::format("{}", job.id));
  facts.add("status", state);
  facts.add("pid", pid ? fmt::format("{}", *pid) : "");
  facts.add("priority", fmt::format("{}{}", job.priority, job.expedited ? ", starts next" : ""));
  facts.add("use gpu", gpu_list(job.gpu_indices));
  facts.add("run_times", fmt::format("{} (MAX_ERR_TIMES {})", job.attempts, max_err_times));
  facts.add("out file", printable(job.log));
  facts.add("pwd", printable(job.cwd));
  facts.add("cmds", printable(display_commands(task.commands)));
  facts.add("added", when(job.submitted_at, now));
  facts.add("started", when(job.started_at, now));
  facts.add("ended", when(job.ended_at, now));
  facts.add("time", run_time(job, now));
  return facts.text();
}

std::string parameters_text(const std::vector<ParameterValue>& values, const Screen& screen) {
  constexpr std::size_t kIndent = 4;
  std::string out;
  for (const auto& [parameter, value] : values) {
    const bool usual = value == parameter->usual;
    out +=
        fmt::format("{} = {}{}\n", styled(parameter->name, Style::bold, screen), printable(value),
                    usual ? "" : fmt::format(" (default {})", parameter->usual));
    const std::string blanks(kIndent, ' ');
    out += styled(blanks + wrapped(parameter->help, screen.width.value_or(80), kIndent), Style::dim,
                  screen) +
           "\n";
  }
  return out;
}

std::string overview_text(const Overview& overview, const Screen& screen) {
  std::string out;
  if (overview.memory.total > 0) {
    out += fmt::format("memory: {} free of {}\n", format_size(overview.memory.available),
                       format_size(overview.memory.total));
  }
  std::string tasks;
  for (std::size_t i = 0; i < kStatusCount; ++i) {
    if (overview.counts[i] > 0) {
      tasks += fmt::format("{}{} {}", tasks.empty() ? "" : ", ", overview.counts[i],
                           to_string(static_cast<TaskStatus>(i)));
    }
  }
  out += fmt::format("tasks: {}\n\n", tasks.empty() ? "none" : tasks);
  if (!overview.gpus.empty()) {
    out += gpu_table(overview.gpus, screen);
  } else {
    out += overview.gpu_trouble.empty()
               ? "no GPUs found; tasks run without\n"
               : styled("GPUs: " + printable(overview.gpu_trouble), Style::bad, screen) + "\n";
  }
  out += "\n";
  for (const auto& [parameter, value] : overview.parameters) {
    out += fmt::format("{} = {}\n", parameter->name, printable(value));
  }
  return out;
}

std::string debug_text(const JobDetail& task, const std::string& log_end) {
  const JobView& job = task.job;
  const TaskStatus status = status_of(job);
  std::string out = fmt::format("task {}: {}\n", job.id, to_string(status));
  if (status != TaskStatus::cmd_error && status != TaskStatus::runtime_error) {
    return out +
           fmt::format("  nothing went wrong{}\n", remark(job).empty() ? "" : "; " + remark(job));
  }
  for (const AttemptView& attempt : task.attempts) {
    out += fmt::format(
        "  run {}: {}\n", attempt.number,
        attempt.message.empty() ? printable(attempt.state) : printable(attempt.message));
  }
  out += fmt::format("  cmds: {}\n", printable(display_commands(task.commands)));
  out += fmt::format("  pwd:  {}\n", printable(job.cwd));
  if (status == TaskStatus::cmd_error) {
    if (const std::string path = variable(task, "PATH"); !path.empty()) {
      out += fmt::format("  PATH: {}\n", printable(path));
    }
    if (const std::string advice = hint(task); !advice.empty()) {
      out += fmt::format("  hint: {}\n", advice);
    }
    return out + fmt::format("  when that is put right: gpulimit start {}\n", job.id);
  }
  if (!log_end.empty()) {
    out += fmt::format("  the end of {}:\n{}{}", printable(job.log), log_end,
                       log_end.ends_with('\n') ? "" : "\n");
  }
  return out;
}

}  // namespace berth::cli::gpulimit
