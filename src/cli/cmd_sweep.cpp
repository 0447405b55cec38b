// berth sweep: one command, many values.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/job_files.hpp"
#include "cli/submitter.hpp"
#include "cli/table.hpp"
#include "jobspec/job_writer.hpp"
#include "jobspec/sweep.hpp"
#include "jobspec/value_list.hpp"
#include "submit/job_source.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t kShownJobs = 1000;
constexpr std::size_t kShownCommand = 500;

std::unexpected<Error> wrong(std::string_view option, std::string_view word,
                             std::string_view message) {
  return fail(ErrorCode::invalid, fmt::format("{} {}: {}", option, printable(word), message));
}

/// "lr=1e-3,1e-4"
Result<AxisValues> parse_axis(std::string_view option, const std::string& word) {
  const auto equals = word.find('=');
  if (equals == 0 || equals == std::string::npos) {
    return wrong(option, word, "is not AXIS=VALUES, as in lr=1e-3,1e-4");
  }
  auto values = expand_values(std::string_view(word).substr(equals + 1));
  if (!values) {
    return wrong(option, word, values.error().message);
  }
  return AxisValues{word.substr(0, equals), std::move(*values)};
}

/// "a=1 b=2"
Result<std::vector<std::pair<std::string, std::string>>> parse_combination(
    const std::string& words) {
  std::vector<std::pair<std::string, std::string>> out;
  for (std::size_t at = 0; (at = words.find_first_not_of(' ', at)) != std::string::npos;) {
    const auto end = std::min(words.find(' ', at), words.size());
    const auto word = words.substr(at, end - at);
    const auto equals = word.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return wrong("--list", words, fmt::format("'{}' is not AXIS=VALUE, as in 'a=1 b=2'", word));
    }
    out.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    at = end;
  }
  return out;
}

Status add_table(const std::string& path, Matrix& matrix) {
  TRY_ASSIGN(const std::string text, read_whole_file(path, "table"));
  Diagnostics diagnostics(path);
  CsvTable table = parse_csv(text, diagnostics);
  if (diagnostics.empty()) {
    const Status added = matrix.add_table(std::move(table));
    // What it can object to are the names in the first line.
    return added ? added
                 : fail(ErrorCode::invalid,
                        fmt::format("{}:1:1: {}; the first line of a table names its axes, "
                                    "separated by commas",
                                    printable(path), added.error().message));
  }
  const auto found = diagnostics.take();
  for (const Diagnostic& diagnostic : found) {
    std::fprintf(stderr, "%s\n", render(diagnostic, text).c_str());
  }
  return fail(ErrorCode::invalid,
              fmt::format("'{}' has {} mistake{}; nothing was submitted", printable(path),
                          found.size(), found.size() == 1 ? "" : "s"));
}

Result<Matrix> read_matrix(const SweepOptions& options) {
  Matrix matrix;
  for (const std::string& path : options.table) {
    TRY(add_table(path, matrix));
  }
  for (const std::string& word : options.grid) {
    TRY_ASSIGN(AxisValues axis, parse_axis("--grid", word));
    if (const Status added = matrix.add_axis(std::move(axis)); !added) {
      return wrong("--grid", word, added.error().message);
    }
  }
  std::vector<AxisValues> together;
  for (const std::string& word : options.zip) {
    TRY_ASSIGN(AxisValues axis, parse_axis("--zip", word));
    together.push_back(std::move(axis));
  }
  if (!together.empty()) {
    if (const Status added = matrix.add_zip(std::move(together)); !added) {
      return fail(ErrorCode::invalid, fmt::format("--zip: {}", added.error().message));
    }
  }
  for (const std::string& words : options.list) {
    TRY_ASSIGN(auto combination, parse_combination(words));
    if (const Status added = matrix.add_combination(std::move(combination)); !added) {
      return wrong("--list", words, added.error().message);
    }
  }
  if (!matrix.declared()) {
    return fail(ErrorCode::invalid,
                "there is nothing to sweep over; give --grid, --zip, --list or --csv, as in: berth "
                "sweep --grid lr=0.1,0.2 -- python train.py {lr}");
  }
  return matrix;
}

void print_table(const JobFile& file, const std::vector<std::string_view>& axes) {
  std::vector<Table::Column> columns = {{"NAME"}};
  for (const auto axis : axes) {
    columns.push_back({printable(axis)});
  }
  columns.push_back({"COMMAND"});
  Table table(std::move(columns));
  for (std::size_t i = 0; i < std::min(kShownJobs, file.jobs.size()); ++i) {
    const JobSpec& job = file.jobs[i];
    std::vector<Table::Cell> row = {{printable(job.name)}};
    for (const auto axis : axes) {
      const auto value = job.payload.params.find(std::string(axis));
      row.push_back({value == job.payload.params.end() ? "" : printable(value->second)});
    }
    row.push_back({printable(display_commands(job.payload.commands, kShownCommand))});
    table.add(std::move(row));
  }
  print(table.render(look_at_stdout()));
  if (file.jobs.size() > kShownJobs) {
    print(fmt::format("… and {} more; --json lists all of them\n", file.jobs.size() - kShownJobs));
  }
  print(fmt::format("{} job{}; nothing was submitted\n", file.jobs.size(),
                    file.jobs.size() == 1 ? "" : "s"));
}

void print_json(const JobFile& file) {
  std::string out = job_file_head(file);
  for (const JobSpec& job : file.jobs) {
    out += &job == &file.jobs.front() ? "\n  " : ",\n  ";
    append_job(out, job, file.jobs);
  }
  print(out + "\n]}\n");
}

}  // namespace

Outcome run_sweep(SweepOptions options) {
  TRY_ASSIGN(const Matrix matrix, read_matrix(options));
  TRY(complete_job(options.job));
  TRY_ASSIGN(JobFile file, make_sweep(matrix, options.job.job));
  file.max_concurrent = options.max_concurrent;
  for (const std::string& warning : file.warnings) {
    warn("warning: " + printable(warning));
  }
  if (options.dry_run) {
    if (options.job.json) {
      print_json(file);
    } else {
      print_table(file, matrix.axis_names());
    }
    return 0;
  }
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY(choose_gpus(options.job, daemon));
  for (JobSpec& job : file.jobs) {
    job.request.gpus = options.job.job.request.gpus;
  }
  std::vector<LoadedFile> files;
  files.push_back({file.name, std::move(file)});
  return submit_and_watch(std::move(files), {.detach = options.detach,
                                             .json = options.job.json,
                                             .resume = false,
                                             .redo = false,
                                             .snapshot = options.job.snapshot});
}

}  // namespace berth::cli
