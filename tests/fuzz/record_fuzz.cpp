// A record file. The first byte: "r", the rest is the file as it is; anything else, the rest is
// lines that get their checksums here, which no fuzzer guesses. Every record can be read, what
// follows it does not change what it said, and a verdict can be told.

#include <algorithm>

#include <fmt/format.h>

#include "proc/record.hpp"
#include "proc/record_line.hpp"
#include "support.hpp"

namespace {

using namespace berth;

std::string sealed(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    out += fmt::format("{} *{:08x}\n", line, crc32(line));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return out;
}

void check_record(std::string_view bytes) {
  const Record record = parse_record(bytes);
  const auto lines = static_cast<std::size_t>(std::ranges::count(bytes, '\n')) + 1;
  BERTH_ASSERT(record.damaged <= lines && record.commands.size() + record.signals.size() <= lines);
  BERTH_ASSERT(!record.start || record.start->pid > 0);
  if (record.exit) {
    const Verdict verdict = verdict_of(*record.exit);
    BERTH_ASSERT(verdict.killed == (record.exit->why == "killed"));
    BERTH_ASSERT(verdict.failure.has_value() == (record.exit->why != "ok"));
    BERTH_ASSERT(verdict.message.size() < bytes.size() * 4 + 1000);
  }
  // More lines, or a torn one, take nothing back.
  const std::string longer =
      std::string(bytes) + "\n" + sealed("EXIT why=ok index=9\nSTART pid=7 start=7") + "EXIT why";
  const Record more = parse_record(longer);
  BERTH_ASSERT(more.start.has_value() && more.exit.has_value());
  BERTH_ASSERT(!record.start || more.start->start_ticks == record.start->start_ticks);
  BERTH_ASSERT(!record.exit || more.exit->why == record.exit->why);
  BERTH_ASSERT(more.damaged >= record.damaged);
}

/// Any text survives its way through a line.
void check_text(std::string_view text) {
  RecordLine line("SIGNAL");
  const std::string written(line.text("what", text).finish());
  BERTH_ASSERT(std::ranges::count(written, '\n') == 1);
  const Record record = parse_record(written);
  BERTH_ASSERT(record.damaged == 0 && record.signals.size() == 1);
  BERTH_ASSERT(record.signals[0] == text.substr(0, 600));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const auto text = fuzz::text_of(data + 1, size - 1);
  check_record(data[0] == 'r' ? std::string(text) : sealed(text));
  check_text(text);
  return 0;
}
