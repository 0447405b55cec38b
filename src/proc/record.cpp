#include "proc/record.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <map>

#include "base/units.hpp"
#include "proc/record_line.hpp"

namespace berth {
namespace {

using Fields = std::map<std::string_view, std::string_view, std::less<>>;

std::string percent_decode(std::string_view text) {
  const auto nibble = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
  const auto is_hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && is_hex(text[i + 1]) && is_hex(text[i + 2])) {
      out.push_back(static_cast<char>(nibble(text[i + 1]) * 16 + nibble(text[i + 2])));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

/// The body of a line whose checksum holds.
std::optional<std::string_view> checked_body(std::string_view line) {
  constexpr std::size_t kSuffix = 10;  // " *" and eight digits
  if (line.size() <= kSuffix || line.substr(line.size() - kSuffix, 2) != " *") {
    return std::nullopt;
  }
  const std::string_view digits = line.substr(line.size() - 8);
  line.remove_suffix(kSuffix);
  return fmt::format("{:08x}", crc32(line)) == digits ? std::optional(line) : std::nullopt;
}

template <class T>
std::optional<T> number(const Fields& fields, std::string_view key) {
  const auto found = fields.find(key);
  if (found == fields.end()) {
    return std::nullopt;
  }
  T value{};
  const std::string_view text = found->second;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

std::optional<Millis> millis(const Fields& fields, std::string_view key) {
  const auto value = number<std::int64_t>(fields, key);
  return value ? std::optional(Millis(*value)) : std::nullopt;
}

std::string text(const Fields& fields, std::string_view key) {
  const auto found = fields.find(key);
  return found == fields.end() ? std::string() : percent_decode(found->second);
}

Record::Exit parse_exit(const Fields& fields) {
  Record::Exit exit;
  exit.why = text(fields, "why");
  exit.index = number<std::uint32_t>(fields, "index").value_or(0);
  exit.code = number<std::int32_t>(fields, "code");
  exit.signal = number<std::int32_t>(fields, "signal");
  exit.user_time = millis(fields, "utime");
  exit.system_time = millis(fields, "stime");
  if (const auto kib = number<std::uint64_t>(fields, "maxrss")) {
    exit.max_rss = *kib * kKiB;
  }
  exit.peak_memory = number<Bytes>(fields, "peak");
  exit.leftover = number<std::uint32_t>(fields, "leftover").value_or(0);
  exit.leftover_names = text(fields, "names");
  exit.output_lost = number<Bytes>(fields, "lost").value_or(0);
  exit.output_cut = number<Bytes>(fields, "cut").value_or(0);
  exit.elapsed = millis(fields, "elapsed").value_or(Millis(0));
  exit.ended_wall = millis(fields, "wall").value_or(Millis(0));
  exit.time_limit = millis(fields, "limit").value_or(Millis(0));
  exit.stage = text(fields, "stage");
  exit.name = text(fields, "name");
  exit.error = number<int>(fields, "errno").value_or(0);
  exit.size = number<std::uint64_t>(fields, "size").value_or(0);
  exit.largest = number<std::uint64_t>(fields, "largest").value_or(0);
  exit.log = text(fields, "log");
  exit.log_from = number<std::uint64_t>(fields, "logfrom").value_or(0);
  return exit;
}

void take_line(Record& record, std::string_view body) {
  const auto space = body.find(' ');
  const std::string_view word = body.substr(0, space);
  Fields fields;
  while (!body.empty()) {
    const auto end = body.find(' ');
    const std::string_view item = body.substr(0, end);
    if (const auto equals = item.find('='); equals != std::string_view::npos) {
      fields.emplace(item.substr(0, equals), item.substr(equals + 1));
    }
    body.remove_prefix(end == std::string_view::npos ? body.size() : end + 1);
  }
  if (word == "START" && !record.start) {
    const auto pid = number<std::int32_t>(fields, "pid");
    const auto ticks = number<std::uint64_t>(fields, "start");
    if (!pid || *pid <= 0 || !ticks) {
      ++record.damaged;
      return;
    }
    record.start = {number<unsigned>(fields, "v").value_or(0), *pid, *ticks,
                    millis(fields, "wall").value_or(Millis(0))};
  } else if (word == "COMMAND") {
    record.commands.push_back({number<std::uint32_t>(fields, "index").value_or(0),
                               number<std::int32_t>(fields, "code"),
                               number<std::int32_t>(fields, "signal")});
  } else if (word == "SIGNAL") {
    record.signals.push_back(text(fields, "what"));
  } else if (word == "ENDING") {
    record.ending = text(fields, "names");
  } else if (word == "EXIT" && !record.exit) {
    record.exit = parse_exit(fields);
  } else if (word == "REVOKED") {
    record.revoked = true;
  }
}

std::string cannot_start_message(const Record::Exit& exit) {
  const char* error = std::strerror(exit.error);
  if (exit.error == E2BIG) {
    return fmt::format(
        "cannot start: {}: arguments and environment take {} bytes, the longest of them {}; Linux "
        "takes at most 131072 bytes in one, and a quarter of the stack limit in all: pass the data "
        "in a file",
        exit.name, exit.size, exit.largest);
  }
  if (exit.stage == "cwd") {
    return fmt::format("cannot start: {}: {}; check its work directory", exit.name, error);
  }
  if (exit.stage == "log") {
    return fmt::format("cannot start: cannot open the log {}: {}; check the job's log", exit.name,
                       error);
  }
  if (exit.stage == "interpreter") {
    return fmt::format("cannot start: {}: its interpreter does not exist; check its first line",
                       exit.name);
  }
  if (exit.stage == "exec" && exit.error == ENOENT) {
    const bool path = exit.name.find('/') != std::string::npos;
    return fmt::format("cannot start: {}: command not found{}", exit.name,
                       path ? "; check the path" : " in the job's PATH");
  }
  if (exit.stage == "exec" && exit.error == EACCES) {
    return fmt::format("cannot start: {}: permission denied; is it executable?", exit.name);
  }
  if (exit.stage == "exec" && exit.error == EISDIR) {
    return fmt::format("cannot start: {}: is a directory, not a program", exit.name);
  }
  if (exit.stage == "changed") {
    return fmt::format("cannot start: {}: {}; run the job file again for what there is now",
                       exit.name,
                       exit.error == 0 ? "its content is not what was submitted" : error);
  }
  if (exit.stage == "spec") {
    return "cannot start: the supervisor did not understand its instructions; do berthd and "
           "berth-shim come from the same version?";
  }
  return fmt::format("cannot start: {}: {}{}{}", exit.stage, exit.name,
                     exit.name.empty() ? "" : ": ", error);
}

std::string main_message(const Record::Exit& exit) {
  if (exit.why == "cannot_start") {
    return cannot_start_message(exit);
  }
  if (exit.why == "timeout") {
    return fmt::format("ran into its time limit of {}", format_duration(exit.time_limit));
  }
  if (exit.why == "killed") {
    return "killed on request";
  }
  if (exit.why == "host_oom") {
    return "ended by the kernel: out of host memory";
  }
  if (exit.why == "signal") {
    return fmt::format("killed by {}", signal_name(exit.signal.value_or(0)));
  }
  if (exit.why == "exit") {
    return fmt::format("exited with code {}", exit.code.value_or(0));
  }
  return {};
}

}  // namespace

Record parse_record(std::string_view bytes) {
  Record record;
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const std::string_view line = bytes.substr(0, end);
    // A line without its newline is torn even if its checksum happens to be complete.
    const auto body = end == std::string_view::npos ? std::nullopt : checked_body(line);
    if (body) {
      take_line(record, *body);
    } else if (!line.empty()) {
      ++record.damaged;
    }
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  }
  return record;
}

Verdict verdict_of(const Record::Exit& exit) {
  Verdict verdict;
  if (exit.why == "timeout") {
    verdict.failure = FailureClass::timeout;
  } else if (exit.why == "cannot_start") {
    verdict.failure = FailureClass::cannot_start;
  } else if (exit.why == "host_oom") {
    verdict.failure = FailureClass::host_oom;
  } else if (exit.why != "ok") {
    verdict.failure = FailureClass::exit;
  }
  verdict.killed = exit.why == "killed";
  verdict.exit_code = exit.code;
  verdict.signal = exit.signal;
  verdict.user_time = exit.user_time;
  verdict.system_time = exit.system_time;
  verdict.max_rss = exit.max_rss;
  verdict.peak_memory = exit.peak_memory;
  verdict.leftover = exit.leftover;
  verdict.log_dropped = exit.output_cut;
  verdict.ended_wall = exit.ended_wall;
  verdict.message = main_message(exit);
  const auto note = [&verdict](const std::string& text) {
    verdict.message += verdict.message.empty() ? "" : "; ";
    verdict.message += text;
  };
  if (exit.index > 0 && exit.why != "ok") {
    note(fmt::format("in command {}", exit.index + 1));
  }
  if (exit.leftover > 0) {
    note(fmt::format(
        "{} left running after the last command and ended: {}",
        exit.leftover == 1 ? "1 process was" : fmt::format("{} processes were", exit.leftover),
        exit.leftover_names));
  }
  if (exit.output_lost > 0) {
    note(fmt::format("{} bytes of output lost: disk full", exit.output_lost));
  }
  return verdict;
}

Verdict verdict_lost(std::string why, Millis wall) {
  Verdict verdict;
  verdict.failure = FailureClass::node_lost;
  verdict.message = std::move(why);
  verdict.ended_wall = wall;
  return verdict;
}

std::string signal_name(int signal) {
  // sigabbrev_np says "SEGV" and knows every name; it came with glibc 2.32.
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

}  // namespace berth
