// The command line of `berth check`.

#include <memory>

#include "cli/define.hpp"

namespace berth::cli {

void define_check(CLI::App& app, Action& action) {
  CLI::App& sub = *command(app, "check", "Check job files and show the jobs they would make",
                           "  berth check sweep.yaml\n"
                           "  berth check --json sweep.yaml | jq '.jobs[].name'\n"
                           "  berth check --schema > jobfile.schema.json\n"
                           "Needs no daemon and runs nothing. Exit code 0: all files can be run.");
  const auto options = std::make_shared<CheckOptions>();
  file_options(sub, options->files, options->reading);
  sub.add_flag("--json", options->json, "print the jobs as JSON, matrices written out");
  sub.add_flag("--schema", options->schema, "print the JSON schema of job files, for editors");
  sub.callback([&action, options] {
    if (!options->reading.config_file.empty()) {
      require_files(options->files, options->reading);
    }
    if (options->schema == !options->files.empty()) {
      throw CLI::ValidationError("FILE", "give job files, or --schema");
    }
    action = [options] { return run_check(*options); };
  });
}

}  // namespace berth::cli
