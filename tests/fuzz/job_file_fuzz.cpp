// Any bytes are a job file or are refused with places inside the text. What is accepted, written
// out and read again has as many jobs, and is written the same.

#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/utf8.hpp"
#include "jobspec/job_file.hpp"
#include "jobspec/job_writer.hpp"
#include "jobspec/job_yaml.hpp"

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
  const auto yaml = berth::parse_job_file(berth::to_yaml(file), "again.yaml", "/base");
  BERTH_ASSERT(yaml && berth::same_submission(*yaml, file));
}

/// A table, which is behind the first line that says so.
berth::Result<std::string> table_in(std::string_view text) {
  constexpr std::string_view kMark = "# table\n";
  const auto at = text.find(kMark);
  return std::string(at == std::string_view::npos ? "a,b\n1,2\n" : text.substr(at + kMark.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = berth::parse_job_file(text, "fuzz.yaml", "/base", berth::Millis{0},
                                          [&](const auto&) { return table_in(text); });
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
    const bool here = diagnostic.file == "fuzz.yaml";
    BERTH_ASSERT(shown.starts_with(here ? "fuzz.yaml:" : "/") && berth::is_utf8(shown));
  }
  return 0;
}
