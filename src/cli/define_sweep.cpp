// The command line of `berth sweep`.

#include "cli/define.hpp"

namespace berth::cli {

void define_sweep(CLI::App& app, SweepOptions& options, Action& action) {
  CLI::App& sub =
      *command(app, "sweep", "Run a command with every combination of some values",
               "  berth sweep --grid lr=1e-3,1e-4 --grid seed=1..3 -- \\\n"
               "      python train.py --lr {lr} --seed {seed}\n"
               "  berth sweep --grid 'lr=log(1e-5, 1e-1, 5)' --dry-run -- python train.py {lr}\n"
               "  berth sweep --zip model=s,m --zip batch=64,8 -- python t.py {model} {batch}\n"
               "  berth sweep --list 'a=1 b=2' --list 'a=3 b=5' -- python train.py {a} {b}\n"
               "  berth sweep --csv params.csv --gpus 2 --retries 1 -- python train.py {lr}\n"
               "Values: 1,2,3 as they are; 1..3, 0..10..2; linear(0, 1, 5); log(1e-5, 1e-1, 5).\n"
               "The first line of a CSV file names its columns. {axis} also stands in --name,\n"
               "--log, --cwd and --env. The same in a job file: matrix.");
  // Only for the help: split_add_words() has taken the command away before.
  sub.add_option("CMD", options.job.command, "the command and its arguments, with {axis} in them")
      ->type_name("");
  list_option(sub, "--grid", "AXIS=VALUES", "values to combine with all others; repeatable",
              [&](const auto& t) { options.grid.push_back(t); });
  list_option(sub, "--zip", "AXIS=VALUES", "values that go together with other --zip; repeatable",
              [&](const auto& t) { options.zip.push_back(t); });
  list_option(sub, "--list", "'A=V B=V'", "one more combination; repeatable",
              [&](const auto& t) { options.list.push_back(t); });
  list_option(sub, "--csv", "FILE", "a table of values, with its axes in the first line",
              [&](const auto& t) { options.table.push_back(t); });
  option(sub, "--max-concurrent", "N", "jobs of the sweep that run at once; 0: any number",
         [&](const auto& t) {
           options.max_concurrent =
               checked_number<std::uint32_t>("--max-concurrent", t, "a number of jobs");
         });
  job_options(sub, options.job);
  sub.add_flag("--dry-run", options.dry_run, "show the jobs and submit nothing");
  sub.add_flag("--detach", options.detach, "return once they are submitted");
  sub.add_flag("--json", options.job.json,
               "with --detach the ids, with --dry-run the jobs as JSON");
  sub.callback([&] {
    check_job_options(options.job);
    if (options.job.json && !options.detach && !options.dry_run) {
      throw CLI::ValidationError("--json",
                                 "goes with --detach or --dry-run; afterwards use berth ls --json");
    }
    action = [&] { return run_sweep(std::move(options)); };
  });
}

}  // namespace berth::cli
