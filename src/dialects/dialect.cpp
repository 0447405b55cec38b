#include "dialects/dialect.hpp"

#include <array>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "dialects/unused_options.hpp"
#include "jobspec/fingerprint.hpp"

namespace berth {
namespace {

constexpr std::array kNames = {std::pair{Dialect::native, std::string_view("native")},
                               std::pair{Dialect::fedwhat, std::string_view("fedwhat")},
                               std::pair{Dialect::commands, std::string_view("commands")},
                               std::pair{Dialect::gpu_manager, std::string_view("gpu_manager")},
                               std::pair{Dialect::script, std::string_view("script")}};

Parsed parse_as(Dialect dialect, const Source& source, const DialectOptions& options) {
  switch (dialect) {
    case Dialect::fedwhat:
      return parse_fedwhat(source, options);
    case Dialect::commands:
      return parse_commands(source, options);
    case Dialect::gpu_manager:
      return parse_gpu_manager(source, options);
    case Dialect::script:
      return parse_script(source, options);
    case Dialect::native:
      break;
  }
  return parse_job_file(source.text, source.file_name, source.base_dir, source.now, source.read,
                        source.lacks_directory);
}

/// The command line goes before what the file says.
void overlay(JobFile& file, const DialectOptions& options) {
  if (!options.name.empty()) {
    file.name = options.name;
  }
  if (options.max_concurrent) {
    file.max_concurrent = *options.max_concurrent;
  }
  if (options.min_memory) {
    file.rules["min_free_memory"] = fmt::format("{}", *options.min_memory);
  }
  if (options.max_util) {
    file.rules["max_utilization"] = fmt::format("{}", *options.max_util);
  }
  if (options.max_wait) {
    file.rules["max_wait"] = fmt::format("{}ms", options.max_wait->count());
  }
  for (const auto& [key, value] : options.rules) {
    file.rules[key] = value;
  }
}

}  // namespace

std::string_view to_string(Dialect dialect) {
  return kNames.at(static_cast<std::size_t>(dialect)).second;
}

std::optional<Dialect> dialect_from(std::string_view text) {
  for (const auto& [dialect, name] : kNames) {
    if (name == text) {
      return dialect;
    }
  }
  return std::nullopt;
}

Dialect recognise(std::string_view text, std::string_view file_name) {
  const std::filesystem::path name{std::string(file_name)};
  if (looks_like_script(text)) {
    return Dialect::script;
  }
  if (looks_like_gpu_manager(text) || name.filename() == "gpu_manager_config.json") {
    return Dialect::gpu_manager;
  }
  if (name.extension() == ".txt" || looks_like_commands(text)) {
    return Dialect::commands;
  }
  return looks_like_fedwhat(text) ? Dialect::fedwhat : Dialect::native;
}

Parsed parse_file(const Source& source, const DialectOptions& options) {
  try {
    const Dialect dialect =
        options.dialect ? *options.dialect : recognise(source.text, source.file_name);
    Diagnostics diagnostics(source.file_name);
    refuse_unused_options(options, dialect, diagnostics);
    if (source.text.size() > kJobFileMostBytes) {
      diagnostics.add(
          {}, fmt::format("this file is larger than {}; split it", format_size(kJobFileMostBytes)));
    }
    if (!diagnostics.empty()) {
      return std::unexpected(diagnostics.take());
    }
    Parsed file = parse_as(dialect, source, options);
    if (!file) {
      return file;
    }
    if (dialect != Dialect::native) {
      file->traits.dialect = to_string(dialect);
    }
    overlay(*file, options);
    for (JobSpec& job : file->jobs) {
      if (job.payload.fingerprint == 0) {
        job.payload.fingerprint = fingerprint(job);
      }
    }
    return file;
  } catch (const std::exception& error) {
    Diagnostics diagnostics(source.file_name);
    diagnostics.add({}, fmt::format("cannot be read: {}", error.what()));
    return std::unexpected(diagnostics.take());
  }
}

}  // namespace berth
