// Signals by their names.

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "core/job.hpp"
#include "core/rule_table.hpp"

namespace berth {
namespace {

constexpr std::array kSignals = {
    std::pair{SIGHUP, std::string_view("HUP")},     std::pair{SIGINT, std::string_view("INT")},
    std::pair{SIGQUIT, std::string_view("QUIT")},   std::pair{SIGUSR1, std::string_view("USR1")},
    std::pair{SIGUSR2, std::string_view("USR2")},   std::pair{SIGALRM, std::string_view("ALRM")},
    std::pair{SIGTERM, std::string_view("TERM")},   std::pair{SIGCONT, std::string_view("CONT")},
    std::pair{SIGURG, std::string_view("URG")},     std::pair{SIGXCPU, std::string_view("XCPU")},
    std::pair{SIGWINCH, std::string_view("WINCH")}, std::pair{SIGIO, std::string_view("IO")},
    std::pair{SIGPWR, std::string_view("PWR")}};

constexpr std::int32_t kLastSignal = 64;

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  });
  return out.starts_with("SIG") ? out.substr(3) : out;
}

std::optional<std::int32_t> signal_of(std::string_view text) {
  std::int32_t number = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && at == end) {
    const bool can_be_handled =
        number > 0 && number <= kLastSignal && number != SIGKILL && number != SIGSTOP;
    return can_be_handled ? std::optional(number) : std::nullopt;
  }
  const std::string name = upper(text);
  const auto* const it = std::ranges::find(kSignals, std::string_view(name),
                                           [](const auto& pair) { return pair.second; });
  return it == kSignals.end() ? std::nullopt : std::optional(it->first);
}

}  // namespace

Result<WarningSignal> make_warning(std::string_view name, Millis before) {
  const auto signal = signal_of(name);
  if (!signal) {
    return fail(
        ErrorCode::invalid,
        fmt::format("'{}' is no signal that a program can handle; USR1 and TERM are", name));
  }
  constexpr Millis kTenYears{10LL * 365 * 24 * 3600 * 1000};
  if (before <= Millis{0} || before > kTenYears) {
    return fail(ErrorCode::invalid, "a warning must come some time before the end");
  }
  return WarningSignal{*signal, before};
}

Result<WarningSignal> parse_warning(std::string_view text) {
  const std::size_t at = text.find('@');
  Millis before = kUsualWarning;
  if (at != std::string_view::npos) {
    const auto parsed = parse_duration(text.substr(at + 1));
    if (!parsed) {
      return fail(ErrorCode::invalid,
                  fmt::format("expected a signal and a time as in USR1@120, got '{}'", text));
    }
    before = *parsed;
  }
  return make_warning(text.substr(0, at), before);
}

std::string format_warning(const WarningSignal& warning) {
  if (warning.signal == 0) {
    return {};
  }
  const auto* const it =
      std::ranges::find(kSignals, warning.signal, [](const auto& pair) { return pair.first; });
  return fmt::format(
      "{}@{}", it == kSignals.end() ? fmt::format("{}", warning.signal) : std::string(it->second),
      exact_duration(warning.before));
}

}  // namespace berth
