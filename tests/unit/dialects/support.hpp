#pragma once
// Reading files that exist only in a test.

#include <map>
#include <string>
#include <string_view>

#include "dialects/dialect.hpp"
#include "jobspec/job_writer.hpp"

namespace berth {

/// Files by absolute path.
using Files = std::map<std::string, std::string>;

/// Reads them; they must outlive it.
inline ReadFile reader(const Files& files) {
  return [&files](const std::filesystem::path& path) -> Result<std::string> {
    const auto it = files.find(path.native());
    if (it == files.end()) {
      return fail(ErrorCode::not_found, "there is no file '" + path.native() + "'");
    }
    return it->second;
  };
}

inline Parsed parse_text(std::string_view text, const std::string& file_name,
                         const DialectOptions& options = {}, const Files& others = {},
                         const std::string& base_dir = "/home/user/project/scripts") {
  Source source;
  source.text = text;
  source.file_name = file_name;
  source.base_dir = base_dir;
  source.read = reader(others);
  return parse_file(source, options);
}

/// "file:2:1: message", one per line; empty: none.
inline std::string mistakes(const Parsed& parsed) {
  std::string out;
  if (!parsed) {
    for (const Diagnostic& found : parsed.error()) {
      out += found.file + ":" + std::to_string(found.at.line) + ":" +
             std::to_string(found.at.column) + ": " + found.message + "\n";
    }
  }
  return out;
}

/// As `berth check --json` prints it.
inline std::string as_json(const JobFile& file) {
  std::string out = job_file_head(file);
  for (std::size_t i = 0; i < file.jobs.size(); ++i) {
    out += i > 0 ? ",\n  " : "\n  ";
    append_job(out, file.jobs[i], file.jobs);
  }
  return out + "\n]}\n";
}

}  // namespace berth
