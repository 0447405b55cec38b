#include "cli/submitter.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "api/text.hpp"
#include "cli/terminal.hpp"
#include "jobspec/entry_checks.hpp"

extern char** environ;

namespace berth::cli {
namespace {

/// The longest single string execve takes, less its terminating NUL.
constexpr std::size_t kArgumentMax = 131'071;
constexpr std::string_view kShellSyntax = " \t\r\n|&;<>()$`\"'\\*?[]{}!#~";
/// Options of `add` that stand alone; all others take a value.
constexpr std::array<std::string_view, 4> kFlags{"--help", "-h", "--json", "--linger"};

std::optional<std::uint32_t> parse_u32(std::string_view text) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && at == end && !text.empty() ? std::optional(value) : std::nullopt;
}

std::string fresh_key() {
  std::array<unsigned char, 16> bytes{};
  // Never short for so few bytes, and never interrupted once the pool is ready.
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace

AddWords split_add_words(const std::vector<std::string>& words) {
  AddWords out;
  auto at = words.begin();
  while (at != words.end()) {
    if (*at == "--") {
      ++at;
      break;
    }
    if (!at->starts_with('-') || *at == "-") {
      break;
    }
    const bool has_value = at->find('=') != std::string::npos;
    const bool takes_next = !has_value && std::ranges::find(kFlags, *at) == kFlags.end();
    out.options.push_back(*at++);
    if (takes_next && at != words.end() && *at != "--") {
      out.options.push_back(*at++);
    }
  }
  out.command.assign(at, words.end());
  return out;
}

Result<Command> make_command(std::vector<std::string> words) {
  if (words.empty()) {
    return fail(ErrorCode::invalid, "no command given; for example: berth add python train.py");
  }
  if (words[0].find_first_not_of(" \t\r\n") == std::string::npos) {
    return fail(ErrorCode::invalid, "the command is empty; for example: berth add python train.py");
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string shown = printable(words[i].substr(0, 40));
    if (words[i].find('\0') != std::string::npos) {
      return fail(ErrorCode::invalid,
                  fmt::format("word {} of the command, '{}', contains a NUL byte", i + 1, shown));
    }
    if (words[i].size() > kArgumentMax) {
      return fail(ErrorCode::invalid,
                  fmt::format("word {} of the command, '{}…', has {} bytes; the kernel takes {} in "
                              "one argument: pass the data in a file",
                              i + 1, shown, words[i].size(), kArgumentMax));
    }
  }
  Command command;
  command.shell = words.size() == 1 && words[0].find_first_of(kShellSyntax) != std::string::npos;
  command.argv = std::move(words);
  return command;
}

bool sets_visible_devices(const Command& command) {
  return std::ranges::any_of(command.argv, [](const std::string& word) {
    return berth::sets_visible_devices(std::string_view(word));
  });
}

bool chooses_own_gpus(const JobSpec& job) {
  return job.request.gpus.max > 0 &&
         (std::ranges::any_of(job.payload.commands, sets_visible_devices) ||
          std::ranges::any_of(job.payload.extra_env, [](const std::string& entry) {
            return entry.starts_with("CUDA_VISIBLE_DEVICES=");
          }));
}

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
  for (; *variables != nullptr; ++variables) {
    const std::string_view entry = *variables;
    const auto equals = entry.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
      continue;  // execve hands such entries on, but nobody can have meant them
    }
    const std::string_view name = entry.substr(0, equals);
    if (name == "BERTH_DIR") {
      out.push_back("BERTH_DIR=" + instance_dir);  // it may have been relative
    } else if (is_inherited(name)) {
      out.emplace_back(entry);
    }
  }
  return out;
}

Result<std::string> current_directory() {
  struct stat here{};
  struct stat named{};
  const char* pwd = std::getenv("PWD");
  if (pwd != nullptr && *pwd == '/' && ::stat(".", &here) == 0 && ::stat(pwd, &named) == 0 &&
      here.st_dev == named.st_dev && here.st_ino == named.st_ino) {
    return std::string(pwd);
  }
  std::error_code error;
  const auto path = std::filesystem::current_path(error);
  if (error || !path.is_absolute()) {
    return fail(ErrorCode::io,
                fmt::format("cannot tell the current directory: {}; was it removed? cd to another",
                            error.message()));
  }
  return path.native();
}

std::string make_absolute(const std::string& path, const std::string& base) {
  if (path.starts_with('/')) {
    return path;
  }
  return (std::filesystem::path(base) / path).lexically_normal().native();
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
  const mode_t mask = ::umask(0);
  ::umask(mask);
  errno = 0;
  const int nice = ::getpriority(PRIO_PROCESS, 0);
  for (JobSpec& job : submit.jobs) {
    job.payload.environment = environment;
    job.payload.umask = mask & 0777U;
    job.payload.nice = nice;
  }
  submit.client_key = fresh_key();
  return {};
}

Result<GpuCount> parse_gpu_count(std::string_view text) {
  const auto dots = text.find("..");
  const auto min = parse_u32(text.substr(0, dots));
  const auto max = dots == std::string_view::npos ? min : parse_u32(text.substr(dots + 2));
  if (!min || !max || *min > *max || *max > 1024) {
    return fail(ErrorCode::invalid,
                fmt::format("'{}' is not a number of GPUs; write 2, 1..4 or 0", printable(text)));
  }
  return GpuCount{*min, *max};
}

Result<std::pair<std::string, std::uint64_t>> parse_resource(std::string_view text) {
  const auto equals = text.find('=');
  const auto count =
      equals == std::string_view::npos ? std::nullopt : parse_u32(text.substr(equals + 1));
  if (equals == 0 || !count || !is_utf8(text)) {
    return fail(
        ErrorCode::invalid,
        fmt::format("'{}' is not a resource; write NAME=N, as in licence=1", printable(text)));
  }
  return std::pair{std::string(text.substr(0, equals)), std::uint64_t{*count}};
}

}  // namespace berth::cli
