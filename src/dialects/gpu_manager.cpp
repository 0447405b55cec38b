// gpu_manager_config.json (docs/formats/gpu-manager.md): one program and how many GPUs it may have.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "dialects/dialect.hpp"
#include "dialects/gpu_manager_keys.hpp"
#include "dialects/json_comments.hpp"
#include "dialects/manager_task.hpp"
#include "dialects/shell_text.hpp"
#include "jobspec/entry_checks.hpp"
#include "jobspec/fingerprint.hpp"
#include "jobspec/keys.hpp"
#include "jobspec/values.hpp"

namespace berth {
namespace {

constexpr std::size_t kLongestName = 200;
constexpr std::size_t kLongestVariable = 1024;
constexpr double kLongestInterval = 3600;  ///< seconds
// What holds for a task that is started by hand, where the file says nothing else.
constexpr std::string_view kTaskPrefix = "NDFS_";
constexpr std::uint32_t kTotalGpus = 8;
constexpr std::uint32_t kManualGpus = 6;

const Combination kNoMatrix;

/// A number of GPUs that the file allows, and what it is called there.
struct Bound {
  std::string_view key;
  std::uint32_t most = 0;
  Position at;
  bool of_one_task = true;  ///< a larger one than the smallest is a contradiction
  bool usual = false;       ///< the file says nothing of it
};

class ManagerReader {
 public:
  /// `task`: the file is read for it; null: it is run as it is.
  ManagerReader(const Source& source, std::string name, const ManagerTask* task,
                Diagnostics& diagnostics)
      : source_(source), name_(std::move(name)), task_(task), diagnostics_(diagnostics) {}

  JobFile read(const Node& root) {
    if (root.kind != Node::Kind::map) {
      diagnostics_.add(root.at, fmt::format("a GPU manager configuration is an object such as "
                                            "{{\"program_template\": …}}, this is {}",
                                            describe(root.kind)));
      return {};
    }
    const std::filesystem::path base = source_.base_dir.lexically_normal();
    check_manager_keys(root, diagnostics_,
                       [this](Position at, const std::string& text) { warn(at, text); });
    job_.payload.cwd = base.string();
    read_name(root);
    read_interval(root);
    read_gpus(root);
    read_program(root);
    read_log(root, base);
    out_.jobs.push_back(std::move(job_));
    for (const auto& [at, message] : warnings_) {
      out_.warnings.push_back(
          fmt::format("{}:{}:{}: {}", source_.file_name, at.line, at.column, message));
    }
    return std::move(out_);
  }

 private:
  void warn(Position at, std::string_view message) { warnings_.emplace(at, message); }

  std::string text(const Node& node, std::string_view what) {
    return read_text(node, what, kNoMatrix, diagnostics_).value_or("");
  }

  void read_name(const Node& root) {
    const std::string stem = std::filesystem::path(source_.file_name).stem().string();
    const Node* node = root.find("job_prefix");
    const std::string prefix = node != nullptr    ? text(*node, "job_prefix")
                               : task_ != nullptr ? std::string(kTaskPrefix)
                                                  : "";
    const std::string& own = name_.empty() ? stem : name_;
    out_.name = own;
    job_.name = own.starts_with(prefix) ? own : prefix + own;
    const bool clean = std::ranges::none_of(
        job_.name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    if (job_.name.empty() || !clean || !is_utf8(job_.name) || job_.name.size() > kLongestName) {
      diagnostics_.add(node != nullptr ? node->at : root.at,
                       fmt::format("'{}' cannot name a job: at most {} bytes of UTF-8, no control "
                                   "characters; --name gives another",
                                   to_utf8(job_.name).substr(0, 40), kLongestName));
    }
  }

  void read_interval(const Node& root) {
    const Node* node = root.find("monitor_interval");
    if (node == nullptr) {
      return;
    }
    const std::string value = text(*node, "monitor_interval");
    double seconds = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
    if (error != std::errc{} || end != value.data() + value.size() || !(seconds > 0) ||
        seconds > kLongestInterval) {
      diagnostics_.add(node->at, fmt::format("'monitor_interval' is a number of seconds, more than "
                                             "0 and at most {}, not '{}'",
                                             kLongestInterval, value));
      return;
    }
    out_.rules["sample_age_max"] =
        fmt::format("{}ms", std::max<std::int64_t>(1, std::llround(seconds * 1000)));
  }

  std::optional<std::uint32_t> count(const Node* map, std::string_view key, std::string_view shown,
                                     Position& at) {
    const Node* node = map != nullptr && map->kind == Node::Kind::map ? map->find(key) : nullptr;
    if (node == nullptr) {
      return std::nullopt;
    }
    at = node->at;
    const auto value = read_integer(*node, shown, 1, kMostGpus, kNoMatrix, diagnostics_);
    return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
  }

  void read_gpus(const Node& root) {
    const Node* scaling = root.find("scaling");
    std::vector<Bound> bounds;
    const auto add = [&](const Node* map, std::string_view key, std::string_view shown, bool task) {
      Bound bound{shown, 0, {}, task, false};
      if (const auto most = count(map, key, shown, bound.at)) {
        bound.most = *most;
        bounds.push_back(bound);
      }
    };
    add(&root, "max_gpus_per_task", "max_gpus_per_task", true);
    add(scaling, "max_gpus", "scaling.max_gpus", true);
    add(&root, "max_total_gpus", "max_total_gpus", false);
    add(&root, "max_manual_gpus", "max_manual_gpus", false);
    Position min_at;
    GpuCount gpus;
    gpus.min = count(scaling, "min_gpus", "scaling.min_gpus", min_at).value_or(1);
    gpus.max = gpus.min;
    if (!bounds.empty()) {
      gpus.max = smallest(bounds);
    }
    if (gpus.min > gpus.max) {
      warn(min_at, fmt::format("scaling.min_gpus is {}, and at most {} may be had: {} is taken",
                               gpus.min, gpus.max, gpus.max));
      gpus.min = gpus.max;
    }
    const bool grows = is_on(&root, "auto_scale") && is_on(scaling, "enabled");
    if (!grows) {
      gpus.max = gpus.min;
    }
    if (task_ != nullptr) {
      gpus = for_task(root, *task_, bounds, gpus);
    } else if (const Node* total = root.find("max_total_gpus"); total != nullptr) {
      warn(total->at,
           "max_total_gpus holds for this run; 'berth set max_gpu=N' limits all of them together");
    }
    tell_about_scaling(root, gpus);
    job_.request.gpus = gpus;
  }

  /// What a task may have of the GPUs that tasks have together; a mistake if that is too little.
  GpuCount for_task(const Node& root, const ManagerTask& task, std::vector<Bound> bounds,
                    GpuCount gpus) {
    const auto usual = [&](std::string_view key, std::uint32_t most) {
      if (std::ranges::find(bounds, key, &Bound::key) == bounds.end()) {
        bounds.push_back({key, most, root.at, false, true});
      }
    };
    usual("max_total_gpus", kTotalGpus);
    usual("max_manual_gpus", kManualGpus);
    if (task.gpus) {
      const Bound& least = *std::ranges::min_element(bounds, {}, &Bound::most);
      if (*task.gpus > least.most) {
        diagnostics_.add(least.at,
                         fmt::format("'{}' wants {} GPUs, and {} is {}{}; ask for fewer or {} the "
                                     "key",
                                     task.name, *task.gpus, least.key, least.most,
                                     least.usual ? " where the file says nothing" : "",
                                     least.usual ? "give" : "change"));
        return gpus;
      }
      gpus = {*task.gpus, *task.gpus};
    }
    const Bound& total = *std::ranges::find(bounds, "max_total_gpus", &Bound::key);
    const std::uint32_t left = total.most - std::min(total.most, task.held);
    if (gpus.min > left) {
      diagnostics_.add(total.at, fmt::format("'{}' wants {} of the {} GPUs that max_total_gpus "
                                             "allows, and other tasks have {}; release one of them",
                                             task.name, gpus.min, total.most, task.held));
    }
    gpus.max = std::max(gpus.min, std::min(gpus.max, left));
    return gpus;
  }

  std::uint32_t smallest(const std::vector<Bound>& bounds) {
    const Bound& least = *std::ranges::min_element(bounds, {}, &Bound::most);
    for (const Bound& bound : bounds) {
      if (bound.of_one_task && bound.most > least.most) {
        warn(bound.at, fmt::format("{} is {}, and {} is {}: the smaller is taken, {}", bound.key,
                                   bound.most, least.key, least.most, least.most));
      }
    }
    return least.most;
  }

  /// What is not said is on, as there.
  static bool is_on(const Node* map, std::string_view key) {
    const Node* node = map != nullptr && map->kind == Node::Kind::map ? map->find(key) : nullptr;
    return node == nullptr || node->text != "false";
  }

  void tell_about_scaling(const Node& root, GpuCount gpus) {
    const Node* scale = root.find("auto_scale");
    const Node* scaling = root.find("scaling");
    if ((scale == nullptr && scaling == nullptr) || gpus.min == gpus.max) {
      return;
    }
    warn(scale != nullptr ? scale->at : scaling->at,
         fmt::format("{}: the program gets as many GPUs as are free when it starts, {} to {}, and "
                     "keeps them; growing and shrinking while it runs comes with leases, which "
                     "this version does not have",
                     scale != nullptr ? "auto_scale" : "scaling", gpus.min, gpus.max));
  }

  void read_program(const Node& root) {
    const Node* program = root.find("program_template");
    if (program == nullptr && !diagnostics_.empty()) {
      return;  // what has been said of a part of a configuration comes first
    }
    if (program == nullptr || program->kind != Node::Kind::map) {
      diagnostics_.add(program == nullptr ? root.at : program->at,
                       "'program_template' must be an object with 'command': there is nothing to "
                       "run without it");
      return;
    }
    const Node* command = program->find("command");
    if (command != nullptr && command->kind == Node::Kind::scalar && !command->quoted) {
      diagnostics_.add(command->at, fmt::format("'program_template.command' is a text in quotes, "
                                                "not {}",
                                                command->text.substr(0, kLongestName)));
      return;
    }
    std::string line = command != nullptr ? text(*command, "program_template.command") : "";
    if (line.find_first_not_of(" \t\r\n") == std::string::npos) {
      diagnostics_.add(command != nullptr ? command->at : program->at,
                       "'program_template.command' is missing or empty");
      return;
    }
    if (const Node* arguments = program->find("args"); arguments != nullptr) {
      read_arguments(*arguments, line);
    }
    job_.payload.commands = {{true, {std::move(line)}}};
    if (const Node* variables = program->find("env_vars"); variables != nullptr) {
      read_variables(*variables);
    }
  }

  void read_arguments(const Node& node, std::string& line) {
    if (node.kind != Node::Kind::list) {
      diagnostics_.add(node.at, fmt::format("'program_template.args' is a list, this is {}",
                                            describe(node.kind)));
      return;
    }
    for (const NodePtr& item : node.items) {
      line += " " + quote_word(text(*item, "program_template.args"));
    }
  }

  void read_variables(const Node& node) {
    if (node.kind != Node::Kind::map) {
      diagnostics_.add(node.at, fmt::format("'program_template.env_vars' is an object, this is {}",
                                            describe(node.kind)));
      return;
    }
    for (const Node::Entry& entry : node.entries) {
      if (entry.key.empty() || entry.key.size() > kLongestVariable ||
          entry.key.find_first_of(std::string_view("=\0", 2)) != std::string::npos) {
        diagnostics_.add(entry.key_at, fmt::format("'{}' cannot name a variable",
                                                   entry.key.substr(0, kLongestName)));
        continue;
      }
      const std::string value =
          entry.value->kind == Node::Kind::null ? "" : text(*entry.value, entry.key);
      if (entry.key == "CUDA_VISIBLE_DEVICES" && value.find('{') == std::string::npos) {
        warn(entry.key_at,
             "CUDA_VISIBLE_DEVICES is set by berth to the GPUs the job is given; this value is not "
             "heeded, write {gpu_list} to say the same");
        continue;
      }
      job_.payload.extra_env.push_back(fmt::format("{}={}", entry.key, value));
    }
  }

  void read_log(const Node& root, const std::filesystem::path& base) {
    const Node* logging = root.find("logging");
    const Node* file =
        logging != nullptr && logging->kind == Node::Kind::map ? logging->find("file") : nullptr;
    const std::filesystem::path log(file != nullptr ? text(*file, "logging.file")
                                                    : "gpu_manager.log");
    if (!log.has_filename()) {
      diagnostics_.add(file->at, "'logging.file' names a file");
      return;
    }
    out_.traits.state_dir = (base / log).lexically_normal().parent_path().string();
    out_.traits.log = log.filename().string();
  }

  const Source& source_;
  std::string name_;  ///< of the job; empty: that of the file
  const ManagerTask* task_;
  Diagnostics& diagnostics_;
  JobFile out_;
  JobSpec job_;
  std::set<std::pair<Position, std::string>> warnings_;  ///< by place
};

/// The tree is read as YAML, which JSON is a part of; people who write JSON should not be told so.
std::vector<Diagnostic> in_words_of_json(std::vector<Diagnostic> diagnostics) {
  constexpr std::string_view kYaml = "not valid YAML";
  constexpr std::string_view kHint = "; inside [ ] and { } quote texts that have braces";
  for (Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.message.starts_with(kYaml)) {
      diagnostic.message.replace(0, kYaml.size(), "not valid JSON");
      if (diagnostic.message.ends_with(kHint)) {
        diagnostic.message.resize(diagnostic.message.size() - kHint.size());
      }
    }
  }
  return diagnostics;
}

Parsed parse_manager(const Source& source, const std::string& name, const ManagerTask* task) {
  Diagnostics diagnostics(source.file_name);
  const std::string plain = blank_comments(without_mark(source.text), diagnostics);
  JobFile file;
  check_brackets(plain, diagnostics);
  const auto root = diagnostics.empty() ? parse_yaml(plain, diagnostics) : nullptr;
  if (root != nullptr) {
    file = ManagerReader(source, name, task, diagnostics).read(*root);
  }
  if (diagnostics.empty()) {
    return file;
  }
  return std::unexpected(in_words_of_json(diagnostics.take()));
}

}  // namespace

bool looks_like_gpu_manager(std::string_view text) {
  text = without_mark(text);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || (text[first] != '{' && text[first] != '/')) {
    return false;
  }
  const auto keys = top_keys(text);
  return std::ranges::any_of(keys, is_manager_key) &&
         std::ranges::none_of(
             keys, [](const std::string& key) { return key == "jobs" || key == "version"; });
}

Parsed parse_gpu_manager(const Source& source, const DialectOptions& options) {
  return parse_manager(source, options.name, nullptr);
}

Parsed parse_manager_task(const Source& source, const ManagerTask& task) {
  Parsed file = parse_manager(source, task.name, &task);
  if (file) {
    file->traits.dialect = to_string(Dialect::gpu_manager);
    file->jobs.at(0).payload.fingerprint = fingerprint(file->jobs.at(0));
  }
  return file;
}

}  // namespace berth
