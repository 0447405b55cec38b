#pragma once
// Metrics out of files that programs leave: JSON, JSON lines, CSV, and what `berth report` wrote.

#include <map>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "results/observations.hpp"

namespace berth {

/// The file's own name decides: .json, .jsonl or .ndjson, .csv or .tsv; any other is taken for JSON
/// lines if it begins with a brace, else for CSV. Keys inside others are joined by dots; every
/// number is a metric, but for epochs and steps, which say where it belongs.
[[nodiscard]] Result<Observations> metrics_of_file(std::string_view text, std::string_view path);

/// Lines {"metrics":{"acc":0.93},"step":3}; others, and a last one half written, are passed over.
[[nodiscard]] Observations metrics_of_report(std::string_view text);

/// `path` with {name}, {job_id} and {parameter} put in. The error names what is not known.
[[nodiscard]] Result<std::string> fill_in(std::string_view path,
                                          const std::map<std::string, std::string>& values);

}  // namespace berth
