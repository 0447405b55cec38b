#include "compete/command_configs.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <fmt/format.h>

#include "base/crc32.hpp"
#include "base/owned_file.hpp"
#include "base/utf8.hpp"
#include "base/whole_file.hpp"
#include "compete/command_tree.hpp"

namespace berth::compete {
namespace {

namespace fs = std::filesystem;

Error no_such(const ConfigFile& file) {
  return {ErrorCode::not_found, fmt::format("there is no configuration {}: '{}' is not there",
                                            file.index, printable(file.path))};
}

struct Present {
  std::string text;
  std::string place;  ///< where it really lies, should the user have put a link in its place
  mode_t mode = 0;
};

Result<std::optional<Present>> look(const std::string& path) {
  const auto file = open_owned(path, ::getuid(), EndLink::follow, FileOf::anybody);
  if (!file) {
    return file.error().code == ErrorCode::not_found ? Result<std::optional<Present>>(std::nullopt)
                                                     : std::unexpected(file.error());
  }
  TRY_ASSIGN(std::string text, read_whole(*file, path, kJobFileMostBytes));
  struct stat status{};
  std::error_code error;
  const fs::path place = fs::read_symlink(fmt::format("/proc/self/fd/{}", file->get()), error);
  if (error || ::fstat(file->get(), &status) != 0) {
    return fail(ErrorCode::io, fmt::format("cannot tell where '{}' lies", printable(path)));
  }
  return std::optional(Present{std::move(text), place.native(), status.st_mode & 0777U});
}

/// As private as the file itself, also where there is one from before.
Status write_backup(const std::string& path, const Present& old) {
  struct stat before{};
  if (::lstat(path.c_str(), &before) == 0 && S_ISREG(before.st_mode) &&
      ::chmod(path.c_str(), old.mode) != 0) {
    return fail_errno(fmt::format("cannot write '{}'", printable(path)), errno);
  }
  return replace_whole(path, old.text, old.mode);
}

}  // namespace

std::string version_of(std::string_view text) {
  return fmt::format("{:08x}-{}", crc32(text), text.size());
}

ConfigFile CommandConfigs::file(std::uint32_t index) const {
  const std::string path = places_.config(mode_, index).native();
  return {index, path, config_file_name(mode_, index), ::access(path.c_str(), F_OK) == 0};
}

Result<std::vector<ConfigFile>> CommandConfigs::list() const {
  std::vector<ConfigFile> files;
  std::error_code error;
  fs::directory_iterator entries(places_.command_dir, error);
  if (error && error != std::errc::no_such_file_or_directory) {
    return fail(ErrorCode::io,
                fmt::format("cannot list '{}': {}", printable(places_.command_dir.native()),
                            error.message()));
  }
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    if (const auto index = config_index_of(mode_, entries->path().filename().native())) {
      files.push_back(file(*index));
    }
  }
  std::ranges::sort(files, {}, &ConfigFile::index);
  if (files.empty()) {
    files.push_back(file(0));
  }
  return files;
}

Result<std::optional<std::string>> CommandConfigs::read(std::uint32_t index) const {
  // Many may write to this directory: a link of somebody else must not lead us to what only we may
  // read.
  return read_owned(file(index).path, ::getuid(), FileOf::anybody, kJobFileMostBytes);
}

Result<std::string> CommandConfigs::must_read(std::uint32_t index) const {
  TRY_ASSIGN(auto text, read(index));
  if (!text) {
    return std::unexpected(no_such(file(index)));
  }
  return std::move(*text);
}

Status CommandConfigs::make_directory() const {
  std::error_code error;
  fs::create_directories(places_.command_dir, error);
  if (error) {
    return fail(ErrorCode::io,
                fmt::format("cannot make the directory '{}': {}",
                            printable(places_.command_dir.native()), error.message()));
  }
  return {};
}

Status CommandConfigs::write(std::uint32_t index, std::string_view text,
                             const std::optional<std::string>& version) const {
  TRY(make_directory());
  const std::string path = file(index).path;
  TRY_ASSIGN(const FileLock lock, FileLock::take(places_.configs_lock()));
  TRY_ASSIGN(const auto old, look(path));
  if (version && *version != version_of(old ? old->text : std::string())) {
    return fail(ErrorCode::conflict,
                fmt::format("'{}' has been changed meanwhile; read it again", printable(path)));
  }
  if (!old) {
    return replace_whole(path, text);
  }
  if (old->text == text) {
    return {};
  }
  TRY(write_backup(path + ".backup", *old));
  return replace_whole(old->place, text);
}

Result<ConfigFile> CommandConfigs::create() const {
  TRY(make_directory());
  const std::string text = empty_config(mode_);
  for (std::uint32_t index = 0; index <= kMostConfigs; ++index) {
    const ConfigFile fresh = file(index);
    if (fresh.exists) {
      continue;
    }
    const Fd made(
        ::open(fresh.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!made && errno != EEXIST) {
      return fail_errno(fmt::format("cannot make '{}'", printable(fresh.path)), errno);
    }
    if (made) {
      if (::write(made.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        const int error = errno;
        ::unlink(fresh.path.c_str());
        return fail_errno(fmt::format("cannot write '{}'", printable(fresh.path)), error);
      }
      return file(index);
    }
  }
  return fail(ErrorCode::refused, fmt::format("there are {} configurations, and that is the most; "
                                              "delete one",
                                              kMostConfigs + 1));
}

Status CommandConfigs::remove(std::uint32_t index) const {
  const ConfigFile gone = file(index);
  if (index == 0) {
    return fail(ErrorCode::invalid, fmt::format("the first configuration stays; empty '{}' instead",
                                                printable(gone.path)));
  }
  if (::unlink(gone.path.c_str()) != 0) {
    return errno == ENOENT || errno == ENOTDIR
               ? Status(std::unexpected(no_such(gone)))
               : fail_errno(fmt::format("cannot delete '{}'", printable(gone.path)), errno);
  }
  ::unlink((gone.path + ".backup").c_str());
  return {};
}

}  // namespace berth::compete
