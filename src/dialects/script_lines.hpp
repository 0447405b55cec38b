#pragma once
// The lines of a script that speak to a scheduler: `#BERTH --gpus 2`, `#SBATCH --time=2:00:00`.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jobspec/diagnostic.hpp"

namespace berth {

struct DirectiveWord {
  std::string text;  ///< without quotes
  Position at;
};

/// One line.
struct DirectiveLine {
  bool slurm = false;  ///< #SBATCH, not #BERTH
  std::vector<DirectiveWord> words;
};

struct ScriptLines {
  std::vector<std::string> interpreter;  ///< of the first line; empty: it names none
  std::vector<DirectiveLine> directives;
  std::vector<Position> too_late;  ///< directives behind the first command, which count for nothing
  std::vector<std::uint32_t> srun;      ///< lines that call srun
  std::vector<std::uint32_t> scontrol;  ///< likewise
  /// Those of them that want something else of it than the names of machines.
  std::vector<std::uint32_t> other_scontrol;
};

/// Directives begin in the first column and end at the first command, as sbatch has it.
[[nodiscard]] ScriptLines read_script_lines(std::string_view text);

}  // namespace berth
