// Scripts with #BERTH or #SBATCH lines (docs/formats/scripts.md).

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "dialects/dialect.hpp"
#include "dialects/script_job.hpp"
#include "dialects/script_lines.hpp"
#include "dialects/script_stand_ins.hpp"
#include "jobspec/entry_checks.hpp"
#include "jobspec/job_reader.hpp"
#include "jobspec/launch_words.hpp"
#include "jobspec/values.hpp"

namespace berth {
namespace {

/// The longest single string the kernel takes as an argument, less its terminating NUL.
constexpr std::size_t kLongestArgument = 131'071;
/// Of all tasks together: each carries the script.
constexpr std::size_t kMostText = 512 * kMiB;

/// Runs a text as the file it came from: its arguments, its name in messages.
constexpr std::string_view kRunPython =
    "import sys; __file__, t = sys.argv[1:3]; del sys.argv[:2]; sys.argv[0] = __file__; "
    "exec(compile(t, __file__, 'exec'))";

enum class Language : std::uint8_t { shell, python };

std::optional<Language> language_of(std::string_view program) {
  constexpr std::array<std::string_view, 5> kShells = {"bash", "sh", "dash", "zsh", "ksh"};
  const auto slash = program.rfind('/');
  const auto name = slash == std::string_view::npos ? program : program.substr(slash + 1);
  if (std::find(kShells.begin(), kShells.end(), name) != kShells.end()) {
    return Language::shell;
  }
  const bool version = name.starts_with("python") &&
                       name.substr(6).find_first_not_of("0123456789.") == std::string_view::npos;
  return version ? std::optional(Language::python) : std::nullopt;
}

/// `path` as one word for a shell.
std::string shell_word(std::string_view path) {
  std::string out = "'";
  for (const char c : path) {
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out + "'";
}

class ScriptReader {
 public:
  ScriptReader(const Source& source, const DialectOptions& options)
      : source_(source),
        options_(options),
        here_(source.here.empty() ? source.base_dir : source.here),
        text_(without_mark(source.text)),
        protected_(protect_launch_words(text_)),
        lines_(read_script_lines(source.text)),
        diagnostics_(source.file_name),
        report_{diagnostics_, [this](Position at, const std::string& message) {
                  warnings_.emplace(at, message);
                }} {}

  Parsed read() {
    check_text();
    read_slurm_lines(lines_.directives, job_, report_);
    read_berth_lines(lines_.directives, here_.string(), job_, report_);
    JobFile file = make();
    warn_about_lines(file);
    if (!diagnostics_.empty()) {
      return std::unexpected(diagnostics_.take());
    }
    for (const auto& [at, message] : warnings_) {
      file.warnings.push_back(
          fmt::format("{}:{}:{}: {}", source_.file_name, at.line, at.column, message));
    }
    return file;
  }

 private:
  void check_text() {
    const auto end = text_.find("\r\n");
    if (text_.find('\0') != std::string_view::npos) {
      diagnostics_.add({}, "this script has a NUL byte in it");
    } else if (end != std::string_view::npos) {
      const auto line =
          std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(end), '\n');
      diagnostics_.add({static_cast<std::uint32_t>(line) + 1, 1},
                       "this line ends as on Windows, which shells do not take; convert the file, "
                       "for example with: sed -i 's/\\r$//' FILE");
    }
    if (protected_.size() + kPrefixMost > kLongestArgument) {
      diagnostics_.add({}, fmt::format("this script has {} bytes, and the kernel takes {} in one "
                                       "argument; move parts of it into other files",
                                       text_.size(), kLongestArgument - kPrefixMost));
    }
    const std::string program = lines_.interpreter.empty() ? "bash" : lines_.interpreter.front();
    if (const auto language = language_of(program)) {
      language_ = *language;
    } else {
      diagnostics_.add({}, fmt::format("scripts for '{}' are not read; for sh, bash and python "
                                       "they are: call the program from a script for bash",
                                       program));
    }
  }

  JobFile make() {
    const std::filesystem::path path(source_.file_name);
    name_ = job_.name    ? job_.name->text
            : job_.slurm ? path.filename().string()
                         : path.stem().string();
    if (const auto problem = name_problem(name_); !problem.empty()) {
      diagnostics_.add(job_.name ? job_.name->at : Position{}, problem);
    }
    JobContext context;
    context.base_dir = here_;
    context.now = source_.now;
    const auto keys = JobKeys::read(job_.keys.map(), "a script", diagnostics_);
    common_ = JobReader(keys, context, Matrix(), diagnostics_).common();
    std::set<std::string> seen;
    check_directories(keys, context, common_, source_.lacks_directory, seen, report_.warn);
    common_.after = job_.after;
    common_.after_kind = job_.after_kind;
    JobFile file;
    file.name = name_;
    file.after_arrays = job_.after_arrays;
    if (!job_.array) {
      file.jobs.push_back(make_job(std::nullopt));
      return file;
    }
    const auto& tasks = job_.array->indices;
    file.max_concurrent = job_.array->limit;
    for (const auto task : tasks) {
      file.jobs.push_back(make_job(task));
      if (file.jobs.size() == 1) {
        refuse_if_too_large(file.jobs.front(), tasks.size());
      }
      if (!diagnostics_.empty()) {
        break;
      }
    }
    return file;
  }

  /// Each task carries the script and an environment of its own.
  void refuse_if_too_large(const JobSpec& task, std::size_t count) {
    std::size_t bytes = sizeof(JobSpec);
    const auto add = [&](const std::vector<std::string>& texts) {
      for (const std::string& text : texts) {
        bytes += sizeof text + text.size();
      }
    };
    add(task.payload.extra_env);
    for (const Command& command : task.payload.commands) {
      add(command.argv);
    }
    if (bytes > kMostText / count) {
      diagnostics_.add(
          {}, fmt::format("{} tasks that carry {} each, the script and its environment, "
                          "are more than {}; take at most {} tasks at a time",
                          count, format_size(bytes), format_size(kMostText), kMostText / bytes));
    }
  }

  JobSpec make_job(std::optional<std::uint32_t> task) {
    JobSpec job = common_;
    job.name = task ? fmt::format("{}-{}", name_, *task) : name_;
    if (task) {
      job.payload.params["task"] = fmt::format("{}", *task);
    }
    const PathWords words{"{job_id}",
                          task ? "{first_id}" : "{job_id}",
                          task ? fmt::format("{}", *task) : "0",
                          name_,
                          source_.user,
                          source_.host};
    set_log(job, words);
    const auto error_path = error_log(job, words);
    job.payload.commands = {make_command(error_path)};
    add_environment(job, task);
    return job;
  }

  std::string filled(const PlacedText& pattern, const std::string& cwd, const PathWords& words) {
    const auto filled = fill_path(pattern.text, words);
    if (!filled.unknown.empty()) {
      warnings_.emplace(pattern.at,
                        fmt::format("'{}' in '{}' is not known and stays as it is; there are %j %A "
                                    "%a %b %x %u %N and %%",
                                    filled.unknown, pattern.text));
    }
    return (std::filesystem::path(cwd) / filled.path).lexically_normal().string();
  }

  /// sbatch writes into the folder the job runs in; berth alone keeps the log itself.
  void set_log(JobSpec& job, const PathWords& words) {
    if (!job.payload.log.empty() || !job_.slurm) {
      return;
    }
    const PlacedText usual{job_.array ? "slurm-%A_%a.out" : "slurm-%j.out", {}};
    job.payload.log = filled(job_.output.value_or(usual), job.payload.cwd, words);
  }

  std::string error_log(const JobSpec& job, const PathWords& words) {
    if (!job_.error) {
      return {};
    }
    auto path = filled(*job_.error, job.payload.cwd, words);
    if (path == job.payload.log) {
      return {};
    }
    if (language_ != Language::shell) {
      warnings_.emplace(job_.error->at,
                        "errors of a python script go where its output goes: --error is left out");
      return {};
    }
    if (path.size() > kPrefixMost / 8) {
      diagnostics_.add_once(job_.error->at, "this path is too long");
    }
    return path;
  }

  /// Whether lines of a shell script call a program that is not there.
  [[nodiscard]] bool misses(const char* program, const std::vector<std::uint32_t>& calls) const {
    return language_ == Language::shell && !calls.empty() && source_.has_program &&
           !source_.has_program(program);
  }

  /// What stands before the script on its first line, so that its lines keep their numbers.
  [[nodiscard]] std::string prefix(const std::string& error_path) const {
    std::string out;
    if (!error_path.empty()) {
      out += fmt::format("exec 2>>{} || exit 1; ", shell_word(error_path));
    }
    if (job_.slurm && text_.find("SLURM_RESTART_COUNT") != std::string_view::npos) {
      out +=
          "[ \"${BERTH_ATTEMPT_NUMBER:-1}\" -le 1 ] || export "
          "SLURM_RESTART_COUNT=$((BERTH_ATTEMPT_NUMBER - 1)); ";
    }
    if (misses("srun", lines_.srun)) {
      out += kSrunFunction;
    }
    if (misses("scontrol", lines_.scontrol)) {
      out += kScontrolFunction;
    }
    return out;
  }

  [[nodiscard]] Command make_command(const std::string& error_path) const {
    const auto path = protect_launch_words(
        (source_.base_dir / std::filesystem::path(source_.file_name).filename()).string());
    Command command;
    command.argv =
        lines_.interpreter.empty() ? std::vector<std::string>{"bash"} : lines_.interpreter;
    command.argv.emplace_back("-c");
    if (language_ == Language::python) {
      command.argv.emplace_back(kRunPython);
      command.argv.push_back(path);
      command.argv.push_back(protected_);
    } else {
      command.argv.push_back(prefix(error_path) + protected_);
      command.argv.push_back(path);
    }
    command.argv.insert(command.argv.end(), options_.arguments.begin(), options_.arguments.end());
    return command;
  }

  /// What scripts look at, before what they set themselves.
  void add_environment(JobSpec& job, std::optional<std::uint32_t> task) const {
    Environment own;
    own.swap(job.payload.extra_env);
    auto& env = job.payload.extra_env;
    const auto set = [&](std::string_view name, std::string_view value) {
      env.push_back(fmt::format("{}={}", name, value));
    };
    if (job_.slurm) {
      add_slurm(job.request, set);
    }
    if (task) {
      add_task(env, *task, job_.slurm ? "SLURM" : "BERTH");
    }
    env.insert(env.end(), own.begin(), own.end());
  }

  template <class Set>
  void add_slurm(const Request& request, const Set& set) const {
    set("SLURM_JOB_ID", "{job_id}");
    set("SLURM_JOBID", "{job_id}");
    set("SLURM_JOB_NAME", protect_launch_words(name_));
    set("SLURM_JOB_NUM_NODES", "1");
    set("SLURM_NNODES", "1");
    set("SLURM_JOB_NODELIST", source_.host);
    set("SLURM_NODELIST", source_.host);
    set("SLURMD_NODENAME", source_.host);
    set("SLURM_SUBMIT_HOST", source_.host);
    set("SLURM_SUBMIT_DIR", protect_launch_words(here_.string()));
    set("SLURM_JOB_USER", protect_launch_words(source_.user));
    const auto number = [&](std::string_view name, std::uint64_t value) {
      set(name, fmt::format("{}", value));
    };
    // Programs that find a number of tasks wait for so many of them, so it is there only where it
    // was asked for.
    if (job_.tasks) {
      number("SLURM_NTASKS", *job_.tasks);
      number("SLURM_NPROCS", *job_.tasks);
      if (job_.tasks_of_a_node) {
        number("SLURM_NTASKS_PER_NODE", *job_.tasks);
      }
    }
    number("SLURM_TASKS_PER_NODE", job_.tasks.value_or(1));
    const std::uint32_t cpus = std::max(request.cpus, 1U);
    number("SLURM_CPUS_ON_NODE", cpus);
    number("SLURM_JOB_CPUS_PER_NODE", cpus);
    if (request.memory > 0) {
      number("SLURM_MEM_PER_NODE", request.memory / kMiB);
    }
    set("SLURM_PROCID", "0");
    set("SLURM_LOCALID", "0");
    set("SLURM_NODEID", "0");
    if (job_.cpus_per_task) {
      number("SLURM_CPUS_PER_TASK", *job_.cpus_per_task);
    }
    if (request.gpus.max > 0) {
      set("SLURM_GPUS", "{gpu_count}");
      set("SLURM_GPUS_ON_NODE", "{gpu_count}");
      set("SLURM_GPUS_PER_NODE", "{gpu_count}");
      set("SLURM_JOB_GPUS", "{gpu_list}");
      set("SLURM_STEP_GPUS", "{gpu_list}");
      // Slurm gives indices, and programs that were written for it read them as numbers.
      set("CUDA_VISIBLE_DEVICES", "{gpu_list}");
    }
  }

  void add_task(Environment& env, std::uint32_t task, std::string_view of) const {
    const auto& tasks = *job_.array;
    const auto set = [&](std::string_view name, std::string_view value) {
      env.push_back(fmt::format("{}_ARRAY_{}={}", of, name, value));
    };
    set("JOB_ID", "{first_id}");
    set("TASK_ID", fmt::format("{}", task));
    set("TASK_COUNT", fmt::format("{}", tasks.indices.size()));
    set("TASK_MIN", fmt::format("{}", tasks.indices.front()));
    set("TASK_MAX", fmt::format("{}", tasks.indices.back()));
    set("TASK_STEP", fmt::format("{}", tasks.step));
  }

  void warn_about_lines(const JobFile& file) {
    for (const auto at : lines_.too_late) {
      warnings_.emplace(at, "this directive stands behind the first command and is not read");
    }
    if (misses("scontrol", lines_.other_scontrol)) {
      warnings_.emplace(Position{lines_.other_scontrol.front(), 1},
                        "this line calls scontrol, and there is none on PATH: 'scontrol show "
                        "hostnames' tells the name of this machine, and everything else fails");
    }
    if (misses("srun", lines_.srun)) {
      warnings_.emplace(Position{lines_.srun.front(), 1},
                        "this line calls srun, and there is none on PATH: its command is run here, "
                        "once for each task, and its other options are left out");
    }
    const bool gpus = !file.jobs.empty() && file.jobs.front().request.gpus.max > 0;
    if (gpus && sets_visible_devices(text_)) {
      warnings_.emplace(Position{},
                        "the script sets CUDA_VISIBLE_DEVICES itself, so it may use other GPUs "
                        "than those it is given");
    }
  }

  /// Room for prefix() beside the script in one argument.
  static constexpr std::size_t kPrefixMost = 8192;

  const Source& source_;
  const DialectOptions& options_;
  std::filesystem::path here_;
  std::string_view text_;
  std::string protected_;  ///< the text, so that a launch gives it back
  ScriptLines lines_;
  Diagnostics diagnostics_;
  std::set<std::pair<Position, std::string>> warnings_;
  ScriptReport report_;
  ScriptJob job_;
  std::string name_;
  JobSpec common_;
  Language language_ = Language::shell;
};

}  // namespace

bool looks_like_script(std::string_view text) {
  text = without_mark(text);
  if (!text.starts_with('#')) {
    return false;
  }
  const auto first_line = text.substr(0, text.find('\n'));
  const bool berth_file = first_line.find("berth") != std::string_view::npos;
  return (text.starts_with("#!") && !berth_file) || !read_script_lines(text).directives.empty();
}

Parsed parse_script(const Source& source, const DialectOptions& options) {
  return ScriptReader(source, options).read();
}

}  // namespace berth
