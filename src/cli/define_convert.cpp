// The command line of `berth convert`.

#include <memory>

#include "cli/define.hpp"

namespace berth::cli {

void define_convert(CLI::App& app, Action& action) {
  CLI::App& sub =
      *command(app, "convert", "Write a job file of any format as a native one",
               "  berth convert job.sbatch > job.yaml\n"
               "  berth convert command.txt -o commands.yaml\n"
               "The result makes the same jobs: paths are whole, matrices written out,\n"
               "comments are lost. Needs no daemon.");
  const auto options = std::make_shared<ConvertOptions>();
  file_options(sub, options->files, options->reading);
  option(sub, "-o,--output", "FILE", "where to write it; default: standard output",
         [options](const auto& t) { options->out = t; });
  sub.add_flag("--force", options->force, "write over a file that is there");
  sub.callback([&action, options] {
    if (options->files.size() != 1) {
      throw CLI::ValidationError("FILE", "name one job file");
    }
    action = [options] { return run_convert(*options); };
  });
}

}  // namespace berth::cli
