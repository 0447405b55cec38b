#pragma once
// Runs that differ only in their seed become one group: mean, deviation, extremes, and what is
// missing from it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "results/observations.hpp"

namespace berth {

/// One job, or one experiment of a file that was never submitted.
struct Run {
  enum class End : std::uint8_t {
    succeeded,
    failed,  ///< or was killed or cancelled
    not_yet,
    never,  ///< submitted
  };
  std::uint64_t job = 0;  ///< 0: never submitted
  std::string name;
  End end = End::not_yet;
  std::map<std::string, std::string> params;
  Observations metrics;
};

/// What to compare: the highest or lowest mean of a metric.
struct BestRule {
  bool highest = true;
  std::string metric;
};
/// "max:acc", "min:loss", or "acc": losses and errors are best when low.
[[nodiscard]] Result<BestRule> parse_best(std::string_view text);

struct ResultsRequest {
  std::optional<std::vector<std::string>> by;  ///< none: all parameters but `over`
  std::vector<std::string> over{"seed"};
  std::vector<std::string> metrics;  ///< empty: those that people want to see first
  Take take = Take::last;
  bool partial = false;  ///< values of runs that failed or have not ended count as well
  std::optional<BestRule> best;
};

/// One metric of one group.
struct Summary {
  std::uint64_t n = 0;  ///< runs with a value
  std::optional<double> mean;
  std::optional<double> deviation;  ///< of a sample; none for fewer than two
  std::optional<double> min;
  std::optional<double> max;
  std::uint64_t missing = 0;  ///< runs that have not failed and tell no value
  std::vector<std::pair<std::size_t, double>> values;  ///< index into Results::runs
};

struct Group {
  std::vector<std::string> key;  ///< one for each of Results::by; "-": the runs do not have it
  std::vector<std::size_t> runs;
  std::uint64_t failed = 0;
  std::uint64_t not_yet = 0;
  std::vector<Summary> summaries;  ///< one for each of Results::metrics
  bool best = false;
};

struct Results {
  std::vector<std::string> by;
  std::vector<std::string> metrics;
  std::vector<std::string> other_metrics;  ///< found but not chosen
  std::vector<Run> runs;
  std::vector<Group> groups;  ///< in the order of their first run
  std::optional<BestRule> best_rule;
  std::optional<std::size_t> best_group;
  std::optional<std::size_t> best_run;
};

/// The error names a metric or parameter that no run has.
[[nodiscard]] Result<Results> aggregate(std::vector<Run> runs, const ResultsRequest& request);

/// What stands for {names} in the path of a file: parameters, name and job_id.
[[nodiscard]] std::map<std::string, std::string> path_values(const Run& run);

/// "lr=0.1 algorithm=fedavg" of a group; the name where there is no parameter.
[[nodiscard]] std::string group_label(const Results& results, const Group& group);

}  // namespace berth
