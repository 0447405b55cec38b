#pragma once
// What the fuzz targets of job file dialects share.

#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/utf8.hpp"
#include "dialects/dialect.hpp"
#include "jobspec/job_writer.hpp"

namespace berth::fuzz {

/// As a native job file.
inline std::string write_native(const JobFile& file) {
  std::string out = job_file_head(file);
  for (std::size_t i = 0; i < file.jobs.size(); ++i) {
    out += i > 0 ? ", " : "";
    append_job(out, file.jobs[i], file.jobs);
  }
  return out + "]}";
}

/// What is accepted makes jobs that can be written as a native file, and read again mean the same.
/// What is refused is refused with places inside the text.
inline void check_parsed(const Parsed& file, std::string_view text) {
  if (!file) {
    BERTH_ASSERT(!file.error().empty());
    for (const Diagnostic& diagnostic : file.error()) {
      BERTH_ASSERT(diagnostic.at.line >= 1 && diagnostic.at.line <= text.size() + 2);
      BERTH_ASSERT(is_utf8(render(diagnostic, text)));
    }
    return;
  }
  for (const JobSpec& job : file->jobs) {
    BERTH_ASSERT(!job.name.empty() && !job.payload.commands.empty());
    BERTH_ASSERT(job.payload.fingerprint != 0);
    BERTH_ASSERT(job.request.gpus.min <= job.request.gpus.max);
  }
  const std::string written = write_native(*file);
  BERTH_ASSERT(is_utf8(written));
  if (written.find("\xEF\xBF\xBD") != std::string::npos) {
    return;  // where bytes had to be replaced, names that differed may be equal
  }
  const auto again = parse_job_file(written, "again.json", "/elsewhere");
  BERTH_ASSERT(again && again->jobs.size() == file->jobs.size());
  BERTH_ASSERT(write_native(*again) == written);
}

/// Every file there is has this content.
inline Source source_of(std::string_view text, std::string name, std::string content) {
  Source source;
  source.text = text;
  source.file_name = std::move(name);
  source.base_dir = "/base";
  source.read = [content = std::move(content)](
                    const std::filesystem::path&) -> Result<std::string> { return content; };
  return source;
}

}  // namespace berth::fuzz
