#include "jobspec/job_file.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "jobspec/dependencies.hpp"
#include "jobspec/entry_checks.hpp"
#include "jobspec/job_reader.hpp"
#include "jobspec/matrix.hpp"
#include "jobspec/traits_reader.hpp"
#include "jobspec/values.hpp"
#include "jobspec/yaml_tree.hpp"

namespace berth {
namespace {

constexpr std::uint64_t kBeyondCounting = 1'000'000'000'000;
/// Of all commands and names, matrices written out.
constexpr std::size_t kMostText = 512 * kMiB;
constexpr std::size_t kMostWarnings = 100;

const Combination kNoMatrix;

constexpr std::array kAfterKeys = {std::pair{JobKey::after, After::ok},
                                   std::pair{JobKey::after_any, After::any},
                                   std::pair{JobKey::after_failed, After::failed}};

/// Whether `node` has an unknown key that was likely meant to be `key`: one complaint is enough.
bool misspelt(const Node& node, std::string_view key, std::span<const std::string_view> keys) {
  return std::any_of(node.entries.begin(), node.entries.end(), [&](const Node::Entry& entry) {
    return std::find(keys.begin(), keys.end(), entry.key) == keys.end() &&
           (closest(entry.key, keys) == key ||
            job_key_hint(entry.key) == fmt::format("; did you mean '{}'?", key));
  });
}

class FileReader {
 public:
  FileReader(const std::string& file_name, OtherFiles others, Millis now, Diagnostics& diagnostics)
      : file_name_(file_name), others_(std::move(others)), diagnostics_(diagnostics) {
    context_.base_dir = others_.base_dir.lexically_normal();
    context_.now = now;
    out_.name = std::filesystem::path(file_name).stem().string();
  }

  JobFile read(const Node& root) {
    if (root.kind != Node::Kind::map) {
      diagnostics_.add(root.at, fmt::format("a job file starts with 'version: 1' and has a list "
                                            "'jobs'; this is {}{}",
                                            describe(root.kind),
                                            root.kind == Node::Kind::scalar
                                                ? ". A script begins with a line like "
                                                  "'#!/bin/bash', or is named by --dialect script"
                                                : ""));
      return {};
    }
    if (!read_version(root)) {
      return {};
    }
    check_keys(root, kTopKeyNames, true);
    if (const auto* name = root.find("name"); name != nullptr) {
      out_.name = read_text(*name, "name", kNoMatrix, diagnostics_).value_or("");
      check_name(*name, out_.name);
    }
    if (const auto* defaults = root.find("defaults"); defaults != nullptr) {
      context_.defaults = JobKeys::read(*defaults, "'defaults'", diagnostics_);
    }
    if (const auto* rules = root.find("rules"); rules != nullptr) {
      read_rules(*rules);
    }
    if (const auto* queues = root.find("queues"); queues != nullptr) {
      read_queues(*queues);
    }
    if (const auto* files = root.find("files"); files != nullptr) {
      read_traits(*files, context_.base_dir, out_.traits, out_.derived, diagnostics_);
    }
    if (const auto* resume = root.find("resume"); resume != nullptr) {
      out_.skip_done = read_flag(*resume, "resume", kNoMatrix, diagnostics_).value_or(false);
    }
    read_jobs(root);
    return std::move(out_);
  }

 private:
  /// Another version has other keys; complaining about those would only mislead.
  bool read_version(const Node& root) {
    const auto* version = root.find("version");
    if (version == nullptr) {
      if (!misspelt(root, "version", kTopKeyNames)) {
        diagnostics_.add(root.at, "'version' is missing; write 'version: 1'");
      }
      return true;
    }
    if (version->kind == Node::Kind::scalar && version->text == "1") {
      return true;
    }
    diagnostics_.add(
        version->at,
        fmt::format("version '{}' is not known here; this berth reads version 1", version->text));
    return false;
  }

  void check_keys(const Node& node, std::span<const std::string_view> keys, bool top) {
    for (const auto& entry : node.entries) {
      if (std::find(keys.begin(), keys.end(), entry.key) != keys.end()) {
        continue;
      }
      const bool of_a_job = top && std::find(kJobKeyNames.begin(), kJobKeyNames.end(), entry.key) !=
                                       kJobKeyNames.end();
      diagnostics_.add(
          entry.key_at,
          fmt::format("unknown key '{}'{}", entry.key,
                      of_a_job ? "; it belongs to a job, or into 'defaults' for all jobs"
                      : top && names_rules(entry.key) ? "; it belongs into 'rules'"
                      : entry.key == "<<"             ? job_key_hint(entry.key)
                                                      : did_you_mean(entry.key, keys)));
    }
  }

  void check_name(const Node& at, std::string_view name) {
    if (auto problem = name_problem(name); !problem.empty()) {
      diagnostics_.add_once(at.at, std::move(problem));
    }
  }

  void read_rules(const Node& node) {
    if (node.kind != Node::Kind::map) {
      diagnostics_.add(node.at,
                       fmt::format("'rules' must be a map, this is {}", describe(node.kind)));
      return;
    }
    std::vector<RuleNode> rules;
    collect_rules(node, RuleScope::batch, kRuleKeyNames, rules, diagnostics_);
    berth::read_rules(rules, RuleScope::batch, kNoMatrix, out_.rules, diagnostics_);
    if (const auto* most = node.find("max_concurrent"); most != nullptr) {
      out_.max_concurrent = static_cast<std::uint32_t>(
          read_integer(*most, "max_concurrent", 0, kMostConcurrent, kNoMatrix, diagnostics_)
              .value_or(0));
    }
    if (const auto* resources = node.find("resources"); resources != nullptr) {
      out_.resources = read_resources(*resources, kNoMatrix, diagnostics_);
    }
  }

  void read_queues(const Node& node) {
    if (node.kind != Node::Kind::map) {
      diagnostics_.add(node.at, fmt::format("'queues' must be a map such as {{serial: 1}}, this is "
                                            "{}",
                                            describe(node.kind)));
      return;
    }
    for (const auto& entry : node.entries) {
      if (!is_label(entry.key)) {
        diagnostics_.add(entry.key_at, fmt::format("'{}' cannot name a queue", entry.key));
        continue;
      }
      const auto* limit = entry.value.get();
      QueueSpec queue{entry.key, 0};
      if (limit->kind == Node::Kind::map) {
        read_queue_rules(*limit, queue.rules);
        limit = limit->find("limit");
      }
      if (limit != nullptr && limit->kind != Node::Kind::null) {
        queue.limit = static_cast<std::uint32_t>(
            read_integer(*limit, "limit", 0, kMostConcurrent, kNoMatrix, diagnostics_).value_or(0));
      }
      out_.queues.push_back(std::move(queue));
    }
  }

  void read_queue_rules(const Node& node, Overrides& out) {
    std::vector<RuleNode> rules;
    collect_rules(node, RuleScope::any, kQueueKeyNames, rules, diagnostics_);
    if (const auto* map = node.find("rules"); map != nullptr) {
      collect_rules(*map, RuleScope::any, {}, rules, diagnostics_);
    }
    berth::read_rules(rules, RuleScope::any, kNoMatrix, out, diagnostics_);
  }

  void read_jobs(const Node& root) {
    const auto* jobs = root.find("jobs");
    if (jobs == nullptr) {
      if (!misspelt(root, "jobs", kTopKeyNames)) {
        diagnostics_.add(root.at, "'jobs' is missing: a list of jobs, each with 'run'");
      }
      return;
    }
    if (jobs->kind != Node::Kind::list || jobs->items.empty()) {
      diagnostics_.add(jobs->at, "'jobs' must be a list of jobs, each with 'run'");
      return;
    }
    for (const auto& item : jobs->items) {
      if (!read_entry(*item)) {
        return;
      }
    }
    if (!diagnostics_.full()) {
      resolve_dependencies(entries_, out_.jobs, diagnostics_);
    }
    check_resources();
    warn_about_queues();
    warn_about_logs();
    for (const auto& [at, message] : warnings_) {
      out_.warnings.push_back(fmt::format("{}:{}:{}: {}", file_name_, at.line, at.column, message));
    }
  }

  /// One entry of `jobs`, with all its instances. False when it makes no sense to go on.
  bool read_entry(const Node& node) {
    const auto keys = JobKeys::read(node, "a job", diagnostics_);
    if (node.kind != Node::Kind::map) {
      return true;
    }
    const auto get = [&](JobKey key) { return context_.get(keys, key); };
    if (get(JobKey::run) == nullptr && !misspelt(node, "run", kJobKeyNames)) {
      diagnostics_.add(node.at, "this job has no 'run'");
    }
    JobEntry entry;
    entry.first = static_cast<std::uint32_t>(out_.jobs.size());
    read_after(keys, entry);
    const auto* name = get(JobKey::name);
    entry.name_at = name != nullptr ? name->at : node.at;
    entry.name = fmt::format("job-{}", entries_.size() + 1);
    if (name != nullptr) {
      entry.name = read_text(*name, "name", kNoMatrix, diagnostics_).value_or(entry.name);
    }
    if (const auto* matrix = get(JobKey::matrix); matrix != nullptr) {
      entry.matrix = Matrix::read(*matrix, diagnostics_, others_);
    }
    const auto count = entry.matrix.size();
    if (count > kJobFileMostJobs - out_.jobs.size()) {
      // The product may be beyond counting.
      const auto more = std::min(count, kBeyondCounting) + out_.jobs.size();
      diagnostics_.add(
          node.at,
          fmt::format("this makes {}{} jobs in this file, and {} are the most; split "
                      "the file",
                      count > kBeyondCounting ? "more than " : "", more, kJobFileMostJobs));
      return false;
    }
    entry.count = static_cast<std::uint32_t>(count);
    entries_.push_back(std::move(entry));
    return read_instances(node, keys, entries_.back());
  }

  /// What it follows, its own or that of the defaults.
  void read_after(const JobKeys& own, JobEntry& entry) {
    for (const JobKeys* keys : {&own, &std::as_const(context_.defaults)}) {
      for (const auto& [key, kind] : kAfterKeys) {
        const auto* node = keys->get(key);
        if (node == nullptr) {
          continue;
        }
        if (entry.after != nullptr) {
          diagnostics_.add(node->at,
                           "a job has one kind of dependency: give one of 'after', "
                           "'after_any' and 'after_failed'");
          return;
        }
        entry.after = node;
        entry.after_kind = kind;
      }
      if (entry.after != nullptr) {
        break;
      }
    }
    if (entry.after == nullptr || entry.after->kind != Node::Kind::map) {
      return;
    }
    const Node& map = *std::exchange(entry.after, nullptr);
    const auto kind = map.entries.size() == 1 ? after_from(map.entries[0].key) : std::nullopt;
    if (!kind || entry.after_kind != After::ok) {
      diagnostics_.add(map.at,
                       "'after' is a name, a list of names, or one of {ok: …}, {any: …} "
                       "and {failed: …}");
      return;
    }
    entry.after = map.entries[0].value.get();
    entry.after_kind = *kind;
  }

  bool read_instances(const Node& node, const JobKeys& keys, JobEntry& entry) {
    const auto warn_at = [this](Position at, const std::string& message) { warn(at, message); };
    check_placeholders(keys, context_, entry.matrix, diagnostics_, warn_at);
    check_devices(keys, context_, warn_at);
    JobReader reader(keys, context_, entry.matrix, diagnostics_);
    if (const auto wanted = out_.jobs.size() + entry.count; wanted > out_.jobs.capacity()) {
      out_.jobs.reserve(std::max(wanted, out_.jobs.capacity() * 3 / 2));
    }
    for (std::uint32_t i = 0; i < entry.count; ++i) {
      const auto combination = entry.matrix.at(i);
      auto job = reader.read(combination);
      job.after_kind = entry.after_kind;
      job.name = instance_name(entry.name, combination);
      for (const auto& [axis, value] : combination) {
        job.payload.params.insert_or_assign(std::string(axis), std::string(value));
      }
      const auto* name = keys.get(JobKey::name);
      check_name(name != nullptr ? *name : node, job.name);
      text_ += job.name.size();
      for (const auto& command : job.payload.commands) {
        for (const auto& argument : command.argv) {
          text_ += argument.size();
        }
      }
      check_directories(keys, context_, job, others_.lacks_directory, directories_, warn_at);
      out_.jobs.push_back(std::move(job));
      if (text_ > kMostText) {
        diagnostics_.add(node.at, fmt::format("the commands, matrices written out, are longer than "
                                              "{}; split the file",
                                              format_size(kMostText)));
      }
      if (text_ > kMostText || diagnostics_.full()) {
        entry.count = i + 1;
        return false;
      }
    }
    return true;
  }

  /// A job that asks for more than the file itself provides would wait for ever.
  void check_resources() {
    for (const auto& entry : entries_) {
      for (std::uint32_t i = entry.first; i < entry.first + entry.count; ++i) {
        for (const auto& [name, count] : out_.jobs[i].request.resources) {
          const auto total = out_.resources.find(name);
          if (total != out_.resources.end() && count > total->second) {
            diagnostics_.add_once(
                entry.name_at, fmt::format("'{}' needs {} of '{}', and 'rules' says there are {}",
                                           out_.jobs[i].name, count, name, total->second));
          }
        }
      }
    }
  }

  void warn(Position at, std::string_view message) {
    if (warnings_.size() < kMostWarnings) {
      warnings_.emplace(at, message);
    }
  }

  /// The queue may well exist already, so this is no error.
  void warn_about_queues() {
    std::vector<std::string_view> known = {"default"};
    for (const auto& queue : out_.queues) {
      known.push_back(queue.name);
    }
    const auto declared = known;
    for (const auto& entry : entries_) {
      if (out_.queues.empty() || entry.count == 0) {
        continue;
      }
      const auto& queue = out_.jobs[entry.first].queue;
      if (std::find(known.begin(), known.end(), queue) == known.end()) {
        known.push_back(queue);  // said once
        warn(entry.name_at, fmt::format("queue '{}' is not declared under 'queues'{}", queue,
                                        did_you_mean(queue, declared)));
      }
    }
  }

  void warn_about_logs() {
    std::unordered_map<std::string_view, std::size_t> users;
    for (const auto& entry : entries_) {
      for (std::uint32_t i = entry.first; i < entry.first + entry.count; ++i) {
        const auto& log = out_.jobs[i].payload.log;
        if (!log.empty() && ++users[log] == 2) {
          warn(entry.name_at, fmt::format("more than one job writes to the log '{}'", log));
        }
      }
    }
  }

  const std::string& file_name_;
  OtherFiles others_;
  Diagnostics& diagnostics_;
  JobContext context_;
  JobFile out_;
  std::vector<JobEntry> entries_;
  std::set<std::pair<Position, std::string>> warnings_;  // by place, each once
  std::set<std::string> directories_;                    // that have been looked at
  std::size_t text_ = 0;
};

}  // namespace

std::expected<JobFile, std::vector<Diagnostic>> parse_job_file(
    std::string_view text, const std::string& file_name, const std::filesystem::path& base_dir,
    Millis now, const ReadFile& read, const LacksDirectory& lacks_directory) {
  Diagnostics diagnostics(file_name);
  try {
    if (text.size() > kJobFileMostBytes) {
      diagnostics.add(
          {}, fmt::format("this file is larger than {}; split it", format_size(kJobFileMostBytes)));
      return std::unexpected(diagnostics.take());
    }
    JobFile file;
    // Columns are counted without it, here and in render().
    if (const auto root = parse_yaml(without_mark(text), diagnostics); root != nullptr) {
      file = FileReader(file_name, {base_dir, read, lacks_directory}, now, diagnostics).read(*root);
    }
    if (diagnostics.empty()) {
      return file;
    }
  } catch (const std::exception& error) {
    diagnostics.add({}, fmt::format("cannot be read: {}", error.what()));
  }
  return std::unexpected(diagnostics.take());
}

}  // namespace berth
