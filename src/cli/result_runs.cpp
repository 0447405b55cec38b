#include "cli/result_runs.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <set>
#include <unordered_map>

#include "api/remote.hpp"
#include "cli/job_files.hpp"
#include "cli/last_job.hpp"
#include "cli/log_file.hpp"
#include "cli/server.hpp"
#include "cli/submitter.hpp"
#include "cli/terminal.hpp"
#include "results/file_metrics.hpp"
#include "results/found_runs.hpp"
#include "results/log_metrics.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t kFileMax = 256UL * 1024 * 1024;
constexpr std::size_t kWarningsMax = 5;

/// Tells what is wrong with single runs, but not a thousand times.
class Complaints {
 public:
  void add(std::string_view text) {
    if (++count_ <= kWarningsMax) {
      warn(fmt::format("warning: {}", text));
    }
  }
  ~Complaints() {
    if (count_ > kWarningsMax) {
      warn(fmt::format("warning: … and {} more of the kind", count_ - kWarningsMax));
    }
  }
  Complaints() = default;
  Complaints(const Complaints&) = delete;
  Complaints& operator=(const Complaints&) = delete;

 private:
  std::size_t count_ = 0;
};

Run::End end_of(JobState state) {
  if (state == JobState::succeeded) {
    return Run::End::succeeded;
  }
  return is_terminal(state) ? Run::End::failed : Run::End::not_yet;
}

/// Nothing where there is no such file.
Result<std::optional<std::string>> read_if_there(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));  // NOLINT
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) {
    return std::optional<std::string>();
  }
  if (!fd) {
    return fail_errno(fmt::format("cannot open '{}'", printable(path)), errno);
  }
  std::string text;
  TRY(copy_log(fd.get(), path, [&](std::string_view piece) { text += piece; }, kFileMax));
  return std::optional(std::move(text));
}

Result<Observations> scan_log(const std::string& path, const std::vector<LogMetric>& metrics) {
  LogScanner scanner(metrics);
  TRY_ASSIGN(const Fd fd, open_log(path));
  const auto tails = open_tails(path);
  TRY_ASSIGN(const LogText log, LogText::of(fd.get(), tails));
  TRY(log.copy(path, std::nullopt, [&](std::string_view text) { scanner.feed(text); }));
  return std::move(scanner).take();
}

/// Reads what one run has left: its report, its files, its log, in order of trust.
class Reader {
 public:
  Reader(const ResultsOptions& options, std::string logs)
      : options_(options), logs_(std::move(logs)) {}

  Status read(const JobView& job, Run& run) {
    if (job.attempts == 0 && job.log.empty()) {
      return {};
    }
    read_report(job, run);
    for (const std::string& pattern : options_.files_of_runs) {
      TRY(read_file(job, pattern, run));
    }
    if (!job.log.empty()) {
      auto found = scan_log(job.log, options_.log_metrics);
      if (found) {
        add_missing(run.metrics, std::move(*found));
      } else {
        complaints_.add(fmt::format("job {}: {}", job.id, found.error().message));
      }
    }
    return {};
  }

  /// After the last run: a slip in a path would otherwise look like runs that told nothing.
  void tell_unread_files() {
    for (const std::string& pattern : options_.files_of_runs) {
      if (!read_.contains(pattern)) {
        complaints_.add(fmt::format(
            "--file {}: no run has such a file; a relative path starts where the job ran",
            printable(pattern)));
      }
    }
  }

 private:
  /// Of the last attempt that left one.
  void read_report(const JobView& job, Run& run) {
    for (std::uint32_t number = std::max(job.attempts, 1U); number > 0; --number) {
      const auto text = read_if_there(report_path(logs_, job.id, number));
      if (text && *text) {
        add_missing(run.metrics, metrics_of_report(**text));
        return;
      }
    }
  }

  Status read_file(const JobView& job, const std::string& pattern, Run& run) {
    TRY_ASSIGN(const std::string name, fill_in(pattern, path_values(run)));
    const std::string path = make_absolute(name, job.cwd);
    const auto text = read_if_there(path);
    if (!text || !*text) {
      if (!text) {
        complaints_.add(fmt::format("job {}: {}", job.id, text.error().message));
      }
      return {};
    }
    read_.insert(pattern);
    auto found = metrics_of_file(**text, path);
    if (found) {
      add_missing(run.metrics, std::move(*found));
    } else {
      complaints_.add(
          fmt::format("job {}: '{}' {}", job.id, printable(path), found.error().message));
    }
    return {};
  }

  const ResultsOptions& options_;
  std::string logs_;
  std::set<std::string> read_;  ///< the --file for which there was a file
  Complaints complaints_;
};

Result<std::vector<JobView>> jobs_of(Daemon& daemon, const ResultsOptions& options) {
  JobQuery query;
  query.batch = options.batch;
  if (!options.ids && options.batch == 0) {
    TRY_ASSIGN(JobView last, last_job(daemon));
    if (last.batch == 0) {
      return std::vector{std::move(last)};
    }
    query.batch = last.batch;
  }
  if (!options.ids) {
    TRY_ASSIGN(auto jobs, daemon.jobs(query));
    if (jobs.empty()) {
      return fail(ErrorCode::not_found, fmt::format("there are no jobs of batch {}; berth ls --all "
                                                    "lists them",
                                                    query.batch));
    }
    return jobs;
  }
  std::vector<JobView> jobs;
  for (IdSet& part : in_parts(*options.ids)) {
    query.ids = std::move(part);
    TRY_ASSIGN(auto some, daemon.jobs(query));
    std::ranges::move(some, std::back_inserter(jobs));
  }
  if (jobs.empty()) {
    return fail(ErrorCode::not_found, fmt::format("there are no jobs {}; berth ls --all lists them",
                                                  options.ids->to_string()));
  }
  return jobs;
}

template <class View>
std::map<std::string, std::string> params_of(const View& job) {
  if constexpr (requires { job.params; }) {
    return job.params;
  } else {
    return {};
  }
}

/// The jobs there are, by what makes them an experiment of a file. Of several the newest counts.
class KnownJobs {
 public:
  explicit KnownJobs(const std::vector<JobView>& jobs) {
    for (const JobView& job : jobs) {  // ascending: the last one stays
      here_[key(job.name, job.command, job.cwd)] = &job;
      anywhere_[key(job.name, job.command, "")] = &job;
      by_params_[key(job.name, text_of(job.params), job.cwd)] = &job;
    }
  }

  /// Null: it was never submitted. Another folder may hold the same file, so a job of this folder
  /// goes before one that was run elsewhere, such as in a snapshot.
  [[nodiscard]] const JobView* find(const JobSpec& spec, bool by_params) const {
    if (by_params) {
      const std::string params = text_of(spec.payload.params);
      if (const JobView* job = at(by_params_, key(spec.name, params, spec.payload.cwd))) {
        return job;
      }
    }
    const std::string command = display_commands(spec.payload.commands);
    if (const JobView* job = at(here_, key(spec.name, command, spec.payload.cwd))) {
      return job;
    }
    return at(anywhere_, key(spec.name, command, ""));
  }

 private:
  using Map = std::unordered_map<std::string, const JobView*>;

  static std::string key(const std::string& name, const std::string& what, const std::string& cwd) {
    return fmt::format("{}\n{}\n{}", name, cwd, what);
  }
  static std::string text_of(const std::map<std::string, std::string>& params) {
    std::string text;
    for (const auto& [name, value] : params) {
      text += fmt::format("{}={}\n", name, value);
    }
    return text;
  }
  static const JobView* at(const Map& map, const std::string& key) {
    const auto found = map.find(key);
    return found == map.end() ? nullptr : found->second;
  }

  Map here_;
  Map anywhere_;
  Map by_params_;
};

/// A run and the job that it is; none: it was never submitted.
struct Wanted {
  Run run;
  std::optional<JobView> job;
};

/// Every experiment of the files with the newest job of its name and command, if there is one. The
/// command of a FedWhat experiment depends on options (--template, --seed-in-config) that are not
/// in the file; its parameters say what it is.
Result<std::vector<Wanted>> wanted_by_files(Daemon& daemon, const ResultsOptions& options) {
  TRY_ASSIGN(const auto files, load_job_files(options.job_files, options.reading, ""));
  TRY_ASSIGN(const auto jobs, daemon.jobs(JobQuery{}));
  const KnownJobs known(jobs);
  std::vector<Wanted> wanted;
  for (const LoadedFile& loaded : files) {
    const bool by_params = loaded.file.traits.dialect == to_string(Dialect::fedwhat);
    for (const JobSpec& spec : loaded.file.jobs) {
      const JobView* found = known.find(spec, by_params);
      Wanted& one = wanted.emplace_back(
          Wanted{{0, spec.name, Run::End::never, spec.payload.params, {}}, std::nullopt});
      if (found != nullptr) {
        one.job = *found;
        one.run.job = one.job->id;
        one.run.end = end_of(one.job->state);
      }
    }
  }
  return wanted;
}

Result<std::vector<Wanted>> wanted_by_ids(Daemon& daemon, const ResultsOptions& options) {
  TRY_ASSIGN(auto jobs, jobs_of(daemon, options));
  std::vector<Wanted> wanted;
  for (JobView& job : jobs) {
    wanted.push_back({{job.id, job.name, end_of(job.state), params_of(job), {}}, std::move(job)});
  }
  return wanted;
}

/// What the daemon of another machine finds in its files, job by job.
Result<std::map<std::uint64_t, Observations>> ask_for_metrics(Daemon& daemon, IdSet ids,
                                                              const ResultsOptions& options) {
  RunsRequest request;
  request.ids = std::move(ids);
  for (const LogMetric& metric : options.log_metrics) {
    request.metrics.push_back({metric.name, metric.pattern.text()});
  }
  request.files = options.files_of_runs;
  request.points = !options.html.empty();
  std::map<std::uint64_t, Observations> told;
  Complaints complaints;
  while (true) {
    TRY_ASSIGN(const std::string body, daemon.call("POST", "/api/results/runs", encode(request)));
    TRY_ASSIGN(FoundRuns found, decode_found_runs(body));
    for (FoundRuns::One& run : found.runs) {
      told[run.job] = std::move(run.metrics);
    }
    for (const std::string& warning : found.warnings) {
      complaints.add(printable(warning));
    }
    if (!found.next || *found.next <= request.after) {
      return told;
    }
    request.after = *found.next;
  }
}

Status read_there(Daemon& daemon, std::vector<Wanted>& wanted, const ResultsOptions& options) {
  IdSet ids;
  for (const Wanted& one : wanted) {
    if (one.job) {
      ids.add(one.job->id);
    }
  }
  if (ids.empty()) {
    return {};
  }
  TRY_ASSIGN(const auto told, ask_for_metrics(daemon, std::move(ids), options));
  for (Wanted& one : wanted) {
    // Two experiments of a file may be one job.
    if (const auto found = told.find(one.run.job); found != told.end()) {
      one.run.metrics = found->second;
    }
  }
  return {};
}

}  // namespace

Result<std::vector<Run>> gather_runs(Daemon& daemon, const ResultsOptions& options) {
  TRY_ASSIGN(auto wanted, options.job_files.empty() ? wanted_by_ids(daemon, options)
                                                    : wanted_by_files(daemon, options));
  if (chosen_server()) {
    TRY(read_there(daemon, wanted, options));
  } else {
    Reader reader(options, daemon.paths().logs);
    for (Wanted& one : wanted) {
      if (one.job) {
        TRY(reader.read(*one.job, one.run));
      }
    }
    reader.tell_unread_files();
  }
  std::vector<Run> runs;
  for (Wanted& one : wanted) {
    runs.push_back(std::move(one.run));
  }
  return runs;
}

}  // namespace berth::cli
