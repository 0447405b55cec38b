#include "daemon/run_results.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "api/paths.hpp"
#include "base/utf8.hpp"
#include "base/whole_file.hpp"
#include "daemon/attempt_log.hpp"
#include "results/aggregate.hpp"
#include "results/file_metrics.hpp"
#include "results/found_runs.hpp"
#include "results/log_metrics.hpp"
#include "results/sheet.hpp"

namespace berth {
namespace {

constexpr std::size_t kPiece = 256UL * 1024;
constexpr std::size_t kReportMax = 16UL * 1024 * 1024;
constexpr std::size_t kFileMax = 64UL * 1024 * 1024;
constexpr std::size_t kWarningsMax = 20;
constexpr std::size_t kStepsMax = 50'000;  ///< of all patterns of a request

Run::End end_of(JobState state) {
  if (state == JobState::succeeded) {
    return Run::End::succeeded;
  }
  return is_terminal(state) ? Run::End::failed : Run::End::not_yet;
}

Run run_of(const JobView& job) {
  return {job.id, job.name, end_of(job.state), job.params, {}};
}

class RunReader {
 public:
  RunReader(const ResultsPlaces& places, const ResultsTime& time) : places_(places), time_(time) {}
  /// Besides what is found without being told how: patterns for logs, and paths of files.
  RunReader(const ResultsPlaces& places, const ResultsTime& time, std::vector<LogMetric> metrics,
            std::vector<std::string> files)
      : places_(places), time_(time), metrics_(std::move(metrics)), files_(std::move(files)) {}

  Status read(const JobView& job, Run& run) {
    if (job.attempts == 0 && job.log.empty()) {
      return {};
    }
    read_report(job, run);
    for (const std::string& pattern : files_) {
      TRY(read_file(job, pattern, run));
    }
    if (!job.log.empty()) {
      TRY(read_log(job, run));
    }
    return {};
  }

  [[nodiscard]] std::vector<std::string> take_warnings() {
    if (left_out_ > 0) {
      warnings_.push_back(fmt::format("… and {} more of the kind", left_out_));
    }
    return std::move(warnings_);
  }

  void warn(std::string text) {
    if (warnings_.size() < kWarningsMax) {
      warnings_.push_back(std::move(text));
    } else {
      ++left_out_;
    }
  }

 private:
  Status read_file(const JobView& job, const std::string& pattern, Run& run) {
    TRY_ASSIGN(const std::string name, fill_in(pattern, path_values(run)));
    const std::string path = (std::filesystem::path(job.cwd) / name).native();
    const auto text = read_whole(path, kFileMax);
    if (!text) {
      warn(fmt::format("job {}: {}", job.id, text.error().message));
    }
    if (!text || !*text) {
      return {};
    }
    auto found = metrics_of_file(**text, path);
    if (found) {
      add_missing(run.metrics, std::move(*found));
    } else {
      warn(fmt::format("job {}: '{}' {}", job.id, to_utf8(path), found.error().message));
    }
    return {};
  }

  /// Of the last attempt that left one.
  void read_report(const JobView& job, Run& run) {
    for (std::uint32_t number = std::max(job.attempts, 1U); number > 0; --number) {
      const auto report =
          AttemptLog::open(report_path(places_.logs, job.id, number), places_.files);
      const auto text = report ? report->read(0, kReportMax) : std::unexpected(report.error());
      if (text) {
        add_missing(run.metrics, metrics_of_report(*text));
        return;
      }
    }
  }

  Status read_log(const JobView& job, Run& run) {
    const auto log = AttemptLog::open(job.log, places_.files);
    if (!log) {
      warn(fmt::format("job {}: {}", job.id, log.error().message));
      return {};
    }
    const auto over = [this] {
      return time_.given_up.stop_requested() || read_clock().mono > time_.end;
    };
    LogScanner scanner(metrics_, Patience(over));
    for (std::uint64_t at = 0; at < log->size(); at += kPiece) {
      TRY_ASSIGN(const std::string text, log->read(at, kPiece));
      scanner.feed(text);
      if (scanner.gave_up() || over()) {
        return fail(ErrorCode::busy,
                    "there is more in these logs than can be read in time; `berth results` does it "
                    "at leisure");
      }
    }
    add_missing(run.metrics, std::move(scanner).take());
    return {};
  }

  const ResultsPlaces& places_;
  const ResultsTime& time_;
  std::vector<LogMetric> metrics_;
  std::vector<std::string> files_;
  std::vector<std::string> warnings_;
  std::size_t left_out_ = 0;
};

Result<std::vector<LogMetric>> compile_all(const std::vector<RunsRequest::Metric>& asked) {
  std::vector<LogMetric> metrics;
  std::size_t steps = 0;
  for (const RunsRequest::Metric& metric : asked) {
    TRY_ASSIGN(Pattern pattern, Pattern::compile(metric.pattern));
    steps += pattern.steps();
    if (steps > kStepsMax) {
      return fail(ErrorCode::invalid, "the patterns together are too large: repeat less often");
    }
    metrics.push_back({metric.name, std::move(pattern)});
  }
  return metrics;
}

Result<ResultsRequest> request_of(const ResultsQuery& query) {
  ResultsRequest request;
  request.by = query.by;
  request.over = query.over.value_or(request.over);
  request.metrics = query.metrics;
  request.take = take_from(query.take).value_or(Take::last);
  request.partial = query.partial;
  if (!query.best.empty()) {
    TRY_ASSIGN(request.best, parse_best(query.best));
  }
  return request;
}

}  // namespace

Result<std::string> make_results(const std::vector<JobView>& jobs, const ResultsQuery& query,
                                 const ResultsPlaces& places, const ResultsTime& time) {
  TRY_ASSIGN(const ResultsRequest request, request_of(query));
  RunReader reader(places, time);
  std::vector<Run> runs;
  for (const JobView& job : jobs) {
    Run& run = runs.emplace_back(run_of(job));
    TRY(reader.read(job, run));
  }
  TRY_ASSIGN(const Results results, aggregate(std::move(runs), request));
  boost::json::array warnings;
  for (const std::string& warning : reader.take_warnings()) {
    warnings.emplace_back(to_utf8(warning));
  }
  // Into the text as it is: reading it again could change the last digit of a number.
  std::string text = to_json(results);
  text.resize(text.rfind('}'));
  return fmt::format("{},\"warnings\":{}}}", text, boost::json::serialize(warnings));
}

Result<std::string> tell_runs(const std::vector<JobView>& jobs, bool more,
                              const RunsRequest& request, const ResultsPlaces& places,
                              const ResultsTime& time) {
  TRY_ASSIGN(std::vector<LogMetric> metrics, compile_all(request.metrics));
  RunReader reader(places, time, std::move(metrics), request.files);
  FoundRuns found;
  for (const JobView& job : jobs) {
    if (time.given_up.stop_requested() ||
        (!found.runs.empty() && read_clock().mono > time.enough)) {
      more = true;
      break;
    }
    Run run = run_of(job);
    if (const Status read = reader.read(job, run); !read) {
      if (read.error().code != ErrorCode::busy) {
        return std::unexpected(read.error());
      }
      reader.warn(fmt::format("job {}: there is more in its log than can be read in time", job.id));
    }
    found.runs.push_back({job.id, std::move(run.metrics)});
  }
  if (more && !found.runs.empty()) {
    found.next = found.runs.back().job;
  }
  found.warnings = reader.take_warnings();
  return encode(found, request.points ? Curves::told : Curves::left_out);
}

}  // namespace berth
