#pragma once
// The commands of gpulimit. Each takes the words behind its name and returns the exit code.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/control.hpp"
#include "base/result.hpp"
#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/gpulimit_view.hpp"

namespace berth::cli::gpulimit {

using Words = std::vector<std::string>;

struct CommandDef {
  std::string_view name;
  std::string_view arguments;
  std::string_view summary;  ///< one line
  std::string_view details;  ///< further lines of its help, examples among them
  Outcome (*run)(const Words& words);
};
[[nodiscard]] std::span<const CommandDef> commands();
/// By its name or another one of it; null if there is none.
[[nodiscard]] const CommandDef* find_command(std::string_view name);
/// "; did you mean 'x'?" for a word that is no command, or nothing.
[[nodiscard]] std::string nearest_command(std::string_view word);
[[nodiscard]] std::string help_text();
[[nodiscard]] std::string help_text(const CommandDef& command);

[[nodiscard]] Outcome run_help(const Words& words);
[[nodiscard]] Outcome run_add(const Words& words);
[[nodiscard]] Outcome run_ls(const Words& words);
[[nodiscard]] Outcome run_show(const Words& words);
[[nodiscard]] Outcome run_rm(const Words& words);
[[nodiscard]] Outcome run_clean(const Words& words);
[[nodiscard]] Outcome run_kill(const Words& words);
[[nodiscard]] Outcome run_mv(const Words& words);
[[nodiscard]] Outcome run_set(const Words& words);
[[nodiscard]] Outcome run_start(const Words& words);
[[nodiscard]] Outcome run_log(const Words& words);
[[nodiscard]] Outcome run_status(const Words& words);
[[nodiscard]] Outcome run_debug(const Words& words);

/// Takes a flag such as --json out of the words; whether it was there.
bool take_flag(Words& words, std::string_view flag);
/// Wrong usage unless there are so many words, none of them an option.
[[nodiscard]] Status expect_words(const Words& words, std::size_t least, std::size_t most,
                                  std::string_view usage);

// What the daemon knows of tasks.

/// All of these states, or all; in the order of their ids.
[[nodiscard]] Result<std::vector<JobView>> tasks(Daemon& daemon, std::vector<JobState> states = {});
/// Those named, which must be there where they are named one by one; none named: those that have
/// not ended.
[[nodiscard]] Result<std::vector<JobView>> chosen(Daemon& daemon, const std::optional<IdSet>& ids);
[[nodiscard]] Result<JobDetail> task(Daemon& daemon, std::uint64_t id);
/// Waiting tasks in the order in which they will start.
[[nodiscard]] Result<std::vector<JobView>> in_order(Daemon& daemon, std::vector<JobView> waiting);
/// Returns when all have ended; an error if they do not.
[[nodiscard]] Status await_end(Daemon& daemon, const IdSet& ids);

// Parameters.

/// The rules of the queue, which is made if there is none; parameters that nobody has set yet get
/// their usual values.
[[nodiscard]] Result<RulesView> queue_rules(Daemon& daemon);
[[nodiscard]] Status apply(Daemon& daemon, const Setting& setting);
[[nodiscard]] std::vector<ParameterValue> values(const RulesView& rules);
/// What a task claims under these rules; none: whole cards, since nothing is known of them.
[[nodiscard]] Result<std::optional<Bytes>> claim(Daemon& daemon, const RulesView& rules);
[[nodiscard]] HostMemory host_memory();

/// The first process of a job's attempt, found by what its environment says.
[[nodiscard]] std::optional<std::uint32_t> find_process(const std::string& instance,
                                                        std::uint64_t job, std::uint32_t attempt);

/// A small file; empty where it cannot be read.
[[nodiscard]] std::string read_text(const std::string& path);

/// `gpulimit WORDS…`; prints errors; the exit code.
[[nodiscard]] int run(const Words& words);
/// `gpulimit_server`: becomes the daemon, in the foreground.
[[nodiscard]] int serve(const Words& words);

}  // namespace berth::cli::gpulimit
