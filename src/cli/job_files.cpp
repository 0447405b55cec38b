#include "cli/job_files.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "cli/server.hpp"
#include "cli/submitter.hpp"
#include "cli/terminal.hpp"
#include "submit/job_source.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t kShownMistakes = 50;

/// Shows mistakes as they come, up to a limit, and counts the rest.
class Mistakes {
 public:
  void add(const std::vector<Diagnostic>& found, const Source& source) {
    ++files_;
    for (const Diagnostic& diagnostic : found) {
      if (count_++ < kShownMistakes) {
        const std::string other = diagnostic.file == source.file_name
                                      ? ""
                                      : read_other_file(diagnostic.file).value_or("");
        std::fprintf(stderr, "%s\n",
                     render(diagnostic, other.empty() ? source.text : other).c_str());
      }
    }
  }
  void add(const Error& error) {
    ++files_;
    if (count_++ < kShownMistakes) {
      warn(error.message);
    }
  }

  /// What to say when all files have been looked at.
  [[nodiscard]] Error summary(const std::vector<std::string>& paths,
                              std::string_view consequence) const {
    if (count_ > kShownMistakes) {
      std::fprintf(stderr, "… and %zu more\n\n", count_ - kShownMistakes);
    }
    const auto where = paths.size() == 1
                           ? fmt::format("'{}' has {} mistake{}", printable(paths[0]), count_,
                                         count_ == 1 ? "" : "s")
                           : fmt::format("{} mistake{} in {} of {} files", count_,
                                         count_ == 1 ? "" : "s", files_, paths.size());
    return {ErrorCode::invalid, fmt::format("{}{}", where, consequence)};
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }

 private:
  std::size_t count_ = 0;
  std::size_t files_ = 0;
};

/// The option is wrong then, and no file of those given.
Status check_config_file(const std::string& path, const std::string& given) {
  const auto text = [&](int error) {
    return fail_errno(fmt::format("--config-file: cannot read '{}'", printable(given)), error);
  };
  if (::access(path.c_str(), R_OK) != 0) {
    return text(errno);
  }
  std::error_code unknown;
  return std::filesystem::is_directory(path, unknown) ? text(EISDIR) : Status();
}

}  // namespace

Result<std::vector<LoadedFile>> load_job_files(const std::vector<std::string>& paths,
                                               const DialectOptions& reading,
                                               std::string_view consequence,
                                               const ParseFile& parse) {
  if (std::ranges::count(paths, "-") > 1) {
    return fail(ErrorCode::invalid, "standard input can be read only once; name '-' once");
  }
  TRY_ASSIGN(const std::string here, current_directory());
  const Millis now = read_clock().wall;
  DialectOptions options = reading;
  if (!options.config_file.empty()) {
    options.config_file = make_absolute(options.config_file, here);
    TRY(check_config_file(options.config_file, reading.config_file));
  }
  std::vector<LoadedFile> loaded;
  Mistakes mistakes;
  for (const std::string& path : paths) {
    const auto text = read_whole_file(path, "job file");
    if (!text) {
      if (paths.size() == 1) {
        return std::unexpected(text.error());
      }
      mistakes.add(text.error());
      continue;
    }
    const std::string base =
        path == "-" ? here
                    : std::filesystem::path(make_absolute(path, here)).parent_path().native();
    Source source =
        job_source(*text, {path == "-" ? std::string(kStandardInput) : path, base, here, now});
    if (chosen_server()) {
      source.lacks_directory = {};  // those of another machine are meant
    }
    auto file = parse(source, options);
    if (!file) {
      mistakes.add(file.error(), source);
      continue;
    }
    for (const std::string& warning : file->warnings) {
      warn("warning: " + printable(warning));
    }
    loaded.push_back({path, std::move(*file)});
  }
  if (!mistakes.empty()) {
    return std::unexpected(mistakes.summary(paths, consequence));
  }
  return loaded;
}

}  // namespace berth::cli
