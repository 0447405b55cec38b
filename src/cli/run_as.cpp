// The names berth is called by: links to it that behave as the programs people know.

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>

#include "cli/commands.hpp"
#include "cli/gpu_manager.hpp"
#include "cli/gpulimit.hpp"
#include "cli/program_name.hpp"

namespace berth::cli {
namespace {

struct Name {
  std::string_view program;
  std::array<std::string_view, 5> words;  ///< put in front of the arguments
};

constexpr std::array kNames = {
    Name{"gpu_scheduler", {"run", "--dialect", "fedwhat"}},
    Name{"main_gpu", {"run", "--dialect", "commands", "--mode", "single"}},
    Name{"main_gpus", {"run", "--dialect", "commands", "--mode", "multi"}},
};

}  // namespace

int run_as(std::string_view program, std::vector<std::string> arguments) {
  std::filesystem::path name = std::filesystem::path(program).filename();
  if (name.extension() == ".py") {
    name = name.stem();
  }
  if (name == "gpulimit" || name == "gpulimitc") {
    return gpulimit::run(arguments);
  }
  if (name == "gpulimit_server" || name == "gpulimit-server") {
    return gpulimit::serve(arguments);
  }
  if (name == "gpu_resource_manager" || name == "gpu_manager") {
    return gpu_manager::run(name.string(), arguments);
  }
  for (const Name& known : kNames) {
    if (name == known.program) {
      std::vector<std::string> words;
      for (const std::string_view word : known.words) {
        if (!word.empty()) {
          words.emplace_back(word);
        }
      }
      std::ranges::move(arguments, std::back_inserter(words));
      program_name() = name.string();
      return run_cli(std::move(words));
    }
  }
  return run_cli(std::move(arguments));
}

}  // namespace berth::cli
