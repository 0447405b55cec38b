#pragma once
// One job of a job file: its keys, and what they mean once the matrix has filled them in.

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "core/job.hpp"
#include "jobspec/keys.hpp"
#include "jobspec/matrix.hpp"
#include "jobspec/rule_keys.hpp"
#include "jobspec/yaml_tree.hpp"

namespace berth {

/// What to add to "unknown key 'word'": the key of a job that was likely meant, or what else helps.
[[nodiscard]] std::string job_key_hint(std::string_view word);

/// Borrows from the tree.
class JobKeys {
 public:
  /// Reports unknown keys. `where` is the map to read, `of` what to call it in messages.
  [[nodiscard]] static JobKeys read(const Node& where, std::string_view of,
                                    Diagnostics& diagnostics);

  [[nodiscard]] const Node* get(JobKey key) const { return nodes_[static_cast<std::size_t>(key)]; }
  /// Of the map `rules` and those among the other keys.
  [[nodiscard]] const std::vector<RuleNode>& rules() const { return rules_; }
  void set(JobKey key, const Node* node) { nodes_[static_cast<std::size_t>(key)] = node; }

 private:
  std::array<const Node*, kJobKeyNames.size()> nodes_{};
  std::vector<RuleNode> rules_;
};

/// What a job has besides its own keys.
struct JobContext {
  JobKeys defaults;
  std::filesystem::path base_dir;
  Millis now{0};  ///< what `in` counts from

  /// The job's own value, or the one of the defaults; null: neither.
  [[nodiscard]] const Node* get(const JobKeys& own, JobKey key) const {
    return own.get(key) != nullptr ? own.get(key) : defaults.get(key);
  }
};

/// Reads the instances of one entry. What no axis can change is read once and copied, so a large
/// matrix costs what differs from one instance to the next. All arguments must outlive it.
class JobReader {
 public:
  JobReader(const JobKeys& own, const JobContext& context, const Matrix& matrix,
            Diagnostics& diagnostics);

  /// `name` and `after` are left to the caller, who sees the other jobs. What is wrong is reported
  /// and left at its default.
  [[nodiscard]] JobSpec read(const Combination& combination);

  /// What all instances have in common.
  [[nodiscard]] const JobSpec& common() const { return common_; }

 private:
  const JobKeys& own_;
  const JobContext& context_;
  Diagnostics& diagnostics_;
  JobSpec common_;
  std::vector<JobKey> varying_;
};

}  // namespace berth
