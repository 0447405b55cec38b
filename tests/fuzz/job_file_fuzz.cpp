// Any bytes are a job file or are refused with places inside the text. What is accepted, written
// out and read again has as many jobs, and is written the same.

#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/utf8.hpp"
#include "jobspec/job_file.hpp"
#include "jobspec/job_writer.hpp"

namespace {

std::string write(const berth::JobFile& file) {
  std::string out = berth::job_file_head(file);
  for (std::size_t i = 0; i < file.jobs.size(); ++i) {
    out += i > 0 ? ", " : "";
    berth::append_job(out, file.jobs[i], file.jobs);
  }
  return out + "]}";
}

void check_round_trip(const berth::JobFile& file) {
  const auto written = write(file);
  BERTH_ASSERT(berth::is_utf8(written));
  if (written.find("\xEF\xBF\xBD") != std::string::npos) {
    return;  // where bytes had to be replaced, names that differed may be equal
  }
  const auto again = berth::parse_job_file(written, "again.json", "/base");
  BERTH_ASSERT(again && again->jobs.size() == file.jobs.size());
  BERTH_ASSERT(write(*again) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = berth::parse_job_file(text, "fuzz.yaml", "/base");
  if (file) {
    for (const auto& job : file->jobs) {
      BERTH_ASSERT(!job.name.empty() && !job.payload.commands.empty());
      for (const auto needed : job.after_index) {
        BERTH_ASSERT(needed < file->jobs.size());
      }
    }
    if (file->jobs.size() <= 1000) {
      check_round_trip(*file);
    }
    return 0;
  }
  BERTH_ASSERT(!file.error().empty());
  for (const auto& diagnostic : file.error()) {
    BERTH_ASSERT(diagnostic.at.line >= 1 && diagnostic.at.line <= size + 2);
    const auto shown = berth::render(diagnostic, text);
    BERTH_ASSERT(shown.starts_with("fuzz.yaml:") && berth::is_utf8(shown));
  }
  return 0;
}
