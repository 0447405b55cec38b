#include "daemon/job_text.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "dialects/dialect.hpp"
#include "submit/environment.hpp"
#include "submit/job_source.hpp"
#include "submit/submission.hpp"

namespace berth {
namespace {

constexpr std::size_t kShownJobs = 1'000;
constexpr std::size_t kShownCommand = 500;
struct Reading {
  Dialect dialect = Dialect::native;
  Parsed parsed;
};

Result<Reading> parse(const FileRequest& request) {
  DialectOptions options;
  TRY(check_dialect(request));
  if (request.dialect) {
    options.dialect = dialect_from(*request.dialect);
  }
  const Source source =
      job_source(request.text,
                 {request.name.empty() ? std::string(kStandardInput) : request.name, request.cwd,
                  request.cwd, read_clock().wall},
                 read_regular_file);
  const Dialect dialect = options.dialect.value_or(recognise(request.text, source.file_name));
  return Reading{dialect, parse_file(source, options)};
}

ProblemView problem_of(const Diagnostic& diagnostic, const FileRequest& request) {
  ProblemView problem{"error", "", diagnostic.at.line, diagnostic.at.column, diagnostic.message};
  if (diagnostic.file.starts_with('/') && diagnostic.file != request.name) {
    problem.file = diagnostic.file;
  }
  return problem;
}

std::vector<ProblemView> problems_of(const Parsed& parsed, const FileRequest& request) {
  std::vector<ProblemView> problems;
  if (!parsed) {
    for (const Diagnostic& diagnostic : parsed.error()) {
      problems.push_back(problem_of(diagnostic, request));
    }
    return problems;
  }
  for (const std::string& warning : parsed->warnings) {
    problems.push_back({"warning", "", 0, 0, warning});
  }
  return problems;
}

CheckedJob checked_job(const JobSpec& spec) {
  CheckedJob job;
  job.name = spec.name;
  job.queue = spec.queue;
  job.priority = spec.priority;
  job.gpus = spec.request.gpus;
  job.gpu_memory = spec.request.gpu_memory;
  job.command = display_commands(spec.payload.commands, kShownCommand);
  job.cwd = spec.payload.cwd;
  job.after = spec.after_index;
  job.params = spec.payload.params;
  job.retries = spec.retries;
  return job;
}

std::vector<ProblemView> whole(std::string message) {
  return {{"error", "", 0, 0, std::move(message)}};
}

}  // namespace

Status check_dialect(const FileRequest& request) {
  if (!request.dialect || dialect_from(*request.dialect)) {
    return {};
  }
  return fail(ErrorCode::invalid,
              fmt::format("there is no dialect '{}'; there are native, fedwhat, commands, "
                          "gpu_manager and script",
                          to_utf8(*request.dialect)));
}

CheckedFile check_text(const FileRequest& request) {
  CheckedFile checked;
  const auto reading = parse(request);
  if (!reading) {
    checked.dialect = to_string(Dialect::native);
    checked.problems = whole(reading.error().message);
    return checked;
  }
  checked.dialect = to_string(reading->dialect);
  checked.problems = problems_of(reading->parsed, request);
  if (reading->parsed) {
    const auto& jobs = reading->parsed->jobs;
    checked.total = jobs.size();
    for (std::size_t i = 0; i < std::min(jobs.size(), kShownJobs); ++i) {
      checked.jobs.push_back(checked_job(jobs[i]));
    }
  }
  return checked;
}

std::expected<JobFile, Problems> file_of(const FileRequest& request) {
  auto reading = parse(request);
  if (!reading) {
    return std::unexpected(whole(reading.error().message));
  }
  if (!reading->parsed) {
    return std::unexpected(problems_of(reading->parsed, request));
  }
  return std::move(*reading->parsed);
}

std::expected<event::Submit, Problems> submission_of(JobFile file, const std::string& key,
                                                     const std::string& instance_dir) {
  if (const auto written = write_derived(file.derived); !written) {
    return std::unexpected(whole(written.error().message));
  }
  prepare_state_directory(file.traits);
  event::Submit submit = to_submission(std::move(file), 0);
  if (const auto complete = complete_submission(submit, instance_dir); !complete) {
    return std::unexpected(whole(complete.error().message));
  }
  if (!key.empty()) {
    submit.client_key = key;
  }
  return submit;
}

}  // namespace berth
