#include "submit/submission.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/fd.hpp"
#include "base/random.hpp"
#include "base/utf8.hpp"
#include "base/whole_file.hpp"
#include "dialects/dialect.hpp"

namespace berth {
namespace {

Status write_whole(const std::string& path, const std::string& content) {
  const std::string fresh = fmt::format("{}.{:08x}", path, random_number());
  const Fd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));  // NOLINT
  const auto failed = [&] {
    const int error = errno;
    ::unlink(fresh.c_str());
    return fail_errno(fmt::format("cannot write '{}'", printable(path)), error);
  };
  if (!fd) {
    return failed();
  }
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t size = ::write(fd.get(), content.data() + done, content.size() - done);
    if (size < 0 && errno != EINTR) {
      return failed();
    }
    done += static_cast<std::size_t>(std::max<ssize_t>(size, 0));
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) {
    return failed();
  }
  return {};
}

bool holds(const std::string& path, const std::string& content) {
  const auto found = read_whole(path, content.size());
  return found && *found == content;
}

}  // namespace

void prepare_state_directory(const std::string& dir) {
  if (dir.empty()) {
    return;
  }
  std::error_code ignored;
  std::filesystem::create_directories(dir, ignored);
  const std::string file = dir + "/uni_id.json";
  const Fd fresh(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));  // NOLINT
  constexpr std::string_view kNothing = "{}\n";
  if (fresh && ::write(fresh.get(), kNothing.data(), kNothing.size()) < 0) {
    ::unlink(file.c_str());
  }
}

bool has_state_files(const BatchTraits& traits) {
  return !traits.state_dir.empty() && traits.dialect != to_string(Dialect::gpu_manager);
}

void prepare_state_directory(const BatchTraits& traits) {
  if (has_state_files(traits)) {
    prepare_state_directory(traits.state_dir);
  } else if (!traits.state_dir.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(traits.state_dir, ignored);
  }
}

event::Submit to_submission(JobFile file, std::uint64_t pid) {
  event::Submit submit;
  submit.batch_name = std::move(file.name);
  submit.batch_max_concurrent = file.max_concurrent;
  submit.batch_rules = std::move(file.rules);
  submit.traits = std::move(file.traits);
  if (!submit.traits.dialect.empty()) {
    submit.traits.pid = pid;
  }
  submit.queues = std::move(file.queues);
  submit.resources = std::move(file.resources);
  submit.jobs = std::move(file.jobs);
  return submit;
}

Status write_derived(const std::vector<DerivedFile>& files) {
  for (const DerivedFile& derived : files) {
    if (holds(derived.path, derived.content)) {
      continue;
    }
    std::error_code ignored;  // a failure shows when the file itself is written
    std::filesystem::create_directories(std::filesystem::path(derived.path).parent_path(), ignored);
    TRY(write_whole(derived.path, derived.content));
  }
  return {};
}

}  // namespace berth
