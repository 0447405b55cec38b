// berth convert: a job file of any format as a native one.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.hpp"
#include "cli/commands.hpp"
#include "cli/job_files.hpp"
#include "jobspec/job_yaml.hpp"

namespace berth::cli {
namespace {

Status write_file(const std::string& path, std::string_view text, bool force) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL);
  const Fd fd(::open(path.c_str(), flags, 0666));  // NOLINT
  if (!fd && errno == EEXIST) {
    return fail(ErrorCode::conflict,
                fmt::format("'{}' is there already; --force writes over it", printable(path)));
  }
  while (fd && !text.empty()) {
    const ssize_t size = ::write(fd.get(), text.data(), text.size());
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size < 0) {
      break;
    }
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  if (!fd || !text.empty()) {
    return fail_errno(fmt::format("cannot write '{}'", printable(path)), errno);
  }
  return {};
}

/// Names that are used twice, or bytes that are no text, have no place in a native file.
Status check(const JobFile& file, const std::string& yaml) {
  DialectOptions native;
  native.dialect = Dialect::native;
  const Source source{yaml, "the result", "/", Millis{0}, {}, {}, {}, {}, {}};
  const auto again = parse_file(source, native);
  if (again && same_submission(*again, file)) {
    return {};
  }
  return fail(ErrorCode::invalid,
              fmt::format("this cannot be written as a native job file{}",
                          again ? ": it has texts that are not UTF-8"
                                : fmt::format(": {}", again.error().front().message)));
}

}  // namespace

Outcome run_convert(const ConvertOptions& options) {
  TRY_ASSIGN(const std::vector<LoadedFile> files,
             load_job_files(options.files, options.reading, ""));
  if (!files.front().file.after_arrays.empty()) {
    warn(
        "warning: a native job file follows single jobs; if the script follows an array, put the "
        "ids of all its tasks under 'after_ids'");
  }
  const std::string yaml = to_yaml(files.front().file);
  TRY(check(files.front().file, yaml));
  if (options.out.empty()) {
    print(yaml);
    return 0;
  }
  TRY(write_file(options.out, yaml, options.force));
  return 0;
}

}  // namespace berth::cli
