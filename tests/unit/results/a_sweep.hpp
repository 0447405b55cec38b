#pragma once
// Runs as a sweep leaves them.

#include <string>
#include <vector>

#include "results/aggregate.hpp"

namespace berth {

// Inside a test, Run is a member of its base.
using Runs = std::vector<Run>;
using End = Run::End;

inline Run a_run(std::uint64_t job, std::map<std::string, std::string> params,
                 const std::map<std::string, std::vector<double>>& metrics,
                 Run::End end = Run::End::succeeded) {
  Run run{job, "run-" + std::to_string(job), end, std::move(params), {}};
  for (const auto& [name, values] : metrics) {
    for (const double value : values) {
      run.metrics[name].add(value, std::nullopt);
    }
  }
  return run;
}

/// Two learning rates, three seeds; one run failed, one tells nothing of its accuracy.
inline std::vector<Run> a_sweep() {
  return {
      a_run(1, {{"lr", "0.1"}, {"seed", "1"}}, {{"acc", {0.5, 0.90}}, {"loss", {1.0, 0.31}}}),
      a_run(2, {{"lr", "0.1"}, {"seed", "2"}}, {{"acc", {0.6, 0.92}}, {"loss", {0.9, 0.29}}}),
      a_run(3, {{"lr", "0.1"}, {"seed", "3"}}, {{"acc", {0.4, 0.94}}, {"loss", {1.1, 0.27}}}),
      a_run(4, {{"lr", "0.01"}, {"seed", "1"}}, {{"acc", {0.3, 0.81}}, {"loss", {2.0, 0.62}}}),
      a_run(5, {{"lr", "0.01"}, {"seed", "2"}}, {{"acc", {0.2}}}, Run::End::failed),
      a_run(6, {{"lr", "0.01"}, {"seed", "3"}}, {{"loss", {2.0, 0.58}}}),
  };
}

}  // namespace berth
