#pragma once
// What the directives of a script ask for, as keys of a native job where there is one.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.hpp"
#include "dialects/script_lines.hpp"
#include "dialects/slurm_values.hpp"
#include "jobspec/diagnostic.hpp"
#include "jobspec/job_file.hpp"
#include "jobspec/yaml_tree.hpp"

namespace berth {

/// Keys of a job as a job file would have them, each at the place it was given.
class NativeKeys {
 public:
  NativeKeys() : map_(std::make_shared<Node>()) { map_->kind = Node::Kind::map; }

  /// The last one counts.
  void set(std::string_view key, std::string text, Position at);
  /// When it starts, `at` or `in`: a job has one of them.
  void set_start(std::string_view key, std::string text, Position at);
  /// An entry of a map, such as `env`.
  void put(std::string_view key, std::string name, std::string text, Position at);
  void set_list(std::string_view key, const std::vector<std::string>& texts, Position at);
  [[nodiscard]] bool has(std::string_view key) const { return map_->find(key) != nullptr; }
  [[nodiscard]] const Node& map() const { return *map_; }

 private:
  std::shared_ptr<Node> replace(std::string_view key, Node::Kind kind, Position at);

  std::shared_ptr<Node> map_;
  std::map<std::string, std::shared_ptr<Node>, std::less<>> nested_;
};

struct PlacedText {
  std::string text;
  Position at;
};

struct ScriptJob {
  NativeKeys keys;
  std::optional<PlacedText> name;
  std::optional<PlacedText> output;  ///< with the signs of sbatch
  std::optional<PlacedText> error;
  std::optional<ArrayTasks> array;
  After after_kind = After::ok;
  std::vector<JobId> after;
  std::vector<AfterArray> after_arrays;  ///< the same, as sbatch has it
  std::optional<std::uint32_t> tasks;
  bool tasks_of_a_node = false;  ///< they were asked for by --ntasks-per-node
  std::optional<std::uint32_t> cpus_per_task;
  bool slurm = false;  ///< has #SBATCH lines
};

/// Where mistakes and doubts go.
struct ScriptReport {
  Diagnostics& diagnostics;
  std::function<void(Position at, const std::string& message)> warn;
};

/// An option as it was given.
struct GivenOption {
  std::string name;  ///< "--time", whatever letter it was
  std::string value;
  Position at;
};

enum class Takes : std::uint8_t { nothing, value, maybe };  ///< maybe: only behind '='

struct ScriptOption {
  std::string_view name;
  char letter = 0;  ///< 0: none
  Takes takes = Takes::value;
};

/// The options of one line. Unknown ones are warned about and left out.
[[nodiscard]] std::vector<GivenOption> read_options(const DirectiveLine& line,
                                                    std::span<const ScriptOption> known,
                                                    const ScriptReport& report);

/// Notes how jobs that it follows must have ended; one job has one kind. False: it has another.
bool set_after_kind(ScriptJob& job, After kind, Position at, const ScriptReport& report);

// In slurm_options.cpp and berth_options.cpp.
void read_slurm_lines(const std::vector<DirectiveLine>& lines, ScriptJob& job,
                      const ScriptReport& report);
/// `here` is where relative paths begin.
void read_berth_lines(const std::vector<DirectiveLine>& lines, const std::string& here,
                      ScriptJob& job, const ScriptReport& report);

}  // namespace berth
