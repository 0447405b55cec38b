#pragma once
// The job file as a JSON Schema (draft 2020-12), for editors. Written from the parser's own keys;
// docs/formats/jobfile.schema.json is its output.

#include <string>

namespace berth {

/// Ends with a newline. The schema lets through some files that the parser refuses (circles, say),
/// but refuses none that the parser accepts.
[[nodiscard]] std::string job_file_schema();

}  // namespace berth
