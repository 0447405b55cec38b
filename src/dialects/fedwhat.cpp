// `jobs:` with name, config, algorithm, log_path and extra_args (docs/formats/fedwhat.md).

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/content_hash.hpp"
#include "base/utf8.hpp"
#include "dialects/config_seed.hpp"
#include "dialects/dialect.hpp"
#include "dialects/experiment_arguments.hpp"
#include "dialects/shell_text.hpp"
#include "dialects/text_keys.hpp"
#include "jobspec/fingerprint.hpp"
#include "jobspec/values.hpp"
#include "jobspec/yaml_tree.hpp"

namespace berth {
namespace {

constexpr std::string_view kUsualCommand =
    "python test.py --cfp {config} --algo {algorithm} {extra_args}";
constexpr std::uint32_t kUsualConcurrent = 4;
constexpr std::size_t kLongestName = 200;
constexpr std::size_t kLongestTemplate = 64 * 1024;
constexpr std::size_t kMostWarnings = 100;
constexpr unsigned kHashCut = 16;              ///< bits that a file name does without
constexpr std::size_t kMostText = 512 * kMiB;  ///< of commands and derived files

constexpr std::array<std::string_view, 4> kTopKeys = {"jobs", "command", "seed_in", "name"};
constexpr std::array<std::string_view, 5> kJobKeys = {"name", "config", "algorithm", "log_path",
                                                      "extra_args"};
constexpr std::array<std::string_view, 4> kJobWords = {"config", "algorithm", "name", "extra_args"};
/// What the daemon puts in when an attempt starts.
constexpr std::array<std::string_view, 9> kLaunchWords = {"gpu_list", "gpu_count", "gpu_uuids",
                                                          "job_id",   "batch_id",  "uni_id",
                                                          "work_dir", "log_path",  "port"};

const Combination kNoMatrix;

/// Others on a card count by the memory they hold and how busy they keep it, nothing else.
Overrides usual_rules() {
  return {{"min_free_memory", "8000MiB"}, {"max_utilization", "30"}, {"max_wait", "1h"},
          {"strategy", "most_free"},      {"order", "fifo"},         {"foreign.policy", "share"}};
}

std::uint64_t hash_of(std::string_view content) {
  ContentHash hash;
  hash.add(content);
  return hash.value();
}

/// One entry of `jobs`.
struct Experiment {
  std::string name;
  std::string config;  ///< as it is given to the command
  std::string algorithm;
  std::string log_path;  ///< empty: berth keeps the log
  ExtraArguments extra;
};

class FedWhatReader {
 public:
  FedWhatReader(const Source& source, const DialectOptions& options, Diagnostics& diagnostics)
      : source_(source),
        diagnostics_(diagnostics),
        command_(options.command_template),
        seed_in_config_(options.seed_in_config),
        base_(source.base_dir.lexically_normal()) {}

  JobFile read(const Node& root) {
    if (root.kind != Node::Kind::map) {
      diagnostics_.add(root.at, fmt::format("a FedWhat job file is a map with a list 'jobs'; this "
                                            "is {}",
                                            describe(root.kind)));
      return {};
    }
    start();
    check_keys(root, kTopKeys);
    read_head(root);
    const Node* jobs = root.find("jobs");
    if (jobs == nullptr || jobs->kind != Node::Kind::list || jobs->items.empty()) {
      diagnostics_.add(jobs == nullptr ? root.at : jobs->at,
                       "'jobs' must be a list of experiments, each with 'name', 'config' and "
                       "'algorithm'");
      return {};
    }
    for (const NodePtr& item : jobs->items) {
      read_job(*item);
      if (diagnostics_.full() || text_ > kMostText) {
        break;
      }
    }
    for (const auto& [path, content] : derived_) {
      out_.derived.push_back({path, content});
    }
    return std::move(out_);
  }

 private:
  void start() {
    const std::string stem = std::filesystem::path(source_.file_name).stem().string();
    out_.name = stem;
    out_.max_concurrent = kUsualConcurrent;
    out_.rules = usual_rules();
    out_.skip_done = true;
    out_.traits.state_dir = (base_ / "logs").string();
    out_.traits.log = fmt::format("scheduler_{}.log", stem);
    std::ranges::replace(out_.traits.log, ' ', '_');
  }

  void check_keys(const Node& map, std::span<const std::string_view> keys) {
    for (const Node::Entry& entry : map.entries) {
      if (std::ranges::find(keys, entry.key) == keys.end()) {
        diagnostics_.add(entry.key_at,
                         fmt::format("unknown key '{}'{}", entry.key, key_hint(entry.key, keys)));
      }
    }
  }

  void read_head(const Node& root) {
    if (const Node* name = root.find("name"); name != nullptr) {
      out_.name = text(*name, "name");
      check_name(*name, out_.name);
    }
    const Node* command = root.find("command");
    if (command != nullptr && command_.empty()) {
      command_ = text(*command, "command");
      command_at_ = command->at;
    }
    while (command_.ends_with('\n') || command_.ends_with(' ')) {
      command_.pop_back();
    }
    if (command_.empty()) {
      command_ = kUsualCommand;
    }
    if (command_.size() > kLongestTemplate) {
      diagnostics_.add(command_at_,
                       fmt::format("the command is longer than {}", format_size(kLongestTemplate)));
      command_ = kUsualCommand;
    }
    if (const Node* seed_in = root.find("seed_in"); seed_in != nullptr) {
      const std::string where = text(*seed_in, "seed_in");
      if (where != "config" && where != "command") {
        diagnostics_.add(seed_in->at,
                         fmt::format("'seed_in' is 'command' or 'config', not '{}'", where));
      }
      seed_in_config_ = seed_in_config_ || where == "config";
    }
  }

  std::string text(const Node& node, std::string_view what) {
    return read_text(node, what, kNoMatrix, diagnostics_).value_or("");
  }

  void check_name(const Node& node, std::string_view name) {
    const bool clean = std::ranges::none_of(
        name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    if (name.empty() || !clean || !is_utf8(name) || name.size() > kLongestName) {
      diagnostics_.add(node.at, fmt::format("a name has 1 to {} bytes of UTF-8 and no control "
                                            "characters",
                                            kLongestName));
    }
  }

  /// A key that every job has.
  std::string needed(const Node& job, std::string_view key) {
    const Node* node = job.find(key);
    if (node == nullptr) {
      const bool misspelt = std::ranges::any_of(job.entries, [&](const Node::Entry& entry) {
        return std::ranges::find(kJobKeys, entry.key) == kJobKeys.end() &&
               closest(entry.key, kJobKeys) == key;
      });
      if (!misspelt) {
        diagnostics_.add(job.at, fmt::format("this job has no '{}'", key));
      }
      return {};
    }
    std::string value = text(*node, key);
    if (value.empty() && node->kind == Node::Kind::scalar) {
      diagnostics_.add(node->at, fmt::format("'{}' must not be empty", key));
    }
    return value;
  }

  void read_job(const Node& node) {
    if (node.kind != Node::Kind::map) {
      diagnostics_.add(node.at,
                       fmt::format("a job is a map with 'name', 'config' and 'algorithm'; this is "
                                   "{}",
                                   describe(node.kind)));
      return;
    }
    check_keys(node, kJobKeys);
    Experiment job{needed(node, "name"), needed(node, "config"), needed(node, "algorithm"), {}, {}};
    if (const Node* name = node.find("name"); name != nullptr && !job.name.empty()) {
      check_name(*name, job.name);
      const auto [seen, fresh] = names_.emplace(job.name, name->at.line);
      if (!fresh) {
        diagnostics_.add(name->at, fmt::format("the name '{}' is taken, by the job in line {}",
                                               job.name, seen->second));
      }
    }
    if (const Node* log = node.find("log_path"); log != nullptr && log->kind != Node::Kind::null) {
      job.log_path = text(*log, "log_path");
      check_log(*log, job.log_path);
    }
    if (const Node* extra = node.find("extra_args"); extra != nullptr) {
      job.extra = ExtraArguments::read(*extra, diagnostics_);
    }
    if (!job.name.empty() && !job.config.empty() && !job.algorithm.empty()) {
      add_job(node, std::move(job));
    }
  }

  void check_log(const Node& node, const std::string& path) {
    if (path.empty() || absolute(path).ends_with('/')) {
      diagnostics_.add(node.at, fmt::format("'log_path' names a file, and '{}' is none", path));
    } else if (!logs_.insert(path).second) {
      warn(node.at, fmt::format("more than one job writes to the log '{}'", path));
    }
  }

  void add_job(const Node& node, Experiment job) {
    const Node& config = *node.find("config");
    const std::string* content = content_of(config, job.config);
    if (content == nullptr) {
      return;
    }
    JobSpec spec;
    spec.name = job.name;
    spec.payload.params = job.extra.texts();
    spec.payload.params["config"] = job.config;
    spec.payload.params["algorithm"] = job.algorithm;
    if (seed_in_config_ && job.extra.find("seed") != nullptr) {
      content = derive(config, job, *content);
    }
    if (content == nullptr) {
      return;
    }
    spec.payload.cwd = base_.string();
    spec.payload.log = job.log_path.empty() ? "" : absolute(job.log_path);
    spec.payload.commands = {{true, {command_of(node, job)}}};
    if (spec.payload.commands[0].argv[0].empty()) {
      diagnostics_.add(node.at, fmt::format("the command of the job '{}' is empty", job.name));
    }
    // It may wait for long, and the file be edited meanwhile: what runs under this fingerprint, and
    // is left out the next time, has to be what the fingerprint is of.
    spec.payload.extra_env = {
        fmt::format("{}{:016x} {}", kUnchangedVariable, hash_of(*content), absolute(job.config))};
    spec.payload.fingerprint = fingerprint(spec, *content);
    text_ += spec.payload.commands[0].argv[0].size();
    if (text_ > kMostText) {
      diagnostics_.add(node.at, fmt::format("the commands and configs are longer than {}; split "
                                            "the file",
                                            format_size(kMostText)));
    }
    out_.jobs.push_back(std::move(spec));
  }

  [[nodiscard]] std::string absolute(const std::string& path) const {
    return (base_ / path).lexically_normal().string();
  }

  /// Of a config, which is read once however many jobs use it.
  const std::string* content_of(const Node& node, const std::string& config) {
    const std::string path = absolute(config);
    auto found = configs_.find(path);
    if (found == configs_.end()) {
      found = configs_.emplace(path, source_.read(path)).first;
    }
    if (const Result<std::string>& content = found->second; !content) {
      diagnostics_.add(
          node.at, content.error().code == ErrorCode::not_found
                       ? fmt::format("the config '{}' cannot be read; it was looked for at '{}'",
                                     config, path)
                       : fmt::format("the config '{}': {}", config, content.error().message));
    }
    return found->second ? &*found->second : nullptr;
  }

  /// The seed goes into a copy, and the copy is what the command is told of.
  const std::string* derive(const Node& node, Experiment& job, const std::string& content) {
    const ExtraArgument& seed = *job.extra.find("seed");
    const std::string value = seed.text();
    const bool plain = !value.empty() && std::ranges::all_of(value, [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
             c == '-' || c == '_' || c == '.' || c == '+';
    });
    if (seed.kind != ExtraArgument::Kind::value || !plain) {
      diagnostics_.add(seed.at, fmt::format("'seed' goes into a config and its name, so it must be "
                                            "a number, not '{}'",
                                            value));
      return nullptr;
    }
    auto changed = with_seed(content, value);
    if (!changed) {
      diagnostics_.add(node.at, fmt::format("the seed cannot be put into the config '{}': {}",
                                            job.config, changed.error().message));
      return nullptr;
    }
    const std::filesystem::path config(job.config);
    // Named after its content, so that no later run puts another under those that still wait.
    job.config = (config.parent_path() / "temp" /
                  fmt::format("{}_seed{}_{:012x}.yaml", config.stem().string(), value,
                              hash_of(*changed) >> kHashCut))
                     .string();
    job.extra.put_into_config("seed");
    text_ += changed->size();
    const auto [copy, fresh] = derived_.try_emplace(absolute(job.config), *changed);
    if (!fresh && copy->second != *changed) {
      diagnostics_.add(
          node.at, fmt::format("another config becomes '{}', too; rename one of them", job.config));
      return nullptr;
    }
    return &copy->second;
  }

  std::string command_of(const Node& node, const Experiment& job) {
    auto names = placeholders_of(command_);
    const bool has_rest = names.contains("extra_args");
    for (const std::string_view own : kJobWords) {
      names.erase(std::string(own));  // these are the job's, not options of the same name
    }
    const std::vector<std::string> rest = job.extra.words(names);
    if (!has_rest && !rest.empty()) {
      diagnostics_.add(node.at, fmt::format("the command does not mention {{extra_args}}, and the "
                                            "job '{}' has some",
                                            job.name));
    }
    return fill_in(command_, [&](std::string_view word) -> std::optional<std::vector<std::string>> {
      if (word == "config" || word == "algorithm" || word == "name") {
        return {{word == "config" ? job.config : word == "name" ? job.name : job.algorithm}};
      }
      if (word == "extra_args") {
        return rest;
      }
      if (const ExtraArgument* argument = job.extra.find(word); argument != nullptr) {
        return {{argument->text()}};
      }
      check_placeholder(node, word, job);
      return std::nullopt;
    });
  }

  void check_placeholder(const Node& node, std::string_view word, const Experiment& job) {
    if (word == "seed") {
      diagnostics_.add(node.at, fmt::format("the command mentions {{seed}}, and the job '{}' has "
                                            "none in 'extra_args'",
                                            job.name));
      return;
    }
    const auto meant = closest(word, kJobWords);
    if (!meant.empty() && std::ranges::find(kLaunchWords, word) == kLaunchWords.end()) {
      diagnostics_.add(command_at_, fmt::format("{{{}}} in the command stands for nothing; did you "
                                                "mean {{{}}}?",
                                                word, meant));
    }
  }

  void warn(Position at, std::string_view message) {
    if (out_.warnings.size() >= kMostWarnings) {
      return;
    }
    out_.warnings.push_back(
        fmt::format("{}:{}:{}: {}", source_.file_name, at.line, at.column, message));
  }

  const Source& source_;
  Diagnostics& diagnostics_;
  std::string command_;
  bool seed_in_config_;
  std::filesystem::path base_;
  Position command_at_;
  JobFile out_;
  std::map<std::string, std::uint32_t> names_;  ///< and the line of each
  std::set<std::string> logs_;
  std::map<std::string, Result<std::string>> configs_;
  std::map<std::string, std::string> derived_;
  std::size_t text_ = 0;
};

}  // namespace

bool looks_like_fedwhat(std::string_view text) {
  constexpr std::array<std::string_view, 4> kMarks = {"config", "algorithm", "log_path",
                                                      "extra_args"};
  text = without_mark(text);
  if (has_version(text) || !has_key(text, "jobs")) {
    return false;
  }
  if (std::ranges::count_if(kMarks, [&](auto mark) { return has_key(text, mark); }) >= 2) {
    return true;
  }
  // One that nobody else has will do: what is missing beside it should be told in FedWhat's words.
  return (has_key(text, "algorithm") || has_key(text, "extra_args")) && !has_key(text, "run");
}

Parsed parse_fedwhat(const Source& source, const DialectOptions& options) {
  Diagnostics diagnostics(source.file_name);
  JobFile file;
  if (const auto root = parse_yaml(without_mark(source.text), diagnostics); root != nullptr) {
    file = FedWhatReader(source, options, diagnostics).read(*root);
  }
  if (diagnostics.empty()) {
    return file;
  }
  return std::unexpected(diagnostics.take());
}

}  // namespace berth
