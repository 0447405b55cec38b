#include <exception>

#include "cli/commands.hpp"

int main(int argc, char** argv) {
  try {
    return berth::cli::run_cli({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    berth::cli::warn(error.what());
    return 1;
  }
}
