#include "cli/job_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/fd.hpp"
#include "cli/submitter.hpp"
#include "cli/terminal.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t kShownMistakes = 50;

Result<std::string> read_file(const std::string& path) {
  const Fd fd(path == "-" ? ::dup(STDIN_FILENO)
                          : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));  // NOLINT
  std::string text;
  std::array<char, 64 * 1024> buffer{};
  ssize_t size = 0;
  while (fd && text.size() <= kJobFileMostBytes) {
    size = ::read(fd.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size <= 0) {
      break;
    }
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  if (fd && size < 0 && errno == EISDIR) {
    return fail(ErrorCode::invalid,
                fmt::format("'{}' is a directory; name a job file in it", printable(path)));
  }
  if (!fd || size < 0) {
    return fail_errno(fmt::format("cannot read the job file '{}'", printable(path)), errno);
  }
  return text;
}

/// Shows mistakes as they come, up to a limit, and counts the rest.
class Mistakes {
 public:
  void add(const std::vector<Diagnostic>& found, std::string_view text) {
    ++files_;
    for (const Diagnostic& diagnostic : found) {
      if (count_++ < kShownMistakes) {
        std::fprintf(stderr, "%s\n", render(diagnostic, text).c_str());
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

}  // namespace

Result<std::vector<LoadedFile>> load_job_files(const std::vector<std::string>& paths,
                                               std::string_view consequence) {
  if (std::ranges::count(paths, "-") > 1) {
    return fail(ErrorCode::invalid, "standard input can be read only once; name '-' once");
  }
  TRY_ASSIGN(const std::string here, current_directory());
  std::vector<LoadedFile> loaded;
  Mistakes mistakes;
  for (const std::string& path : paths) {
    const auto text = read_file(path);
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
    auto file = parse_job_file(*text, path == "-" ? "standard input" : path, base);
    if (!file) {
      mistakes.add(file.error(), *text);
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
