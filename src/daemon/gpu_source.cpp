#include "daemon/gpu_source.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace berth {
namespace {

constexpr std::string_view kSim = "sim:";

Status run(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  pid_t pid = -1;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  const int error = ::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return fail_errno(fmt::format("cannot run {}", words[0]), error);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) {
    return fail(ErrorCode::io,
                fmt::format("{} {} failed; the daemon's log says why", words[0], words[1]));
  }
  return {};
}

std::string remembered(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

Result<GpuSource> choose_gpus(const std::string& wanted, const std::string& dir,
                              const std::string& bin_dir, const std::string& nvml_library) {
  const auto file = std::filesystem::path(dir) / "gpus";
  GpuSource source;
  source.spec = wanted.empty() ? remembered(file) : wanted;
  if (source.spec.empty()) {
    source.spec = "auto";
  }
  if (source.spec == "none") {
    source.none = true;
  } else if (source.spec == "auto") {
    source.nvml_library = nvml_library;
  } else if (source.spec.starts_with(kSim)) {
    source.simulated = true;
    source.library_dir = std::filesystem::path(bin_dir).parent_path() / "lib" / "berth-sim";
    source.nvml_library = source.library_dir + "/libnvidia-ml.so.1";
    // Without it there would be no cards, and nothing that says why.
    if (std::error_code error; !std::filesystem::exists(source.nvml_library, error)) {
      return fail(ErrorCode::not_found,
                  fmt::format("simulated GPUs need {}, which is not there; the directories bin and "
                              "lib of berth belong beside each other, copy both",
                              source.nvml_library));
    }
    const std::string state = dir + "/simgpu";
    TRY(run({bin_dir + "/berth-simgpu", "init", state, source.spec.substr(kSim.size())}));
    source.environment.emplace_back("BERTH_SIM_DIR", state);
  } else {
    return fail(
        ErrorCode::invalid,
        fmt::format("GPUs '{}': expected auto, none or sim:COUNTxMEMORY such as sim:8x24GiB",
                    source.spec));
  }
  if (source.spec != remembered(file)) {
    std::ofstream(file) << source.spec << '\n';
  }
  return source;
}

}  // namespace berth
