// A streamed submission. The first byte says how long a line may be, the rest is the text. Where it
// is cut into pieces changes nothing; a job that is accepted is written the same once it has been
// read again, and follows only jobs before it.

#include <vector>

#include "api/ndjson.hpp"
#include "api/wire.hpp"
#include "support.hpp"

namespace {

using namespace berth;

struct Split {
  std::vector<std::string> lines;
  std::string error;
  bool operator==(const Split&) const = default;
};

/// Cut into pieces of these lengths, again and again; 0: one piece.
Split split(std::string_view text, std::size_t line_max, std::size_t first, std::size_t second) {
  Split out;
  LineSplitter splitter(line_max);
  const auto take = [&](std::string_view line) -> Status {
    BERTH_ASSERT(!line.empty() && line.find('\n') == std::string_view::npos);
    BERTH_ASSERT(line.size() <= line_max);
    out.lines.emplace_back(line);
    return {};
  };
  std::size_t length = first == 0 ? text.size() : first;
  while (!text.empty()) {
    if (const auto fed = splitter.feed(text.substr(0, length), take); !fed) {
      fuzz::check_error(fed.error());
      out.error = fed.error().message;
      return out;
    }
    text.remove_prefix(std::min(length, text.size()));
    length = length == first ? second : first;
  }
  BERTH_ASSERT(splitter.finish(take));
  BERTH_ASSERT(splitter.lines() == out.lines.size());
  return out;
}

void check_jobs(const std::vector<std::string>& lines) {
  if (lines.empty()) {
    return;
  }
  const auto head = decode_stream_head(lines.front());
  if (!head) {
    return fuzz::check_error(head.error());
  }
  BERTH_ASSERT(head->environment != nullptr);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto job = decode_stream_job(lines[i], *head, i - 1);
    if (!job) {
      fuzz::check_error(job.error());
      BERTH_ASSERT(job.error().message.find(std::to_string(i + 1)) != std::string::npos);
      return;
    }
    BERTH_ASSERT(!job->payload.commands.empty() && job->payload.environment != nullptr);
    for (const auto needed : job->after_index) {
      BERTH_ASSERT(needed < i - 1);
    }
    const auto written = encode_stream_job(*job);
    BERTH_ASSERT(is_utf8(written) && written.find('\n') == std::string::npos);
    const auto again = decode_stream_job(written, *head, i - 1);
    BERTH_ASSERT(again && again->payload == job->payload && encode_stream_job(*again) == written);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::size_t line_max = data[0] < 64 ? data[0] : 1U << 20U;
  const auto text = fuzz::text_of(data + 1, size - 1);
  const Split whole = split(text, line_max, 0, 0);
  BERTH_ASSERT(split(text, line_max, 1, 1) == whole);
  BERTH_ASSERT(split(text, line_max, 1 + size % 7, 1 + size % 31) == whole);
  if (whole.error.empty()) {
    check_jobs(whole.lines);
  }
  return 0;
}
