#include "daemon/options.hpp"

#include <cstdlib>

#include <CLI/CLI.hpp>

namespace berth {

DaemonOptions parse_options(int argc, char** argv) {
  DaemonOptions options;
  if (const char* gpus = std::getenv("BERTH_GPUS")) {
    options.gpus = gpus;
  }
  CLI::App app{
      "berthd: runs jobs on GPUs nobody uses\n\n"
      "`berth` starts it when needed; by hand it runs in the foreground and logs to\n"
      "standard error. Stopping it leaves running jobs alone; the next daemon adopts them.\n"};
  app.footer(
      "Examples:\n"
      "  berthd                            serve the usual directory with the machine's GPUs\n"
      "  berthd --dir /tmp/try --gpus sim:8x24GiB   eight simulated 24 GiB cards\n"
      "\nEnvironment: BERTH_DIR moves all state; BERTH_GPUS is the same as --gpus.");
  app.set_version_flag("--version", std::string("berthd ") + BERTH_VERSION);
  app.add_option("--dir", options.dir,
                 "Directory of the instance (default: BERTH_DIR, else the usual place)");
  app.add_option("--gpus", options.gpus,
                 "auto: the machine's own; none; sim:COUNTxMEMORY: simulated (remembered)");
  app.add_option("--nvml-library", options.nvml_library,
                 "NVML library to load instead of the driver's");
  app.add_option("--max-concurrent", options.max_concurrent, "Running jobs at most; 0: no limit");
  app.add_option("--log-level", options.log_level, "debug, info, warn or error")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}));
  bool foreground = true;
  app.add_flag("--foreground", foreground,
               "Stay in the foreground (always so; accepted for units)");
  app.add_flag("--probe", options.probe)->group("");
  app.add_flag("--routes", options.routes)->group("");
  app.add_option("--restore", options.restore)->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    std::exit(code == 0 ? 0 : 2);
  }
  return options;
}

}  // namespace berth
