#pragma once
// Job files in the formats of other programs. Each dialect becomes what the native job file
// becomes: one submission. Reading one touches no file but through `Source::read`, and writes none.

#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "base/units.hpp"
#include "jobspec/diagnostic.hpp"
#include "jobspec/job_file.hpp"

namespace berth {

enum class Dialect : std::uint8_t {
  native,       ///< docs/formats/jobfile.md
  fedwhat,      ///< `jobs:` with config, algorithm, log_path, extra_args
  commands,     ///< command.txt: blocks of commands with queue and memory
  gpu_manager,  ///< gpu_manager_config.json
  script,       ///< a shell script with #BERTH or #SBATCH lines
};

[[nodiscard]] std::string_view to_string(Dialect dialect);
[[nodiscard]] std::optional<Dialect> dialect_from(std::string_view text);

/// By what the file says; its name decides where the text could be several things.
[[nodiscard]] Dialect recognise(std::string_view text, std::string_view file_name);

/// What a command line adds to a file. Options that say nothing for a dialect are refused by it.
struct DialectOptions {
  std::optional<Dialect> dialect;  ///< none: recognised
  // For every dialect: rules of the batch, before those of the file.
  std::optional<Bytes> min_memory;
  std::optional<std::uint32_t> max_util;
  std::optional<std::uint32_t> max_concurrent;
  std::optional<Millis> max_wait;
  Overrides rules;
  std::string name;  ///< of the batch; empty: what the file says
  // For some.
  enum class Cards : std::uint8_t { by_file_name, single, multi };
  Cards cards = Cards::by_file_name;   ///< commands: which variant
  std::string config_file;             ///< commands: its config.yaml; empty: the one beside it
  std::uint32_t config_index = 0;      ///< commands: which of the files that config.yaml names
  std::string command_template;        ///< fedwhat; empty: the usual one
  bool seed_in_config = false;         ///< fedwhat: into a copy of the config instead of an option
  std::vector<std::string> arguments;  ///< script: what follows its name
};

inline constexpr std::string_view kStandardInput = "standard input";

/// One file as it was found.
struct Source {
  std::string_view text;
  std::string file_name;           ///< as shown in messages; kStandardInput: it has none
  std::filesystem::path base_dir;  ///< where it lies, absolute
  Millis now{0};                   ///< by the wall clock
  /// Reads another file that this one refers to. Absolute paths; not_found where there is none.
  ReadFile read;
  std::filesystem::path here = {};  ///< where it is submitted from, absolute; empty: base_dir
  std::string user = {};            ///< who submits it
  std::string host = {};            ///< this machine's short name
  /// Whether a program is on the submitter's PATH; none: that is not known.
  std::function<bool(const std::string&)> has_program = {};
  /// None: the jobs run elsewhere.
  LacksDirectory lacks_directory = {};
};

/// All mistakes come back at once; those of a file that was read through `read` have its absolute
/// path in `Diagnostic::file`. Never throws.
using Parsed = std::expected<JobFile, std::vector<Diagnostic>>;
[[nodiscard]] Parsed parse_file(const Source& source, const DialectOptions& options);

// The dialects, one file each.
[[nodiscard]] Parsed parse_fedwhat(const Source& source, const DialectOptions& options);
[[nodiscard]] Parsed parse_commands(const Source& source, const DialectOptions& options);
[[nodiscard]] Parsed parse_gpu_manager(const Source& source, const DialectOptions& options);
[[nodiscard]] Parsed parse_script(const Source& source, const DialectOptions& options);
// Whether a text is one, by its own marks.
[[nodiscard]] bool looks_like_fedwhat(std::string_view text);
[[nodiscard]] bool looks_like_commands(std::string_view text);
[[nodiscard]] bool looks_like_gpu_manager(std::string_view text);
[[nodiscard]] bool looks_like_script(std::string_view text);

}  // namespace berth
