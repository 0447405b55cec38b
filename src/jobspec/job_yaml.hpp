#pragma once
// A submission as a native job file for people: block style, one key a line, matrices written out,
// and what all jobs share under `defaults`.

#include <string>

#include "jobspec/job_file.hpp"

namespace berth {

/// Read again, it gives the same submission, up to bytes that are not UTF-8.
[[nodiscard]] std::string to_yaml(const JobFile& file);

/// Whether both would make the same batch; warnings and who submits it aside.
[[nodiscard]] bool same_submission(const JobFile& a, const JobFile& b);

}  // namespace berth
