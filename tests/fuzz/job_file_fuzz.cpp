// Any bytes are a job file or are refused with places inside the text.

#include <string_view>

#include "base/assert.hpp"
#include "jobspec/job_file.hpp"

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
    return 0;
  }
  BERTH_ASSERT(!file.error().empty());
  for (const auto& diagnostic : file.error()) {
    BERTH_ASSERT(diagnostic.at.line >= 1 && diagnostic.at.line <= size + 2);
    BERTH_ASSERT(berth::render(diagnostic, text).starts_with("fuzz.yaml:"));
  }
  return 0;
}
