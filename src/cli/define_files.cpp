// What commands that read job files have in common.

#include <utility>

#include "cli/define.hpp"
#include "cli/job_files.hpp"
#include "cli/submitter.hpp"
#include "dialects/command_place.hpp"
#include "submit/job_source.hpp"

namespace berth::cli {
namespace {

/// A plain number is MiB, as in the program this option comes from.
Result<Bytes> parse_mib(const std::string& text) {
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos) {
    return parse_size(text + "MiB");
  }
  auto size = parse_size(text);
  if (!size) {
    return fail(
        ErrorCode::invalid,
        fmt::format("'{}' is not a size; write for example 8000 (MiB) or 8GiB", printable(text)));
  }
  return size;
}

Result<Dialect> parse_dialect(const std::string& text) {
  if (const auto dialect = dialect_from(text)) {
    return *dialect;
  }
  return fail(
      ErrorCode::invalid,
      fmt::format("'{}' is not native, fedwhat, commands, gpu_manager or script", printable(text)));
}

std::string no_command_file(const DialectOptions& reading) {
  const std::string names =
      reading.cards == DialectOptions::Cards::by_file_name
          ? std::string()
          : fmt::format(", none of {}", usual_names(reading.cards, reading.config_index));
  return fmt::format(
      "there is no command file here{}; name one with --command-file, or with "
      "--config-file a configuration that names one",
      names);
}

}  // namespace

void file_options(CLI::App& sub, std::vector<std::string>& files, DialectOptions& reading) {
  using Cards = DialectOptions::Cards;
  sub.add_option("FILE", files, "job files; - is standard input")->type_name("");
  list_option(sub, "--job-file,--command-file", "FILE", "the same as FILE",
              [&](const auto& t) { files.push_back(t); });
  option(sub, "--dialect", "NAME",
         "native, fedwhat, commands, gpu_manager or script; default: recognised by content",
         [&](const auto& t) { reading.dialect = checked("--dialect", parse_dialect(t)); });
  option(sub, "--name", "NAME", "of the batch; default: what the file says",
         [&](const auto& t) { reading.name = t; });
  option(sub, "--min-memory", "MIB", "free memory a card must have; also 8GiB",
         [&](const auto& t) { reading.min_memory = checked("--min-memory", parse_mib(t)); });
  option(sub, "--max-util", "PERCENT", "a card busier than this is left alone", [&](const auto& t) {
    reading.max_util = checked_number<std::uint32_t>("--max-util", t, "a percentage");
    if (*reading.max_util > 100) {
      throw CLI::ValidationError(
          "--max-util", fmt::format("'{}' is more than 100 percent; write 0 to 100", printable(t)));
    }
  });
  option(sub, "--max-concurrent", "N", "jobs of the batch that run at once; 0: any number",
         [&](const auto& t) {
           reading.max_concurrent =
               checked_number<std::uint32_t>("--max-concurrent", t, "a number of jobs");
         });
  option(sub, "--max-wait", "TIME", "a job that waited so long for GPUs is cancelled; 0: never",
         [&](const auto& t) { reading.max_wait = checked("--max-wait", parse_duration(t)); });
  option(sub, "--mode", "single|multi", "command files: one GPU for each task, or several",
         [&](const auto& t) {
           if (t != "single" && t != "multi") {
             throw CLI::ValidationError("--mode", "is single or multi");
           }
           reading.cards = t == "single" ? Cards::single : Cards::multi;
         });
  option(sub, "--config-file", "FILE", "command files: their config.yaml",
         [&](const auto& t) { reading.config_file = t; });
  option(sub, "--config-index", "N", "command files: which of several", [&](const auto& t) {
    reading.config_index = checked_number<std::uint32_t>("--config-index", t, "a number from 0");
  });
  option(sub, "--template", "COMMAND",
         "fedwhat: the command, with {config}, {algorithm} and {extra_args}",
         [&](const auto& t) { reading.command_template = t; });
  sub.add_flag("--seed-in-config", reading.seed_in_config,
               "fedwhat: the seed goes into a copy of the config");
  list_option(sub, std::string(kScriptArgument), "WORD", "an argument of a script",
              [&](const auto& t) { reading.arguments.push_back(t.substr(1)); })
      ->group("");
  list_option(sub, "--rule", "KEY=VALUE", "a rule of the batch; repeatable", [&](const auto& t) {
    const auto [key, value] = checked("--rule", parse_rule(t, RuleScope::batch));
    reading.rules[key] = value;
  });
}

void require_files(std::vector<std::string>& files, DialectOptions& reading) {
  if (files.empty() && !reading.config_file.empty()) {
    // The configuration names the command file.
    files.push_back(std::exchange(reading.config_file, {}));
  }
  if (files.empty() && reading.dialect == Dialect::commands) {
    const auto usual = usual_command_file(
        {}, reading, [](const auto& path) { return read_whole_file(path.native(), "file"); });
    if (usual) {
      files.push_back(usual->native());
    }
  }
  if (files.empty()) {
    throw CLI::ValidationError("FILE", reading.dialect == Dialect::commands
                                           ? no_command_file(reading)
                                           : "name a job file");
  }
}

void snapshot_options(CLI::App& sub, SnapshotOptions& snapshot) {
  sub.add_flag("--snapshot", snapshot.wanted,
               "run from a copy of the working tree as it is now; later edits do not matter");
  option(
      sub, "--snapshot-limit", "SIZE", "the largest tree to copy (512MiB)",
      [&snapshot](const auto& t) { snapshot.limit = checked("--snapshot-limit", parse_size(t)); });
}

}  // namespace berth::cli
