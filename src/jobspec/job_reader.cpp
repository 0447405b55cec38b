#include "jobspec/job_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <memory>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "core/rule_table.hpp"
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

/// The ways to say when a job may start.
constexpr std::array kStartKeys = {JobKey::start_at, JobKey::at, JobKey::in};

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
      if (key == JobKey::rules) {
        read_rules(context_.defaults.rules(), RuleScope::any, combination_, spec_.request.rules,
                   diagnostics_);
        read_rules(own.rules(), RuleScope::any, combination_, spec_.request.rules, diagnostics_);
        continue;
      }
      const auto* inherited = context_.defaults.get(key);
      if (key == JobKey::env && inherited != nullptr && inherited != own.get(key)) {
        read_env(*inherited);  // the job's own are put on top, name by name
      }
      if (const auto* node = begins_later(own, key); node != nullptr) {
        read_key(key, *node);
      }
    }
    check_gpu_memory(own);
    check_signal(own);
    return std::move(spec_);
  }

 private:
  /// The value of a key. A job that says itself when it starts inherits no other way to say it.
  const Node* begins_later(const JobKeys& own, JobKey key) const {
    const bool says_when =
        std::ranges::any_of(kStartKeys, [&](JobKey start) { return own.get(start) != nullptr; });
    const bool start = std::ranges::find(kStartKeys, key) != kStartKeys.end();
    return start && says_when ? own.get(key) : context_.get(own, key);
  }

  void read_key(JobKey key, const Node& node) {
    const auto& info = kJobKeys[static_cast<std::size_t>(key)];
    const auto what = info.name;
    switch (key) {
      case JobKey::name:
      case JobKey::matrix:
      case JobKey::after:
      case JobKey::after_any:
      case JobKey::after_failed:
      case JobKey::rules:
        return;  // of the file, not of the instance, or read as a whole
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
      case JobKey::env_keep:
        return read_env_keep(node);
      case JobKey::work_dir:
        if (const auto path = read_path(node, what, context_.base_dir)) {
          spec_.payload.work_dir = *path;
        }
        return;
      case JobKey::after_ids:
        return read_after_ids(node);
      case JobKey::params:
        return read_params(node);
      case JobKey::fingerprint:
        return read_fingerprint(node);
      case JobKey::log:
        if (const auto path = read_path(node, what, spec_.payload.cwd)) {
          spec_.payload.log = *path;
        }
        return;
      case JobKey::linger:
        spec_.payload.linger = flag(node, what).value_or(spec_.payload.linger);
        return;
      case JobKey::signal:
        return read_signal(node);
      case JobKey::requeue:
        if (const auto requeue = flag(node, what)) {
          spec_.request.rules["retry_config.requeue_on_timeout"] = *requeue ? "true" : "false";
        }
        return;
      case JobKey::start_at:
      case JobKey::at:
        spec_.start_at = read_moment(node, what, context_.now, combination_, diagnostics_)
                             .value_or(spec_.start_at);
        return;
      case JobKey::in:
        spec_.start_at = context_.now + duration(node, what, Millis(0));
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

  std::optional<bool> flag(const Node& node, std::string_view what) {
    return read_flag(node, what, combination_, diagnostics_);
  }

  enum class Reads : std::uint8_t { kernel, bash };

  /// A word of a command, for who reads it: a text that the kernel will take.
  std::optional<std::string> word(const Node& node, Reads reads) {
    std::optional<std::string> word;
    if (reads == Reads::bash && node.kind == Node::Kind::scalar) {
      word = substitute_in_shell(node.text, combination_);
    }
    if (!word || word->find('\0') != std::string::npos) {
      word = text(node, "run");  // which says what is wrong
    }
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
    auto command = word(node, Reads::bash);
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
      if (auto argument = word(*item, Reads::kernel)) {
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

  /// A text or a list of texts.
  std::vector<std::string> names(const Node& node, std::string_view what) {
    std::vector<std::string> out;
    const auto add = [&](const Node& item) {
      if (auto name = text(item, what)) {
        out.push_back(std::move(*name));
      }
    };
    if (node.kind == Node::Kind::list) {
      std::ranges::for_each(node.items, [&](const NodePtr& item) { add(*item); });
    } else {
      add(node);
    }
    return out;
  }

  /// The names alone; their values are the submitter's.
  void read_env_keep(const Node& node) {
    auto kept = names(node, "env_keep");
    for (const auto& name : kept) {
      if (name.empty() || name.find('=') != std::string::npos) {
        return report(node, fmt::format("'{}' cannot name a variable", name.substr(0, 100)));
      }
    }
    spec_.payload.environment = std::make_shared<const Environment>(std::move(kept));
  }

  void read_after_ids(const Node& node) {
    for (const auto& id_text : names(node, "after_ids")) {
      std::uint64_t id = 0;
      const auto* end = id_text.data() + id_text.size();
      const auto [stop, error] = std::from_chars(id_text.data(), end, id);
      if (error != std::errc{} || stop != end || id == 0) {
        return report(node, fmt::format("'{}' is not the id of a job", id_text));
      }
      spec_.after.push_back(JobId{id});
    }
  }

  void read_params(const Node& node) {
    if (node.kind != Node::Kind::map) {
      return report(node, fmt::format("'params' must be a map such as {{lr: 0.1}}, this is {}",
                                      describe(node.kind)));
    }
    for (const auto& entry : node.entries) {
      if (entry.key.empty() || entry.key.size() > kLongestVariable ||
          entry.key.find('\0') != std::string::npos) {
        diagnostics_.add_once(entry.key_at, "this cannot name a parameter");
        continue;
      }
      if (const auto value = entry.value->kind == Node::Kind::null
                                 ? std::optional(std::string())
                                 : text(*entry.value, entry.key)) {
        spec_.payload.params.insert_or_assign(entry.key, *value);
      }
    }
  }

  void read_fingerprint(const Node& node) {
    constexpr std::size_t kDigits = 16;
    const auto digits = text(node, "fingerprint");
    if (!digits) {
      return;
    }
    const auto* end = digits->data() + digits->size();
    const auto [stop, error] =
        std::from_chars(digits->data(), end, spec_.payload.fingerprint, kDigits);
    if (error != std::errc{} || stop != end || digits->size() != kDigits) {
      report(node, "'fingerprint' has sixteen hexadecimal digits");
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

  void read_signal(const Node& node) {
    Result<WarningSignal> warning = WarningSignal{};
    if (node.kind == Node::Kind::map) {
      const auto* name = node.find("name");
      const auto* before = node.find("before");
      const std::size_t known = (name != nullptr ? 1U : 0U) + (before != nullptr ? 1U : 0U);
      if (name == nullptr || node.entries.size() != known) {
        return report(node,
                      "'signal' has the keys 'name' and 'before', as in "
                      "{name: USR1, before: 2m}");
      }
      const auto signal = text(*name, "name");
      const Millis time =
          before == nullptr ? kUsualWarning : duration(*before, "before", kUsualWarning);
      if (!signal) {
        return;
      }
      warning = make_warning(*signal, time);
    } else if (const auto value = text(node, "signal")) {
      warning = parse_warning(*value);
    } else {
      return;
    }
    if (!warning) {
      return report(node, fmt::format("'signal': {}", warning.error().message));
    }
    spec_.payload.warning = *warning;
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

  /// One that would be due before the job begins finds nobody who could heed it.
  void check_signal(const JobKeys& own) {
    auto& payload = spec_.payload;
    if (payload.warning.signal == 0 || payload.time_limit <= Millis(0) ||
        payload.warning.before < payload.time_limit) {
      return;
    }
    const auto* node = own.get(JobKey::signal);
    node = node != nullptr ? node : own.get(JobKey::time);
    node = node != nullptr ? node : context_.defaults.get(JobKey::signal);
    report(*node,
           fmt::format("'signal' would come {} before the end, and 'time' is {}; it must "
                       "be less",
                       exact_duration(payload.warning.before), exact_duration(payload.time_limit)));
    payload.warning = {};
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
  std::vector<std::string_view> words(kJobKeyNames.begin(), kJobKeyNames.end());
  const auto& rules = rule_words(RuleScope::any);
  words.insert(words.end(), rules.begin(), rules.end());
  return key_hint(word, words);
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
    if (found == kJobKeyNames.end() && names_rules(entry.key)) {
      collect_rules(entry, keys.rules_, diagnostics);
      continue;
    }
    if (found == kJobKeyNames.end()) {
      diagnostics.add(entry.key_at,
                      fmt::format("unknown key '{}'{}", entry.key, job_key_hint(entry.key)));
      continue;
    }
    keys.nodes_[static_cast<std::size_t>(found - kJobKeyNames.begin())] = entry.value.get();
  }
  if (const auto* rules = keys.get(JobKey::rules); rules != nullptr) {
    if (rules->kind != Node::Kind::map) {
      diagnostics.add(rules->at,
                      fmt::format("'rules' must be a map, this is {}", describe(rules->kind)));
    } else {
      collect_rules(*rules, RuleScope::any, {}, keys.rules_, diagnostics);
    }
  }
  const auto begins =
      std::ranges::count_if(kStartKeys, [&](JobKey key) { return keys.get(key) != nullptr; });
  if (begins > 1) {
    diagnostics.add(where.at, "give one of 'start_at', 'at' and 'in'");
  }
  return keys;
}

JobReader::JobReader(const JobKeys& own, const JobContext& context, const Matrix& matrix,
                     Diagnostics& diagnostics)
    : own_(own), context_(context), diagnostics_(diagnostics) {
  static const Combination kNothing;
  const auto rules_vary = [](const JobKeys& keys) {
    return std::ranges::any_of(keys.rules(),
                               [](const RuleNode& rule) { return has_braces(*rule.value); });
  };
  const auto varies = [&](JobKey key) {
    if (key == JobKey::rules) {
      return matrix.declared() && (rules_vary(own) || rules_vary(context.defaults));
    }
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
