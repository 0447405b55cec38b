#include "dialects/slurm_values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/moment.hpp"
#include "jobspec/job_file.hpp"
#include "jobspec/launch_words.hpp"

namespace berth {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(at + 1);
  }
}

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const bool good = !text.empty() && error == std::errc{} && stop == end;
  return good ? std::optional(value) : std::nullopt;
}

std::unexpected<Error> not_a(std::string_view text, std::string_view what) {
  return fail(ErrorCode::invalid, fmt::format("'{}' is not {}", text.substr(0, 100), what));
}

constexpr std::string_view kArrayForms = "a list of tasks; write for example 0-9, 1,3,5 or 0-99%8";

/// "3", "0-9" or "0-15:4".
Result<std::uint32_t> add_tasks(std::string_view text, std::vector<std::uint32_t>& out) {
  std::string_view part = text;
  const auto colon = part.find(':');
  const auto step = colon == std::string_view::npos ? 1 : number(part.substr(colon + 1));
  part = part.substr(0, colon);
  const auto dash = part.find('-');
  const auto first = number(part.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : number(part.substr(dash + 1));
  if (!first || !last || !step || *step == 0 || *last < *first) {
    return not_a(text, kArrayForms);
  }
  if ((*last - *first) / *step + out.size() >= kJobFileMostJobs) {
    return fail(ErrorCode::invalid,
                fmt::format("'{}' has more than {} tasks", part, kJobFileMostJobs));
  }
  for (std::uint64_t task = *first; task <= *last; task += *step) {
    out.push_back(static_cast<std::uint32_t>(task));
  }
  return *step;
}

}  // namespace

Result<Millis> parse_slurm_time(std::string_view text) {
  constexpr std::string_view kForms =
      "a time; write minutes, hours:minutes:seconds or days-hours:minutes:seconds";
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (lower == "unlimited" || lower == "infinite" || lower == "-1") {
    return Millis{0};
  }
  const auto dash = text.find('-');
  const auto days = dash == std::string_view::npos ? 0 : number(text.substr(0, dash));
  const auto fields = split(dash == std::string_view::npos ? text : text.substr(dash + 1), ':');
  // Where there are days, the first field is hours; else what it is depends on how many follow.
  std::array<std::uint64_t, 3> parts{};  // hours, minutes, seconds
  const std::size_t begin = dash != std::string_view::npos || fields.size() == 3 ? 0 : 1;
  if (!days || fields.size() + begin > parts.size()) {
    return not_a(text, kForms);
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto value = number(fields[i]);
    if (!value) {
      return not_a(text, kForms);
    }
    parts.at(begin + i) = *value;
  }
  const std::uint64_t seconds =
      ((std::uint64_t{*days} * 24 + parts[0]) * 60 + parts[1]) * 60 + parts[2];
  return Millis(static_cast<std::int64_t>(seconds * 1000));
}

Result<Bytes> parse_slurm_memory(std::string_view text) {
  const auto digits = text.find_first_not_of("0123456789");
  const auto value = number(text.substr(0, digits));
  const auto unit = digits == std::string_view::npos ? "M" : text.substr(digits);
  constexpr std::array kUnits = {std::pair{'K', kKiB}, std::pair{'M', kMiB}, std::pair{'G', kGiB},
                                 std::pair{'T', kTiB}};
  for (const auto& [letter, bytes] : kUnits) {
    const bool is_unit = !unit.empty() && (unit[0] == letter || unit[0] == letter + 32) &&
                         (unit.size() == 1 || unit.substr(1) == "B" || unit.substr(1) == "b");
    Bytes size = 0;
    if (value && is_unit && !__builtin_mul_overflow(Bytes{*value}, bytes, &size)) {
      return size;
    }
  }
  return not_a(text, "a size; write for example 500M or 16G");
}

Result<SlurmBegin> parse_slurm_begin(std::string_view text) {
  constexpr std::array kNames = {std::pair{"midnight", "0:00"}, std::pair{"noon", "12:00"},
                                 std::pair{"fika", "15:00"}, std::pair{"teatime", "16:00"},
                                 std::pair{"elevenses", "11:00"}};
  constexpr std::array kUnits = {std::pair{"seconds", 1U}, std::pair{"minutes", 60U},
                                 std::pair{"hours", 3'600U}, std::pair{"days", 86'400U},
                                 std::pair{"weeks", 604'800U}};
  for (const auto& [name, time] : kNames) {
    if (text == name) {
      return SlurmBegin{"at", time};
    }
  }
  if (text == "now" || text == "today") {
    return SlurmBegin{"in", "0s"};
  }
  if (text.starts_with("now+")) {
    const auto count_text = text.substr(4, text.find_first_not_of("0123456789", 4) - 4);
    const auto unit_text = text.substr(4 + count_text.size());
    const auto unit = std::ranges::find_if(kUnits, [&](const auto& known) {
      return std::string_view(known.first).starts_with(unit_text);
    });
    const auto count = number(count_text);
    if (!count || unit == kUnits.end()) {
      return not_a(text, "a time; write for example now+30minutes or now+2hours");
    }
    return SlurmBegin{"in", fmt::format("{}s", std::uint64_t{*count} * unit->second)};
  }
  std::string time(text);
  const bool morning = text.ends_with("AM");
  if (morning || text.ends_with("PM")) {
    const auto colon = text.find(':');
    const auto hour = number(text.substr(0, colon));
    if (!hour || *hour < 1 || *hour > 12 || colon == std::string_view::npos) {
      return not_a(text, "a time of the day; write for example 4:30PM");
    }
    auto rest = text.substr(colon, text.size() - 2 - colon);
    rest = rest.substr(0, rest.find_last_not_of(' ') + 1);
    time = fmt::format("{}{}", *hour % 12 + (morning ? 0 : 12), rest);
  }
  // Whether it is one is the same at any moment.
  TRY(parse_moment(time, Millis{0}));
  return SlurmBegin{"at", std::move(time)};
}

Result<ArrayTasks> parse_array(std::string_view text) {
  ArrayTasks out;
  if (const auto percent = text.find('%'); percent != std::string_view::npos) {
    const auto limit = number(text.substr(percent + 1));
    if (!limit || *limit == 0) {
      return not_a(text, kArrayForms);
    }
    out.limit = *limit;
    text = text.substr(0, percent);
  }
  const auto parts = split(text, ',');
  for (const auto part : parts) {
    TRY_ASSIGN(const auto step, add_tasks(part, out.indices));
    out.step = parts.size() == 1 ? step : 1;
  }
  std::sort(out.indices.begin(), out.indices.end());
  out.indices.erase(std::unique(out.indices.begin(), out.indices.end()), out.indices.end());
  return out;
}

FilledPath fill_path(std::string_view pattern, const PathWords& words) {
  // A path with a backslash is taken as it is written.
  const bool literal = pattern.find('\\') != std::string_view::npos;
  std::string out;
  std::string unknown;
  std::string plain;
  const auto flush = [&] {
    out += protect_launch_words(plain);
    plain.clear();
  };
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '\\' && literal) {
      continue;
    }
    if (pattern[at] != '%' || literal || at + 1 == pattern.size()) {
      plain += pattern[at];
      continue;
    }
    // Digits ask for leading zeros, which an id that is not known yet cannot have.
    const auto sign = pattern.find_first_not_of("0123456789", at + 1);
    const auto width = sign == std::string_view::npos
                           ? std::nullopt
                           : number(pattern.substr(at + 1, sign - at - 1));
    if (sign == std::string_view::npos) {
      plain += pattern.substr(at);
      break;
    }
    at = sign;
    switch (pattern[at]) {
      case '%':
        plain += '%';
        break;
      case 'j':
      case 'J':
        flush();
        out += words.job_id;
        break;
      case 'A':
        flush();
        out += words.array_id;
        break;
      case 'a':
        plain += fmt::format("{:0>{}}", words.task, std::min(width.value_or(0), 10U));
        break;
      case 'b':
        plain += words.task.back();
        break;
      case 'x':
        plain += words.name;
        break;
      case 'u':
        plain += words.user;
        break;
      case 'N':
        plain += words.host;
        break;
      case 'n':
      case 't':
        plain += '0';
        break;
      case 's':
        plain += "batch";
        break;
      default:
        unknown = unknown.empty() ? fmt::format("%{}", pattern[at]) : unknown;
        plain += fmt::format("%{}", pattern[at]);
    }
  }
  flush();
  return {std::move(out), std::move(unknown)};
}

}  // namespace berth
