#include "api/paths.hpp"

#include <fmt/format.h>
#include <linux/magic.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace berth {
namespace {

namespace fs = std::filesystem;

/// File systems that several machines may have mounted, or whose locks cannot be trusted. Those
/// linux/magic.h does not name are given as their projects define them.
constexpr std::array<std::uint32_t, 13> kNetworkMagic{
    NFS_SUPER_MAGIC,  SMB_SUPER_MAGIC, CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC,
    CODA_SUPER_MAGIC, AFS_SUPER_MAGIC, V9FS_MAGIC,
    FUSE_SUPER_MAGIC,  // sshfs, GlusterFS, CephFS-FUSE
    CEPH_SUPER_MAGIC,
    0x0BD00BD0,  // Lustre
    0x47504653,  // GPFS
    0x19830326,  // BeeGFS
    0xAAD7AAEA,  // PanFS
};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string home_directory() {
  if (std::string home = environment("HOME"); home.starts_with('/')) {
    return home;
  }
  const passwd* entry = ::getpwuid(::geteuid());
  return entry != nullptr && entry->pw_dir != nullptr ? entry->pw_dir : "";
}

std::string host_name() {
  std::array<char, 256> buffer{};
  if (::gethostname(buffer.data(), buffer.size() - 1) != 0 || buffer[0] == '\0') {
    return "localhost";
  }
  std::string name = buffer.data();
  std::ranges::replace(name, '/', '_');
  return name.starts_with('.') ? "localhost" : name;
}

std::string fallback_base() {
  return fmt::format("/var/tmp/berth-{}", ::geteuid());
}

/// Whether this directory is ours alone to write in. `follow`: a link to it is fine, too.
Status verify(const std::string& dir, bool follow, mode_t forbidden) {
  struct stat st{};
  if ((follow ? ::stat(dir.c_str(), &st) : ::lstat(dir.c_str(), &st)) != 0) {
    return fail_errno(fmt::format("cannot look at '{}'", dir), errno);
  }
  if (!S_ISDIR(st.st_mode)) {
    return fail(ErrorCode::refused,
                fmt::format("'{}' is not a directory; remove it or set BERTH_DIR", dir));
  }
  if (st.st_uid != ::geteuid()) {
    return fail(ErrorCode::refused,
                fmt::format("'{}' belongs to user {}, not to user {}; set BERTH_DIR to a directory "
                            "of your own",
                            dir, st.st_uid, ::geteuid()));
  }
  if ((st.st_mode & forbidden) != 0) {
    return fail(ErrorCode::refused,
                fmt::format("'{}' is open to other users (mode {:04o}); run: chmod 700 '{}'", dir,
                            st.st_mode & 07777U, dir));
  }
  return {};
}

Status make_directory(const std::string& dir) {
  if (::mkdir(dir.c_str(), 0700) == 0 || errno == EEXIST) {
    return {};
  }
  return fail_errno(fmt::format("cannot create '{}'", dir), errno);
}

Status make_directories(const fs::path& dir) {
  struct stat st{};
  if (::stat(dir.c_str(), &st) == 0 || !dir.has_relative_path()) {
    return {};
  }
  TRY(make_directories(dir.parent_path()));
  return make_directory(dir.native());
}

}  // namespace

std::string report_path(const std::string& logs, std::uint64_t job, std::uint32_t attempt) {
  constexpr std::uint64_t kJobsInDirectory = 1000;
  return fmt::format("{}/{}/{}.{}.report", logs, job / kJobsInDirectory, job, attempt);
}

bool on_network_file_system(const std::string& path) {
  fs::path at(path);
  struct statfs info{};
  while (::statfs(at.c_str(), &info) != 0) {
    if (!at.has_relative_path()) {
      return false;
    }
    at = at.parent_path();
  }
  return std::ranges::find(kNetworkMagic, static_cast<std::uint32_t>(info.f_type)) !=
         kNetworkMagic.end();
}

Result<InstancePaths> instance_in(const std::string& dir) {
  std::error_code error;
  fs::path absolute = fs::absolute(dir, error).lexically_normal();
  if (dir.empty() || error) {
    return fail(ErrorCode::invalid, fmt::format("'{}' cannot be a directory for berth", dir));
  }
  if (!absolute.has_filename() && absolute.has_relative_path()) {
    absolute = absolute.parent_path();  // "dir/" is "dir"
  }
  InstancePaths paths;
  paths.dir = absolute.native();
  paths.socket = absolute / "sock";
  paths.lock = absolute / "daemon.lock";
  paths.database = absolute / "berth.db";
  paths.attempts = absolute / "attempts";
  paths.logs = absolute / "logs";
  paths.daemon_log = absolute / "daemon.log";
  return paths;
}

Result<InstancePaths> find_instance() {
  if (const std::string dir = environment("BERTH_DIR"); !dir.empty()) {
    return instance_in(dir);
  }
  std::string base = environment("XDG_STATE_HOME");
  if (!base.starts_with('/')) {  // relative ones are to be ignored, says the XDG specification
    const std::string home = home_directory();
    if (home.empty()) {
      return fail(ErrorCode::invalid, "neither BERTH_DIR nor HOME is set; set one of them");
    }
    base = home + "/.local/state";
  }
  const std::string usual = base + "/berth/" + host_name();
  if (!on_network_file_system(usual)) {
    return instance_in(usual);
  }
  return instance_in(fallback_base() + "/" + host_name());
}

Status prepare_instance(const InstancePaths& paths) {
  const std::string base = fallback_base();
  if (paths.dir.starts_with(base + "/")) {
    // Anybody may create names in /var/tmp: take nothing there on trust.
    TRY(make_directory(base));
    TRY(verify(base, false, 0077));
  }
  TRY(make_directories(paths.dir));
  TRY(verify(paths.dir, true, 0022));
  for (const std::string& dir : {paths.attempts, paths.logs}) {
    TRY(make_directory(dir));
    TRY(verify(dir, false, 0077));
  }
  return {};
}

}  // namespace berth
