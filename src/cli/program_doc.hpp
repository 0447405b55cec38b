#pragma once
// The commands and options as data, read from the description that parses them: what --help, the
// manual pages and the completions of the shells say has one source.

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace berth::cli {

/// What a value may be, for those who complete it.
enum class Completes : std::uint8_t { nothing, words, jobs, queues, files, directories, command };

struct OptionDoc {
  std::vector<std::string> names;  ///< "-f", "--follow"; of a positional, its name alone
  std::string type;                ///< "N", "TIME"; empty: a flag, or a positional
  std::string help;
  bool flag = false;        ///< takes no value
  bool repeatable = false;  ///< may be given more than once, or several words
  bool required = false;
  Completes completes = Completes::nothing;
  std::vector<std::string> words;  ///< for Completes::words
};

struct CommandDoc {
  std::string name;  ///< empty: the program itself
  std::string summary;
  std::string group;
  std::string examples;  ///< lines, and remarks after them
  std::vector<OptionDoc> options;
  std::vector<OptionDoc> positionals;
};

struct ProgramDoc {
  CommandDoc main;
  std::vector<CommandDoc> commands;  ///< grouped, without hidden ones
};

[[nodiscard]] ProgramDoc describe_program(const CLI::App& app);

// Completion scripts; `shell` is "bash", "zsh" or "fish".
[[nodiscard]] std::string bash_completion(const ProgramDoc& program);
[[nodiscard]] std::string zsh_completion(const ProgramDoc& program);
[[nodiscard]] std::string fish_completion(const ProgramDoc& program);

/// berth.1, or berth-COMMAND.1: roff for man(7).
[[nodiscard]] std::string man_page(const ProgramDoc& program);
[[nodiscard]] std::string man_page(const ProgramDoc& program, const CommandDoc& command);

}  // namespace berth::cli
