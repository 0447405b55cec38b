#pragma once
// How a daemon was told to run.

#include <string>
#include <vector>

#include "base/result.hpp"

namespace berth {

struct DaemonOptions {
  std::string dir;           ///< empty: BERTH_DIR, else the usual place
  std::string gpus;          ///< "auto", "none", "sim:8x24GiB"; empty: as last time, else auto
  std::string nvml_library;  ///< empty: the driver's own
  std::string log_level = "info";
  unsigned max_concurrent = 0;
  bool probe = false;   ///< be the probe process instead
  bool routes = false;  ///< print the table of routes, and end
  std::string restore;  ///< put this backup in the place of the store, and end
};

/// Parses the command line; exits by itself for --help, --version and wrong usage.
[[nodiscard]] DaemonOptions parse_options(int argc, char** argv);

}  // namespace berth
