#include <exception>

#include "cli/commands.hpp"

int main(int argc, char** argv) {
  try {
    return berth::cli::run_as(argc > 0 ? argv[0] : "berth",
                              {argc > 0 ? argv + 1 : argv, argv + argc});
  } catch (const std::exception& error) {
    berth::cli::warn(error.what());
    return 1;
  }
}
