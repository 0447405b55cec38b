#include "cli/submitter.hpp"

#include <fmt/format.h>
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
#include "core/rule_table.hpp"
#include "jobspec/entry_checks.hpp"

namespace berth::cli {
namespace {

constexpr std::string_view kShellSyntax = " \t\r\n|&;<>()$`\"'\\*?[]{}!#~";
/// Options of `add` that stand alone; all others take a value.
constexpr std::array<std::string_view, 8> kFlags{
    "--help", "-h", "--json", "--linger", "--requeue", "--dry-run", "--detach", "--snapshot"};

std::optional<std::uint32_t> parse_u32(std::string_view text) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && at == end && !text.empty() ? std::optional(value) : std::nullopt;
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
            return entry.starts_with("CUDA_VISIBLE_DEVICES=") &&
                   berth::sets_visible_devices(std::string_view(entry));
          }));
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

Result<std::pair<std::string, std::string>> parse_rule(std::string_view text, RuleScope scope) {
  const auto equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) {
    return fail(
        ErrorCode::invalid,
        fmt::format("'{}' is not a rule; write KEY=VALUE, as in gpu_left=1", printable(text)));
  }
  std::pair rule{canonical_rule(text.substr(0, equals)), std::string(text.substr(equals + 1))};
  TRY(check_override(rule.first, rule.second, scope));
  return rule;
}

}  // namespace berth::cli
