#include "jobspec/job_reader.hpp"

#include <algorithm>
#include <charconv>
#include <climits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "jobspec/values.hpp"

namespace berth {
namespace {

/// The longest single string the kernel takes as an argument, less its terminating NUL.
constexpr std::size_t kLongestArgument = 131'071;
/// Keys of YAML in one line go up to 1024 bytes; longer ones could not be written out again.
constexpr std::size_t kLongestVariable = 1000;

/// Words other schedulers use for the same thing; too far off to be found by their letters.
constexpr auto kForeignWords = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"cmd", "run"},
    {"command", "run"},
    {"commands", "run"},
    {"script", "run"},
    {"exec", "run"},
    {"depends", "after"},
    {"depends_on", "after"},
    {"dependencies", "after"},
    {"needs", "after"},
    {"timeout", "time"},
    {"walltime", "time"},
    {"environment", "env"},
    {"workdir", "cwd"},
    {"working_directory", "cwd"},
    {"dir", "cwd"},
    {"output", "log"},
    {"stdout", "log"},
    {"ngpus", "gpus"},
    {"num_gpus", "gpus"},
    {"vram", "gpu_memory"},
    {"cores", "cpus"},
    {"ram", "memory"},
    {"max_retries", "retries"},
    {"parameters", "matrix"},
    {"params", "matrix"},
    {"sweep", "matrix"},
});

std::optional<GpuCount> parse_gpu_count(std::string_view text) {
  const auto number = [](std::string_view part) -> std::optional<std::uint32_t> {
    std::uint32_t value = 0;
    const auto* end = part.data() + part.size();
    const auto [stop, error] = std::from_chars(part.data(), end, value);
    const bool good = error == std::errc{} && stop == end && value <= kMostGpus;
    return good ? std::optional(value) : std::nullopt;
  };
  const auto dots = text.find("..");
  const auto min = number(text.substr(0, dots));
  const auto max = dots == std::string_view::npos ? min : number(text.substr(dots + 2));
  if (!min || !max || *min > *max || (*min == 0 && *max > 0)) {
    return std::nullopt;
  }
  return GpuCount{*min, *max};
}

/// Reads the values of one instance into a JobSpec.
class InstanceReader {
 public:
  InstanceReader(JobSpec start, const JobContext& context, const Combination& combination,
                 Diagnostics& diagnostics)
      : context_(context),
        combination_(combination),
        diagnostics_(diagnostics),
        spec_(std::move(start)) {}

  JobSpec read(const JobKeys& own, std::span<const JobKey> keys) {
    for (const auto key : keys) {
      const auto* inherited = context_.defaults.get(key);
      if (key == JobKey::env && inherited != nullptr && inherited != own.get(key)) {
        read_env(*inherited);  // the job's own are put on top, name by name
      }
      if (const auto* node = context_.get(own, key); node != nullptr) {
        read_key(key, *node);
      }
    }
    check_gpu_memory(own);
    return std::move(spec_);
  }

 private:
  void read_key(JobKey key, const Node& node) {
    const auto& info = kJobKeys[static_cast<std::size_t>(key)];
    const auto what = info.name;
    switch (key) {
      case JobKey::name:
      case JobKey::matrix:
      case JobKey::after:
        return;  // of the file, not of the instance
      case JobKey::run:
        return read_run(node);
      case JobKey::gpus:
        return read_gpus(node);
      case JobKey::gpu_memory:
        spec_.request.gpu_memory = size(node, what);
        return;
      case JobKey::cpus:
        spec_.request.cpus = static_cast<std::uint32_t>(integer(node, info, 0));
        return;
      case JobKey::memory:
        spec_.request.memory = size(node, what).value_or(0);
        return;
      case JobKey::resources:
        spec_.request.resources = read_resources(node, combination_, diagnostics_);
        std::erase_if(spec_.request.resources, [](const auto& item) { return item.second == 0; });
        return;
      case JobKey::queue:
        return read_queue(node);
      case JobKey::priority:
        spec_.priority = static_cast<std::int32_t>(integer(node, info, spec_.priority));
        return;
      case JobKey::retries:
        spec_.retries = static_cast<std::uint32_t>(integer(node, info, 0));
        return;
      case JobKey::time:
        spec_.payload.time_limit = duration(node, what, Millis(0));
        return;
      case JobKey::grace:
        spec_.payload.grace = duration(node, what, spec_.payload.grace);
        return;
      case JobKey::env:
        return read_env(node);
      case JobKey::cwd:
        if (const auto path = read_path(node, what, context_.base_dir)) {
          spec_.payload.cwd = *path;
        }
        return;
      case JobKey::log:
        if (const auto path = read_path(node, what, spec_.payload.cwd)) {
          spec_.payload.log = *path;
        }
        return;
      case JobKey::linger:
        return read_linger(node);
      case JobKey::min_free_memory:
        spec_.request.min_free_memory = size(node, what);
        return;
      case JobKey::max_utilization:
        spec_.request.max_utilization = read_percent(node, what, combination_, diagnostics_);
        return;
    }
  }

  void report(const Node& node, std::string message) {
    diagnostics_.add_once(node.at, std::move(message));
  }

  std::optional<std::string> text(const Node& node, std::string_view what) {
    return read_text(node, what, combination_, diagnostics_);
  }
  std::optional<Bytes> size(const Node& node, std::string_view what) {
    return read_size(node, what, combination_, diagnostics_);
  }
  Millis duration(const Node& node, std::string_view what, Millis otherwise) {
    return read_duration(node, what, combination_, diagnostics_).value_or(otherwise);
  }
  std::int64_t integer(const Node& node, const KeyInfo& info, std::int64_t otherwise) {
    return read_integer(node, info.name, info.min, info.max, combination_, diagnostics_)
        .value_or(otherwise);
  }

  /// A word of a command: a text that the kernel will take.
  std::optional<std::string> word(const Node& node) {
    auto word = text(node, "run");
    if (word && word->size() > kLongestArgument) {
      report(node, fmt::format("this command has {} bytes, and the kernel takes {} in one "
                               "argument; put it into a script",
                               word->size(), kLongestArgument));
      return std::nullopt;
    }
    return word;
  }

  void read_run(const Node& node) {
    if (node.kind == Node::Kind::scalar) {
      return read_shell_command(node, false);
    }
    if (node.kind != Node::Kind::list || node.items.empty()) {
      return report(node, "'run' must be a command or a list of commands");
    }
    for (const auto& item : node.items) {
      if (item->kind == Node::Kind::list) {
        read_argv(*item);
      } else {
        read_shell_command(*item, true);
      }
    }
  }

  void read_shell_command(const Node& node, bool in_list) {
    auto command = word(node);
    if (!command) {
      return;
    }
    const auto first = command->find_first_not_of(" \t\r\n");
    if (first == std::string::npos) {
      return report(node, "this command is empty");
    }
    // [python, train.py, --lr, 1] would run four commands, the third of them "--lr".
    if (in_list && (*command)[first] == '-') {
      return report(node, fmt::format("'{}' would run as a command of its own; one command with "
                                      "its arguments is a list in the list: [[python, train.py]]",
                                      *command));
    }
    spec_.payload.commands.push_back({true, {std::move(*command)}});
  }

  void read_argv(const Node& node) {
    Command command;
    for (const auto& item : node.items) {
      if (auto argument = word(*item)) {
        command.argv.push_back(std::move(*argument));
      }
    }
    if (command.argv.empty() || command.argv.front().empty()) {
      return report(node, "this command is empty");
    }
    spec_.payload.commands.push_back(std::move(command));
  }

  void read_gpus(const Node& node) {
    const auto count_text = text(node, "gpus");
    if (!count_text) {
      return;
    }
    if (const auto count = parse_gpu_count(*count_text)) {
      spec_.request.gpus = *count;
    } else {
      report(node, fmt::format("'gpus' must be a number such as 2, a range such as 1..4, or 0 for "
                               "none, not '{}'",
                               *count_text));
    }
  }

  void read_queue(const Node& node) {
    auto queue = text(node, "queue");
    if (queue && !is_label(*queue)) {
      return report(node, fmt::format("'{}' cannot name a queue", *queue));
    }
    if (queue) {
      spec_.queue = std::move(*queue);
    }
  }

  void read_env(const Node& node) {
    if (node.kind != Node::Kind::map) {
      return report(node, fmt::format("'env' must be a map such as {{NAME: value}}, this is {}",
                                      describe(node.kind)));
    }
    for (const auto& entry : node.entries) {
      if (entry.key.empty() || entry.key.size() > kLongestVariable ||
          entry.key.find_first_of(std::string_view("=\0", 2)) != std::string::npos) {
        diagnostics_.add_once(
            entry.key_at,
            fmt::format("'{}' cannot name a variable", std::string_view(entry.key).substr(0, 100)));
        continue;
      }
      // `NAME:` with nothing behind it is how YAML writes an empty value.
      const auto value = entry.value->kind == Node::Kind::null ? std::optional(std::string())
                                                               : text(*entry.value, entry.key);
      if (!value) {
        continue;
      }
      auto& env = spec_.payload.extra_env;
      const auto prefix = entry.key + "=";
      std::erase_if(env, [&](const std::string& have) { return have.starts_with(prefix); });
      env.push_back(prefix + *value);
    }
  }

  std::optional<std::string> read_path(const Node& node, std::string_view what,
                                       const std::filesystem::path& from) {
    const auto path = text(node, what);
    if (!path) {
      return std::nullopt;
    }
    if (path->empty()) {
      report(node, fmt::format("'{}' is empty", what));
      return std::nullopt;
    }
    if (path->front() == '~') {
      report(node, fmt::format("'{}': '~' is not expanded; write the whole path", what));
      return std::nullopt;
    }
    auto whole = (from / *path).lexically_normal().string();
    if (whole.size() >= PATH_MAX) {
      report(node, fmt::format("'{}' is longer than a path may be, {} bytes", what, PATH_MAX - 1));
      return std::nullopt;
    }
    return whole;
  }

  void read_linger(const Node& node) {
    const auto value = text(node, "linger");
    if (!value) {
      return;
    }
    if (*value != "true" && *value != "false") {
      return report(node, fmt::format("'linger' must be true or false, not '{}'", *value));
    }
    spec_.payload.linger = *value == "true";
  }

  /// A share of no card means nothing; inherited from the defaults it is simply not needed.
  void check_gpu_memory(const JobKeys& own) {
    auto& request = spec_.request;
    if (!request.gpu_memory || (request.gpus.max > 0 && *request.gpu_memory > 0)) {
      return;
    }
    const auto* node = own.get(JobKey::gpu_memory);
    if (request.gpus.max > 0) {
      node = node != nullptr ? node : context_.defaults.get(JobKey::gpu_memory);
      report(*node, "'gpu_memory' must be more than 0; without it the job gets whole cards");
    } else if (node != nullptr) {
      report(*node, "'gpu_memory' needs at least one GPU, and this job has 'gpus: 0'");
    }
    request.gpu_memory.reset();
  }

  const JobContext& context_;
  const Combination& combination_;
  Diagnostics& diagnostics_;
  JobSpec spec_;
};

/// Whether an axis of a matrix could change anything in it.
bool has_braces(const Node& node) {
  return node.text.find('{') != std::string::npos ||
         std::any_of(node.items.begin(), node.items.end(),
                     [](const NodePtr& item) { return has_braces(*item); }) ||
         std::any_of(node.entries.begin(), node.entries.end(),
                     [](const Node::Entry& entry) { return has_braces(*entry.value); });
}

}  // namespace

std::string job_key_hint(std::string_view word) {
  const auto foreign = std::find_if(kForeignWords.begin(), kForeignWords.end(),
                                    [&](const auto& pair) { return pair.first == word; });
  if (foreign != kForeignWords.end()) {
    return fmt::format("; did you mean '{}'?", foreign->second);
  }
  if (word == "<<") {
    return "; YAML merge keys are not read, put what jobs share into 'defaults'";
  }
  return did_you_mean(word, kJobKeyNames);
}

JobKeys JobKeys::read(const Node& where, std::string_view of, Diagnostics& diagnostics) {
  JobKeys keys;
  if (where.kind != Node::Kind::map) {
    diagnostics.add(where.at, fmt::format("{} must be a map of keys such as 'run', this is {}", of,
                                          describe(where.kind)));
    return keys;
  }
  for (const auto& entry : where.entries) {
    const auto found = std::find(kJobKeyNames.begin(), kJobKeyNames.end(), entry.key);
    if (found == kJobKeyNames.end()) {
      diagnostics.add(entry.key_at,
                      fmt::format("unknown key '{}'{}", entry.key, job_key_hint(entry.key)));
      continue;
    }
    keys.nodes_[static_cast<std::size_t>(found - kJobKeyNames.begin())] = entry.value.get();
  }
  return keys;
}

JobReader::JobReader(const JobKeys& own, const JobContext& context, const Matrix& matrix,
                     Diagnostics& diagnostics)
    : own_(own), context_(context), diagnostics_(diagnostics) {
  static const Combination kNothing;
  const auto varies = [&](JobKey key) {
    const auto in = [&](const Node* node) { return node != nullptr && has_braces(*node); };
    return matrix.declared() && (in(context.get(own, key)) ||
                                 (key == JobKey::env && in(context.defaults.get(JobKey::env))));
  };
  std::vector<JobKey> fixed;
  for (std::size_t i = 0; i < kJobKeyNames.size(); ++i) {
    const auto key = static_cast<JobKey>(i);
    // A log is found from where the job runs.
    const bool moves = varies(key) || (key == JobKey::log && varies(JobKey::cwd));
    (moves ? varying_ : fixed).push_back(key);
  }
  common_.request.min_free_memory = context.min_free_memory;
  common_.request.max_utilization = context.max_utilization;
  common_.payload.cwd = context.base_dir.string();
  common_ = InstanceReader(std::move(common_), context, kNothing, diagnostics).read(own, fixed);
}

JobSpec JobReader::read(const Combination& combination) {
  if (varying_.empty()) {
    return common_;
  }
  return InstanceReader(common_, context_, combination, diagnostics_).read(own_, varying_);
}

}  // namespace berth
