#pragma once
// What the files that describe commands share. CLI11 is a large header: only they include it.

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <charconv>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/server.hpp"

namespace berth::cli {

/// What a parse has found to do.
using Action = std::function<Outcome()>;

/// Help that fits a terminal of 80 columns.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_subcommand(const CLI::App* sub) const override;
  std::string make_option(const CLI::Option* option, bool positional) const override;
};

/// The value, or the error as CLI11 wants it: with the option's name in front.
template <class T>
T checked(const std::string& option, Result<T> value) {
  if (!value) {
    throw CLI::ValidationError(option, value.error().message);
  }
  return std::move(*value);
}

template <class T>
T checked_number(const std::string& option, const std::string& text, const char* what) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range && at == end) {
    throw CLI::ValidationError(
        option, fmt::format("'{}' is not from {} to {}", printable(text),
                            std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  }
  if (text.empty() || error != std::errc() || at != end) {
    throw CLI::ValidationError(option, fmt::format("'{}' is not {}", printable(text), what));
  }
  return value;
}

/// In define_store.cpp: rm, clean, history, backup, restore.
void define_store(CLI::App& app, Action& action);

/// A command with a footer of examples.
CLI::App* command(CLI::App& app, const std::string& name, const std::string& help,
                  const std::string& examples);

/// An option with one value, given to `set` as text.
CLI::Option* option(CLI::App& app, const std::string& name, const std::string& type,
                    const std::string& help, const std::function<void(const std::string&)>& set);

/// The same, repeatable.
CLI::Option* list_option(CLI::App& app, const std::string& name, const std::string& type,
                         const std::string& help, std::function<void(const std::string&)> add);

void json_flag(CLI::App& app, bool& json);

/// --color of commands that print for people; --no-pager of those that may print much.
void color_option(CLI::App& app);
void pager_flag(CLI::App& app);
/// --watch[=SECONDS]
void watch_option(CLI::App& app, std::optional<Millis>& every);

// The groups of commands, one file each. They keep the storage of their options themselves.
void define_look(CLI::App& app, Action& action);
void define_tools(CLI::App& app, Action& action);
void define_results(CLI::App& app, Action& action);
/// In define_report.cpp.
void define_report(CLI::App& app, Action& action);

/// The options that describe a job, of `berth add` and what makes jobs like it.
void job_options(CLI::App& sub, AddOptions& add);
/// What depends on several of them, once all are read.
void check_job_options(const AddOptions& add);

/// A hidden option with one word for a script. A mark stands before it, for no value may be empty.
inline constexpr std::string_view kScriptArgument = "--script-argument";
inline constexpr char kScriptArgumentMark = '=';

/// The files and how to read them, of commands that take job files. Both must outlive the parse.
void file_options(CLI::App& sub, std::vector<std::string>& files, DialectOptions& reading);
/// With no file given, the configuration that names one takes its place; without either it is wrong
/// usage.
void require_files(std::vector<std::string>& files, DialectOptions& reading);

/// --snapshot and --snapshot-limit, of commands that submit.
void snapshot_options(CLI::App& sub, SnapshotOptions& snapshot);

/// Ids as positional words: "3 5-9", "3,5-9", "@" for the last job.
void ids_argument(CLI::App& app, std::vector<std::string>& words, const std::string& help);
[[nodiscard]] IdSet ids_of(const std::vector<std::string>& words);
[[nodiscard]] std::uint64_t id_of(const std::string& word);

// The commands, by group. Each adds to `app` and puts what was asked for into `action`.
void define_check(CLI::App& app, Action& action);
void define_convert(CLI::App& app, Action& action);
/// `options` must outlive the action: its command is found elsewhere.
void define_sweep(CLI::App& app, SweepOptions& options, Action& action);
/// In define_access.cpp: ui, token; and --server, --token-file, --ca-file.
void define_access(CLI::App& app, Action& action);
void server_options(CLI::App& app, ServerOptions& options);
/// In define_set.cpp.
void define_set(CLI::App& app, Action& action);
/// pause, resume, start, move.
void define_control(CLI::App& app, Action& action);

}  // namespace berth::cli
