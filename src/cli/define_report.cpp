// report.

#include <cmath>
#include <memory>

#include "cli/define.hpp"

namespace berth::cli {
namespace {

void add_metric(ReportLine& line, const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw CLI::ValidationError(
        "--metric",
        fmt::format("'{}' is not a metric; write NAME=NUMBER, as in acc=0.93", printable(text)));
  }
  const auto number =
      checked_number<double>("--metric", text.substr(equals + 1), "a number, as in acc=0.93");
  line.metrics[text.substr(0, equals)] =
      std::isfinite(number) ? std::optional(number) : std::nullopt;
}

}  // namespace

void define_report(CLI::App& app, Action& action) {
  const auto line = std::make_shared<ReportLine>();
  CLI::App& sub =
      *command(app, "report", "From inside a job: say how it goes",
               "  berth report --metric acc=0.93 --metric loss=0.2 --step 3\n"
               "  python train.py || berth report --state abnormal_exit --error-type oom\n"
               "  berth report --state normal_exit\n"
               "A job that reports abnormal_exit has failed, whatever its exit code; one whose\n"
               "exit code is not 0 has failed, whatever it reports.");
  option(sub, "--state", "STATE", "running, normal_exit or abnormal_exit", [line](const auto& t) {
    line->state = reported_state_from(t);
    if (!line->state) {
      throw CLI::ValidationError(
          "--state",
          fmt::format("'{}' is not running, normal_exit or abnormal_exit", printable(t)));
    }
  });
  option(sub, "--error-type", "TYPE", "of abnormal_exit: oom for lack of GPU memory, or any word",
         [line](const auto& t) { line->error_type = t; });
  option(sub, "--pid", "PID", "the process it is about", [line](const auto& t) {
    line->pid = checked_number<std::uint64_t>("--pid", t, "a process id");
  });
  list_option(sub, "--metric", "NAME=NUMBER", "a result; repeatable",
              [line](const auto& t) { add_metric(*line, t); });
  option(sub, "--step", "N", "the step or epoch of these results", [line](const auto& t) {
    line->step = checked_number<std::uint64_t>("--step", t, "a whole number");
  });
  sub.callback([line, &action] {
    if (!line->state && line->metrics.empty()) {
      throw CLI::ValidationError("report", "say something: --state or --metric");
    }
    action = [line] { return run_report(*line); };
  });
}

}  // namespace berth::cli
