#include "submit/environment.hpp"

#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/utf8.hpp"
#include "jobspec/launch_words.hpp"

extern char** environ;

namespace berth {
namespace {

/// Those of `environment` that `names` keeps, and those that no program can do without.
Environment choose_from(const Environment& environment, const Environment& names) {
  constexpr std::array<std::string_view, 7> kAlways{"HOME", "USER", "LOGNAME",  "SHELL",
                                                    "PATH", "LANG", "BERTH_DIR"};
  Environment out;
  for (const std::string& entry : environment) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    if (std::ranges::find(kAlways, name) != kAlways.end() ||
        std::ranges::find(names, name) != names.end()) {
      out.push_back(entry);
    }
  }
  return out;
}

/// As the kernel tells it: umask(2) can only be read by changing it, for all threads at once.
mode_t current_umask() {
  constexpr std::string_view kLine = "Umask:";
  constexpr int kOctal = 8;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(kLine)) {
      const auto digits = std::min(line.find_first_of("01234567"), line.size());
      mode_t mask = 0;
      if (std::from_chars(line.data() + digits, line.data() + line.size(), mask, kOctal).ec ==
          std::errc()) {
        return mask;
      }
    }
  }
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return mask;
}

}  // namespace

bool is_inherited(std::string_view name) {
  constexpr std::array<std::string_view, 5> kVolatile{"SHLVL", "STY", "WINDOWID", "OLDPWD", "_"};
  if (name == "BERTH_DIR") {
    return true;  // so that `berth` inside a job finds the instance it runs under
  }
  return !name.starts_with("BERTH_") && !name.starts_with("SSH_") && !name.starts_with("TMUX") &&
         std::ranges::find(kVolatile, name) == kVolatile.end();
}

Environment capture_environment(const char* const* variables, const std::string& instance_dir) {
  Environment out;
  constexpr std::string_view kOwnBashEnv = "BERTH_USER_BASH_ENV=";
  std::string_view own_bash_env;
  for (const char* const* at = variables; *at != nullptr; ++at) {
    if (std::string_view(*at).starts_with(kOwnBashEnv)) {
      own_bash_env = std::string_view(*at).substr(kOwnBashEnv.size());
    }
  }
  for (; *variables != nullptr; ++variables) {
    const std::string_view entry = *variables;
    const auto equals = entry.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
      continue;  // execve hands such entries on, but nobody can have meant them
    }
    const std::string_view name = entry.substr(0, equals);
    if (name == "BERTH_DIR") {
      out.push_back("BERTH_DIR=" + instance_dir);  // it may have been relative
    } else if (entry == "BASH_ENV=" + instance_dir + "/bash_env") {
      // Inside a job it is berth's; what the user had is kept beside it.
      if (!own_bash_env.empty()) {
        out.push_back(fmt::format("BASH_ENV={}", own_bash_env));
      }
    } else if (is_inherited(name)) {
      out.emplace_back(entry);
    }
  }
  return out;
}

std::string fresh_key() {
  std::array<unsigned char, 16> bytes{};
  // Never short for so few bytes, and never interrupted once the pool is ready.
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

Status complete_submission(event::Submit& submit, const std::string& instance_dir) {
  const auto environment =
      std::make_shared<const Environment>(capture_environment(environ, instance_dir));
  for (const std::string& entry : *environment) {
    if (entry.size() > kArgumentMax) {
      return fail(
          ErrorCode::invalid,
          fmt::format("the environment variable {} has {} bytes; the kernel takes {}: unset "
                      "it first",
                      printable(entry.substr(0, entry.find('='))), entry.size(), kArgumentMax));
    }
  }
  std::map<Environment, std::shared_ptr<const Environment>> chosen;
  const mode_t mask = current_umask();
  errno = 0;
  const int nice = ::getpriority(PRIO_PROCESS, 0);
  for (JobSpec& job : submit.jobs) {
    if (job.payload.environment == nullptr) {
      job.payload.environment = environment;
    } else {
      auto& own = chosen[*job.payload.environment];
      if (own == nullptr) {
        own = std::make_shared<const Environment>(
            choose_from(*environment, *job.payload.environment));
      }
      job.payload.environment = own;
    }
    job.payload.umask = mask & 0777U;
    job.payload.nice = nice;
  }
  fill_first_id(submit.jobs);
  submit.client_key = fresh_key();
  return {};
}

}  // namespace berth
