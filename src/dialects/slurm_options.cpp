// #SBATCH lines.

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "core/rule_table.hpp"
#include "dialects/script_job.hpp"
#include "jobspec/launch_words.hpp"

namespace berth {
namespace {

/// Those that mean something here; see SlurmReader::take().
constexpr auto kRead = std::to_array<ScriptOption>({
    {"--array", 'a'},
    {"--begin", 'b'},
    {"--chdir", 'D'},
    {"--cpus-per-gpu"},
    {"--cpus-per-task", 'c'},
    {"--dependency", 'd'},
    {"--error", 'e'},
    {"--export"},
    {"--gpus", 'G'},
    {"--gpus-per-node"},
    {"--gpus-per-task"},
    {"--gres"},
    {"--job-name", 'J'},
    {"--mem"},
    {"--mem-per-cpu"},
    {"--mem-per-gpu"},
    {"--no-requeue", 0, Takes::nothing},
    {"--nodes", 'N'},
    {"--ntasks", 'n'},
    {"--ntasks-per-node"},
    {"--output", 'o'},
    {"--requeue", 0, Takes::nothing},
    {"--signal"},
    {"--time", 't'},
});

/// Those that say nothing to berth.
constexpr auto kIgnored = std::to_array<ScriptOption>({
    {"--account", 'A'},
    {"--acctg-freq"},
    {"--bell", 0, Takes::nothing},
    {"--cluster-constraint"},
    {"--clusters", 'M'},
    {"--comment"},
    {"--constraint", 'C'},
    {"--container"},
    {"--contiguous", 0, Takes::nothing},
    {"--core-spec", 'S'},
    {"--cores-per-socket"},
    {"--cpu-freq"},
    {"--deadline"},
    {"--delay-boot"},
    {"--distribution", 'm'},
    {"--exclude", 'x'},
    {"--exclusive", 0, Takes::maybe},
    {"--export-file"},
    {"--extra-node-info", 'B'},
    {"--get-user-env", 0, Takes::maybe},
    {"--gpu-bind"},
    {"--gpu-freq"},
    {"--gpus-per-socket"},
    {"--gres-flags"},
    {"--hint"},
    {"--hold", 'H', Takes::nothing},
    {"--input", 'i'},
    {"--kill-on-invalid-dep"},
    {"--licenses", 'L'},
    {"--mail-type"},
    {"--mail-user"},
    {"--mem-bind"},
    {"--mincpus"},
    {"--network"},
    {"--nice", 0, Takes::maybe},
    {"--no-kill", 'k', Takes::maybe},
    {"--nodefile", 'F'},
    {"--nodelist", 'w'},
    {"--ntasks-per-core"},
    {"--ntasks-per-gpu"},
    {"--ntasks-per-socket"},
    {"--open-mode"},
    {"--overcommit", 'O', Takes::nothing},
    {"--oversubscribe", 's', Takes::nothing},
    {"--parsable", 0, Takes::nothing},
    {"--partition", 'p'},
    {"--power"},
    {"--prefer"},
    {"--priority"},
    {"--profile"},
    {"--propagate", 0, Takes::maybe},
    {"--qos", 'q'},
    {"--quiet", 'Q', Takes::nothing},
    {"--reboot", 0, Takes::nothing},
    {"--reservation"},
    {"--sockets-per-node"},
    {"--spread-job", 0, Takes::nothing},
    {"--switches"},
    {"--test-only", 0, Takes::nothing},
    {"--threads-per-core"},
    {"--time-min"},
    {"--tmp"},
    {"--use-min-nodes", 0, Takes::nothing},
    {"--verbose", 'v', Takes::nothing},
    {"--wait", 'W', Takes::nothing},
    {"--wait-all-nodes"},
    {"--wckey"},
    {"--wrap"},
});

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find_first_of(separators);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(at + 1);
  }
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const bool good = !text.empty() && error == std::errc{} && stop == end;
  return good ? std::optional(value) : std::nullopt;
}

/// At most what a size can be: too much either way.
Bytes times(Bytes size, std::uint64_t count) {
  constexpr Bytes kMost = kTiB * kKiB;
  Bytes product = 0;
  return __builtin_mul_overflow(size, count, &product) ? kMost : std::min(product, kMost);
}

class SlurmReader {
 public:
  SlurmReader(ScriptJob& job, const ScriptReport& report) : job_(job), report_(report) {}

  void take(const GivenOption& given) {
    const std::string_view name = given.name;
    if (name == "--gres" || name.starts_with("--gpus")) {
      return take_gpus(given);
    }
    if (name.starts_with("--mem")) {
      return take_memory(given);
    }
    if (name == "--cpus-per-task" || name.starts_with("--ntasks") || name == "--nodes" ||
        name == "--cpus-per-gpu") {
      return take_count(given);
    }
    if (name == "--time") {
      if (const auto time = checked(given, parse_slurm_time(given.value))) {
        job_.keys.set("time", fmt::format("{}ms", time->count()), given.at);
        time_ = *time;
      }
    } else if (name == "--begin") {
      if (const auto begin = checked(given, parse_slurm_begin(given.value))) {
        job_.keys.set_start(begin->key, begin->value, given.at);
      }
    } else if (name == "--array") {
      job_.array = checked(given, parse_array(given.value));
    } else if (name == "--job-name") {
      job_.name = {given.value, given.at};
    } else if (name == "--output") {
      job_.output = {given.value, given.at};
    } else if (name == "--error") {
      job_.error = {given.value, given.at};
    } else if (name == "--chdir") {
      job_.keys.set("cwd", given.value, given.at);
    } else if (name == "--signal") {
      take_signal(given);
    } else if (name == "--export") {
      take_export(given);
    } else if (name == "--dependency") {
      take_dependency(given);
    } else if (name == "--no-requeue") {
      ignore(given, "; a run that is lost or gives way is started again");
    }
    // --requeue is what berth does anyway.
  }

  /// What depends on several options at once.
  void finish() {
    const auto tasks = job_.tasks.value_or(1);
    const auto gpus = gpus_of(tasks);
    job_.keys.set("gpus", fmt::format("{}", gpus), gpus_at_);
    const auto cpus = cpus_per_gpu_ != 0 && !job_.cpus_per_task
                          ? cpus_per_gpu_ * gpus
                          : std::uint64_t{job_.cpus_per_task.value_or(1)} * tasks;
    if (job_.cpus_per_task || job_.tasks || cpus_per_gpu_ != 0) {
      job_.keys.set("cpus", fmt::format("{}", cpus), cpus_at_);
    }
    const auto memory =
        memory_ ? *memory_ : times(memory_per_cpu_, cpus) + times(memory_per_gpu_, gpus);
    fit_signal();
    if (memory != 0) {
      job_.keys.set("memory", fmt::format("{}", memory), memory_at_);
    }
  }

  void ignore(const GivenOption& given, std::string_view why = "") {
    report_.warn(given.at,
                 fmt::format("'{}' says nothing to berth and is left out{}", given.name, why));
  }

 private:
  template <class T>
  std::optional<T> checked(const GivenOption& given, Result<T> value) {
    if (!value) {
      report_.diagnostics.add(given.at, fmt::format("{}: {}", given.name, value.error().message));
      return std::nullopt;
    }
    return std::move(*value);
  }

  void refuse(const GivenOption& given, std::string_view what) {
    report_.diagnostics.add(given.at,
                            fmt::format("{}: '{}' is not {}", given.name, given.value, what));
  }

  /// The number of GPUs, of several options that of the first here; another one is a mistake of
  /// somebody's.
  std::uint64_t gpus_of(std::uint32_t tasks) {
    const AskedGpus* counts = nullptr;
    std::uint64_t gpus = 0;
    for (const std::string_view name : {"--gpus", "--gpus-per-node", "--gres", "--gpus-per-task"}) {
      const auto found = asked_gpus_.find(name);
      if (found == asked_gpus_.end()) {
        continue;
      }
      const AskedGpus& asked = found->second;
      const auto meant = asked.count * (name == "--gpus-per-task" ? tasks : 1U);
      if (counts == nullptr) {
        counts = &asked;
        gpus = meant;
      } else if (meant != gpus) {
        report_.warn(std::max(asked.at, counts->at),
                     fmt::format("'{}' and '{}' ask for different numbers of GPUs; the former "
                                 "counts, so the script gets {}",
                                 counts->text, asked.text, gpus));
      }
    }
    return gpus;
  }

  /// "4", "a100:4"; of a list the sum.
  std::optional<std::uint64_t> gpu_count(const GivenOption& given, std::string_view text) {
    std::uint64_t sum = 0;
    for (auto part : split(text, ",")) {
      part = part.substr(0, part.find('('));  // sockets
      const auto colon = part.rfind(':');
      const auto count_text = part.substr(colon == std::string_view::npos ? 0 : colon + 1);
      auto count = number<std::uint32_t>(count_text);
      const auto type = count ? part.substr(0, colon == std::string_view::npos ? 0 : colon) : part;
      if (!count && !type.empty() && given.name == "--gres") {
        count = 1;  // a type alone
      }
      if (!count || type.find(':') != std::string_view::npos) {
        refuse(given, given.name == "--gres" ? "a number of GPUs; write gpu:2 or gpu:TYPE:2"
                                             : "a number of GPUs");
        return std::nullopt;
      }
      if (!type.empty()) {
        report_.warn(given.at, fmt::format("the type '{}' of the GPUs is not looked at", type));
      }
      sum += *count;
    }
    return sum;
  }

  void take_gpus(const GivenOption& given) {
    gpus_at_ = given.at;
    if (given.name == "--gres") {
      return take_gres(given);
    }
    if (const auto count = gpu_count(given, given.value)) {
      ask_for(given, *count);
    }
  }

  void ask_for(const GivenOption& given, std::uint64_t count) {
    asked_gpus_.insert_or_assign(
        given.name, AskedGpus{count, fmt::format("{}={}", given.name, given.value), given.at});
  }

  void take_gres(const GivenOption& given) {
    std::optional<std::uint64_t> sum;
    for (auto part : split(given.value, ",")) {
      if (part.starts_with("gres:") || part.starts_with("gres/")) {
        part.remove_prefix(5);
      }
      if (part == "none" || part == "NONE") {
        sum = sum.value_or(0);
      } else if (part == "gpu") {
        sum = sum.value_or(0) + 1;
      } else if (part.starts_with("gpu:")) {
        if (const auto count = gpu_count(given, part.substr(4))) {
          sum = sum.value_or(0) + *count;
        }
      } else {
        report_.warn(given.at, fmt::format("'{}' of --gres is left out: only gpu is known", part));
      }
    }
    if (sum) {
      ask_for(given, *sum);
    }
  }

  void take_memory(const GivenOption& given) {
    const auto size = checked(given, parse_slurm_memory(given.value));
    if (!size) {
      return;
    }
    memory_at_ = given.at;
    if (given.name == "--mem") {
      memory_ = size;
    } else if (given.name == "--mem-per-cpu") {
      memory_per_cpu_ = *size;
    } else {
      memory_per_gpu_ = *size;
    }
  }

  void take_count(const GivenOption& given) {
    const std::string_view value = given.value;
    // --nodes takes a range, of which one machine can be at most the lower end.
    const auto count =
        number<std::uint32_t>(given.name == "--nodes" ? value.substr(0, value.find('-')) : value);
    if (!count || *count > kMost) {
      return refuse(given, "a number");
    }
    if (given.name == "--nodes") {
      if (*count > 1) {
        report_.warn(given.at, fmt::format("--nodes {}: berth starts the script on this machine "
                                           "alone",
                                           *count));
      }
      return;
    }
    cpus_at_ = given.at;
    if (given.name == "--cpus-per-task") {
      job_.cpus_per_task = count;
    } else if (given.name == "--cpus-per-gpu") {
      cpus_per_gpu_ = *count;
    } else {
      job_.tasks = count;
      job_.tasks_of_a_node = given.name == "--ntasks-per-node";
      if (*count > 1) {
        report_.warn(given.at, fmt::format("{} {}: the script is started once; what starts its "
                                           "tasks must be in it, such as torchrun",
                                           given.name, *count));
      }
    }
  }

  /// [R][B]:USR1[@120]
  void take_signal(const GivenOption& given) {
    std::string_view value = given.value;
    if (const auto colon = value.find(':'); colon != std::string_view::npos) {
      const auto who = value.substr(0, colon);
      if (who.find_first_not_of("BR") != std::string_view::npos) {
        return refuse(given, "a signal; write for example B:USR1@120");
      }
      value.remove_prefix(colon + 1);
    }
    job_.keys.set("signal", std::string(value), given.at);
    signal_ = given;
    signal_.value = value;
  }

  /// A warning that would be due before the script begins, as where a script for long runs is tried
  /// for a minute: sbatch takes such a script, so it comes halfway.
  void fit_signal() {
    const auto warning = parse_warning(signal_.value);
    if (signal_.value.empty() || !warning || time_ <= Millis(0) || warning->before < time_) {
      return;
    }
    const WarningSignal halfway{warning->signal, time_ / 2};
    report_.warn(signal_.at, fmt::format("--signal: {} is not less than --time, {}; the signal "
                                         "comes {} before the end",
                                         exact_duration(warning->before), exact_duration(time_),
                                         exact_duration(halfway.before)));
    job_.keys.set("signal", format_warning(halfway), signal_.at);
  }

  void take_export(const GivenOption& given) {
    std::vector<std::string> kept;
    bool all = false;
    for (const auto part : split(given.value, ",")) {
      const auto equals = part.find('=');
      if (part == "ALL") {
        all = true;
      } else if (equals != std::string_view::npos) {
        job_.keys.put("env", std::string(part.substr(0, equals)),
                      protect_launch_words(part.substr(equals + 1)), given.at);
      } else if (part != "NONE" && part != "NIL" && !part.empty()) {
        kept.emplace_back(part);
      }
    }
    if (!all) {
      job_.keys.set_list("env_keep", kept, given.at);
    }
  }

  void take_dependency(const GivenOption& given) {
    if (given.value.find('?') != std::string::npos) {
      return ignore(given, ": any one of several dependencies cannot be waited for");
    }
    for (const auto part : split(given.value, ",")) {
      const auto words = split(part, ":");
      const auto kind = words[0] == "afterok"      ? std::optional(After::ok)
                        : words[0] == "afterany"   ? std::optional(After::any)
                        : words[0] == "afternotok" ? std::optional(After::failed)
                                                   : std::nullopt;
      if (!kind || words.size() < 2) {
        report_.warn(given.at, fmt::format("the dependency '{}' is left out; there are afterok:ID, "
                                           "afterany:ID and afternotok:ID",
                                           part));
        continue;
      }
      if (!set_after_kind(job_, *kind, given.at, report_)) {
        return;
      }
      for (std::size_t i = 1; i < words.size(); ++i) {
        if (!follow(words[i])) {
          return refuse(given, fmt::format("a dependency: '{}' is not the id of a job, such as 7, "
                                           "or of a task of an array, such as 7_3",
                                           words[i]));
        }
      }
    }
  }

  /// "7", "7_3". False: it is neither.
  bool follow(std::string_view text) {
    const auto line = text.find('_');
    const auto id = number<std::uint64_t>(text.substr(0, line));
    const auto task = line == std::string_view::npos ? std::nullopt
                                                     : number<std::uint32_t>(text.substr(line + 1));
    if (!id || *id == 0 || (line != std::string_view::npos && !task)) {
      return false;
    }
    if (!task) {
      job_.after.push_back(JobId{*id});
    }
    job_.after_arrays.push_back({JobId{*id}, task});
    return true;
  }

  static constexpr std::uint32_t kMost = 1'000'000;

  ScriptJob& job_;
  const ScriptReport& report_;
  struct AskedGpus {
    std::uint64_t count = 0;
    std::string text;  ///< as it was written
    Position at;
  };
  std::map<std::string, AskedGpus, std::less<>> asked_gpus_;  ///< by option
  std::uint64_t cpus_per_gpu_ = 0;
  std::optional<Bytes> memory_;
  Bytes memory_per_cpu_ = 0;
  Bytes memory_per_gpu_ = 0;
  Millis time_{0};  ///< 0: no limit
  GivenOption signal_;
  Position gpus_at_;
  Position cpus_at_;
  Position memory_at_;
};

}  // namespace

void read_slurm_lines(const std::vector<DirectiveLine>& lines, ScriptJob& job,
                      const ScriptReport& report) {
  static const auto kKnown = [] {
    std::vector<ScriptOption> all(kRead.begin(), kRead.end());
    all.insert(all.end(), kIgnored.begin(), kIgnored.end());
    return all;
  }();
  SlurmReader reader(job, report);
  for (const auto& line : lines) {
    if (!line.slurm) {
      continue;
    }
    job.slurm = true;
    // Its parts have directives of their own, which must not be taken for those of one job.
    if (!line.words.empty() &&
        (line.words[0].text == "hetjob" || line.words[0].text == "packjob")) {
      report.diagnostics.add(line.words[0].at,
                             "heterogeneous jobs are not run: their parts need machines of their "
                             "own; write a script for each part, or one that asks for all of it");
      return;
    }
    for (const auto& given : read_options(line, kKnown, report)) {
      if (std::ranges::find(kIgnored, given.name, &ScriptOption::name) != kIgnored.end()) {
        reader.ignore(given);
      } else {
        reader.take(given);
      }
    }
  }
  if (job.slurm) {
    reader.finish();
  }
}

}  // namespace berth
