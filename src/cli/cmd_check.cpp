// berth check: what job files would make, without a daemon.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>

#include "cli/commands.hpp"
#include "cli/job_files.hpp"
#include "cli/table.hpp"
#include "jobspec/job_writer.hpp"
#include "jobspec/schema.hpp"

namespace berth::cli {
namespace {

/// Enough to see what a matrix does, and few enough to stay readable.
constexpr std::size_t kShownJobs = 1000;
constexpr std::size_t kShownCommand = 500;
constexpr std::size_t kShownAfter = 3;
constexpr std::size_t kPrintedAtOnce = 256 * 1024;

std::string plural(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string after_text(const JobSpec& job, const std::vector<JobSpec>& jobs) {
  std::string out;
  const auto& after = job.after_index;
  for (std::size_t i = 0; i < std::min(kShownAfter, after.size()); ++i) {
    out += (i > 0 ? ", " : "") + printable(jobs[after[i]].name);
  }
  if (after.size() > kShownAfter) {
    out += fmt::format(", … ({})", after.size());
  }
  return out;
}

std::string memory_text(const Request& request) {
  if (request.gpus.max == 0) {
    return {};
  }
  return request.gpu_memory ? format_size(*request.gpu_memory) : "whole";
}

/// A script is an argument of its shell, `-c TEXT NAME`; its name says enough in a table.
std::string command_text(std::vector<Command> commands) {
  for (Command& command : commands) {
    auto& words = command.argv;
    for (std::size_t i = words.size(); !command.shell && i-- > 0;) {
      if (words[i].find('\n') != std::string::npos) {
        const std::size_t first = i > 0 && words[i - 1] == "-c" ? i - 1 : i;
        words.erase(words.begin() + static_cast<std::ptrdiff_t>(first),
                    words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        i = first;
      }
    }
  }
  return printable(display_commands(commands, kShownCommand));
}

void print_table(const std::vector<LoadedFile>& files, std::size_t jobs) {
  Table table({{"FILE"},
               {"NAME"},
               {"QUEUE"},
               {"GPUS", Align::right},
               {"MEMORY", Align::right},
               {"AFTER"},
               {"COMMAND"}});
  std::size_t rows = 0;
  for (const auto& [path, file] : files) {
    for (const JobSpec& job : file.jobs) {
      if (rows++ == kShownJobs) {
        break;
      }
      table.add({{files.size() > 1 ? printable(path) : ""},
                 {printable(job.name)},
                 {printable(job.queue)},
                 {gpu_count_text(job.request.gpus)},
                 {memory_text(job.request)},
                 {after_text(job, file.jobs)},
                 {command_text(job.payload.commands)}});
    }
  }
  print(table.render(look_at_stdout()));
  if (jobs > kShownJobs) {
    print(fmt::format("… and {} more; --json lists all of them\n", jobs - kShownJobs));
  }
}

/// One file comes out as a job file again. Of several, all jobs in one list, each with its file.
void print_json(const std::vector<LoadedFile>& files) {
  const bool one = files.size() == 1;
  std::string out = one ? job_file_head(files.front().file) : R"({"jobs": [)";
  bool first = true;
  for (const auto& [path, file] : files) {
    for (const JobSpec& job : file.jobs) {
      out += first ? "\n  " : ",\n  ";
      first = false;
      append_job(out, job, file.jobs, one ? std::string_view() : path);
      if (out.size() > kPrintedAtOnce) {
        print(out);
        out.clear();
      }
    }
  }
  print(out + "\n]}\n");
}

}  // namespace

Outcome run_check(const CheckOptions& options) {
  if (options.schema) {
    print(job_file_schema());
    return 0;
  }
  TRY_ASSIGN(const std::vector<LoadedFile> files,
             load_job_files(options.files, options.reading, ""));
  if (options.json) {
    print_json(files);
    return 0;
  }
  std::set<std::string_view> queues;
  std::size_t jobs = 0;
  for (const LoadedFile& loaded : files) {
    jobs += loaded.file.jobs.size();
    for (const JobSpec& job : loaded.file.jobs) {
      queues.insert(job.queue);
    }
  }
  print_table(files, jobs);
  print(fmt::format("{}, {}: ok\n", plural(jobs, "job"), plural(queues.size(), "queue")));
  return 0;
}

}  // namespace berth::cli
