#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "api/http.hpp"
#include "api/paths.hpp"
#include "api/wire.hpp"
#include "base/fd.hpp"
#include "board/board_directory.hpp"
#include "cli/doctor.hpp"
#include "cli/start_daemon.hpp"

namespace berth::cli {
namespace {

namespace fs = std::filesystem;

constexpr Millis kDaemonPatience{3'000};
constexpr int kDriverPatienceMs = 10'000;
constexpr std::uint64_t kLogTail = 64UL * 1024;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

bool exists(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0;
}

std::string program_directory() {
  std::array<char, PATH_MAX> buffer{};
  const ssize_t size = ::readlink("/proc/self/exe", buffer.data(), buffer.size());
  const std::string path(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return path.substr(0, path.rfind('/') + 1);
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

bool is_true(std::string_view value) {
  return value == "yes" || value == "true" || value == "on" || value == "1";
}

void look_at_directory(DoctorFacts& facts) {
  struct stat status{};
  facts.dir_exists = ::stat(facts.dir.c_str(), &status) == 0;
  facts.network_file_system = on_network_file_system(facts.dir);
  fs::path at(facts.dir);
  while (!exists(at.native()) && at.has_relative_path()) {
    at = at.parent_path();
  }
  struct statvfs space{};
  if (::statvfs(at.c_str(), &space) == 0) {
    facts.space_free = static_cast<Bytes>(space.f_bavail) * space.f_frsize;
    facts.space_total = static_cast<Bytes>(space.f_blocks) * space.f_frsize;
    facts.inodes_free = space.f_favail;
    facts.inodes_total = space.f_files;
  }
  if (!facts.dir_exists) {
    return;
  }
  facts.dir_owner = status.st_uid;
  facts.dir_mode = status.st_mode & 07777U;
  facts.dir_writable = ::access(facts.dir.c_str(), W_OK | X_OK) == 0;
  // What a file that is made and gone at once is dated; it never has a name.
  const Fd file(::open(facts.dir.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));  // NOLINT
  if (file && ::write(file.get(), "x", 1) == 1 && ::fstat(file.get(), &status) == 0) {
    facts.wall = read_clock().wall;
    facts.file_time = Millis(status.st_mtim.tv_sec * 1000LL + status.st_mtim.tv_nsec / 1'000'000LL);
  }
}

template <class T>
Result<T> ask(HttpClient& client, const std::string& target) {
  TRY_ASSIGN(HttpResponse response, client.request("GET", target, {}, kDaemonPatience));
  TRY_ASSIGN(const std::string body, body_or_error(std::move(response)));
  return decode<T>(body);
}

void look_at_daemon(DoctorFacts& facts, const InstancePaths& paths) {
  facts.socket_exists = exists(paths.socket);
  facts.lock_held = lock_is_held(paths);
  auto client = HttpClient::connect(paths.socket);
  if (client) {
    auto status = ask<StatusView>(*client, "/api/status");
    if (status) {
      facts.status = std::move(*status);
      JobQuery query;
      query.descending = true;
      query.limit = 100;
      if (const auto page = ask<JobPage>(*client, job_query_target(query))) {
        for (const JobView& job : page->jobs) {
          const Millis last = std::max({job.submitted_at, job.started_at.value_or(Millis(0)),
                                        job.ended_at.value_or(Millis(0))});
          facts.newest = std::max(facts.newest.value_or(Millis(0)), last);
        }
      }
    } else {
      facts.status_error = status.error().message;
    }
  }
  for (const std::string& file : {paths.database, paths.database + "-wal"}) {
    struct stat status{};
    if (::stat(file.c_str(), &status) == 0) {
      facts.newest =
          std::max(facts.newest.value_or(Millis(0)), Millis(status.st_mtim.tv_sec * 1000LL));
    }
  }
  std::ifstream log(paths.daemon_log, std::ios::binary | std::ios::ate);
  if (log) {
    const auto size = static_cast<std::uint64_t>(log.tellg());
    log.seekg(static_cast<std::streamoff>(size > kLogTail ? size - kLogTail : 0));
    for (std::string line; std::getline(log, line);) {
      if (line.find(" event=ready ") != std::string::npos) {
        facts.log_errors.clear();  // what a daemon before this one had to say is over
      }
      if (line.find("level=err") != std::string::npos ||
          line.find("level=critical") != std::string::npos) {
        facts.log_errors.push_back(line);
      }
    }
  }
}

/// What the child tells about the driver.
struct NvmlWord {
  DoctorFacts::Nvml state = DoctorFacts::Nvml::missing;
  int code = 0;
  std::array<char, 96> version{};
  int cuda = 0;
};

NvmlWord try_nvml(const std::string& library) {
  NvmlWord word;
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return word;
  }
  using Init = int (*)();
  using Version = int (*)(char*, unsigned);
  using Cuda = int (*)(int*);
  const auto init = reinterpret_cast<Init>(::dlsym(handle, "nvmlInit_v2"));  // NOLINT
  const auto version =
      reinterpret_cast<Version>(::dlsym(handle, "nvmlSystemGetDriverVersion"));  // NOLINT
  word.state = DoctorFacts::Nvml::failed;
  if (init == nullptr) {
    return word;
  }
  word.code = init();
  if (word.code == 0) {
    word.state = DoctorFacts::Nvml::works;
    if (version != nullptr &&
        version(word.version.data(), static_cast<unsigned>(word.version.size())) != 0) {
      word.version = {};
    }
    const auto cuda = reinterpret_cast<Cuda>(  // NOLINT
        ::dlsym(handle, "nvmlSystemGetCudaDriverVersion"));
    if (cuda != nullptr && cuda(&word.cuda) != 0) {
      word.cuda = 0;
    }
  }
  return word;
}

/// In a process of its own: a driver in trouble may hang whoever asks it, and cannot be killed
/// then.
void look_at_driver(DoctorFacts& facts, const std::string& root) {
  const std::string library = root.empty() ? "libnvidia-ml.so.1" : root + "/libnvidia-ml.so.1";
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return;
  }
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    const NvmlWord word = try_nvml(library);
    [[maybe_unused]] const ssize_t ignored = ::write(writing.get(), &word, sizeof word);
    ::_exit(0);
  }
  writing.reset();
  if (child < 0) {
    return;
  }
  NvmlWord word;
  word.state = DoctorFacts::Nvml::hangs;
  pollfd wait{reading.get(), POLLIN, 0};
  if (::poll(&wait, 1, kDriverPatienceMs) == 1) {
    if (::read(reading.get(), &word, sizeof word) != static_cast<ssize_t>(sizeof word)) {
      word = {};
      word.state = DoctorFacts::Nvml::failed;
    }
    ::waitpid(child, nullptr, 0);
  } else {
    ::kill(child, SIGKILL);  // it may not die; nobody waits for it
  }
  facts.nvml = word.state;
  facts.nvml_code = word.code;
  facts.nvml_version = std::string(word.version.data(), ::strnlen(word.version.data(), 96));
  facts.nvml_cuda = word.cuda;
}

void look_at_gpus(DoctorFacts& facts, const std::string& root) {
  facts.gpus_wanted = environment("BERTH_GPUS");
  if (facts.gpus_wanted.empty()) {  // as the daemon remembers it
    std::ifstream in(facts.dir + "/gpus");
    std::getline(in, facts.gpus_wanted);
  }
  facts.nvidia_device = exists(root + "/dev/nvidiactl") || exists(root + "/dev/dxg");
  const std::string version = read_text(root + "/proc/driver/nvidia/version");
  constexpr std::string_view kMark = "Kernel Module";
  if (const auto at = version.find(kMark); at != std::string::npos) {
    std::istringstream words(version.substr(at + kMark.size()));
    for (std::string word; facts.kernel_driver.empty() && words >> word;) {
      facts.kernel_driver = word[0] >= '0' && word[0] <= '9' ? word : "";
    }
  }
  if (!facts.gpus_wanted.starts_with("sim:") && facts.gpus_wanted != "none") {
    look_at_driver(facts, root);
  }
}

void look_at_board(DoctorFacts& facts) {
  // As the daemon chooses it: simulated cards are nobody else's.
  const bool own = facts.gpus_wanted.starts_with("sim:") || facts.gpus_wanted == "none";
  if (own && environment("BERTH_BOARD").empty()) {
    return;
  }
  const auto found = BoardDirectory::find();
  if (!found || !*found) {
    facts.board_off = found.has_value();
    facts.board_problem = found ? "" : found.error().message;
    return;
  }
  facts.board = **found;
  const auto directory = BoardDirectory::open(facts.board);
  const auto entries = directory ? directory->read() : std::unexpected(directory.error());
  if (!entries) {
    facts.board_problem = entries.error().message;
    return;
  }
  if (::access(facts.board.c_str(), W_OK | X_OK) != 0) {
    facts.board_problem = fmt::format("{} cannot be written", facts.board);
  }
  std::set<std::string> live;
  std::set<std::string> silent;
  for (const FoundEntry& entry : *entries) {
    const passwd* user = ::getpwuid(entry.entry.uid);
    (directory->answers(entry) ? live : silent)
        .insert(user != nullptr ? user->pw_name : std::to_string(entry.entry.uid));
  }
  facts.board_live.assign(live.begin(), live.end());
  facts.board_silent.assign(silent.begin(), silent.end());
}

void look_at_session(DoctorFacts& facts, const std::string& root) {
  facts.logind = exists(root + "/run/systemd/seats") || exists(root + "/run/systemd/sessions");
  const KillUserProcesses conf = read_logind_conf(root);
  facts.kills_user_processes = conf.kills;
  facts.logind_file = conf.file;
  facts.lingers = exists(root + "/var/lib/systemd/linger/" + facts.user);
}

/// Where cgroup v2 is mounted; empty: nowhere.
std::string cgroup2_mount(const std::string& root) {
  if (!root.empty()) {
    const std::string usual = root + "/sys/fs/cgroup";
    return exists(usual + "/cgroup.controllers") ? usual : "";
  }
  std::istringstream lines(read_text("/proc/self/mountinfo"));
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" - cgroup2 ") != std::string::npos) {
      std::istringstream words(line);
      std::string word;
      for (int field = 0; field < 5 && words >> word; ++field) {
      }
      return word;
    }
  }
  return "";
}

void look_at_cgroup(DoctorFacts& facts, const std::string& root) {
  const std::string mount = cgroup2_mount(root);
  facts.cgroup2 = !mount.empty();
  std::istringstream lines(read_text("/proc/self/cgroup"));
  for (std::string line; facts.cgroup2 && std::getline(lines, line);) {
    if (line.starts_with("0::/")) {
      const std::string own = mount + line.substr(3);
      facts.cgroup_delegated =
          ::access(own.c_str(), W_OK) == 0 && ::access((own + "/cgroup.procs").c_str(), W_OK) == 0;
    }
  }
}

void look_at_limits(DoctorFacts& facts) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max != RLIM_INFINITY) {
    facts.open_files = limit.rlim_max;
  }
  if (::getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    facts.processes = limit.rlim_cur;
  }
}

}  // namespace

KillUserProcesses read_logind_conf(const std::string& root) {
  // A drop-in hides one of the same name in a directory of less weight.
  std::map<std::string, std::string> drop_ins;
  std::vector<std::string> files;
  for (const char* dir : {"/usr/lib/systemd", "/run/systemd", "/etc/systemd"}) {
    const std::string base = root + dir;
    if (exists(base + "/logind.conf")) {
      files = {base + "/logind.conf"};
    }
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(base + "/logind.conf.d", error)) {
      if (entry.path().extension() == ".conf") {
        drop_ins[entry.path().filename()] = entry.path();
      }
    }
  }
  for (const auto& [name, path] : drop_ins) {
    files.push_back(path);
  }
  KillUserProcesses out;
  for (const std::string& file : files) {
    std::istringstream lines(read_text(file));
    bool login = false;
    for (std::string line; std::getline(lines, line);) {
      const std::string_view text = trimmed(line);
      if (text.starts_with('[')) {
        login = text == "[Login]";
      }
      const auto equals = text.find('=');
      if (login && equals != std::string_view::npos &&
          trimmed(text.substr(0, equals)) == "KillUserProcesses") {
        out = {is_true(trimmed(text.substr(equals + 1))), file.substr(root.size())};
      }
    }
  }
  return out;
}

DoctorFacts gather_facts() {
  DoctorFacts facts;
  const std::string root = environment("BERTH_TEST_ROOT");
  facts.version = BERTH_VERSION;
  facts.uid = ::geteuid();
  const passwd* entry = ::getpwuid(facts.uid);
  facts.user = entry != nullptr ? entry->pw_name : std::to_string(facts.uid);
  facts.wall = read_clock().wall;
  facts.dir_from_environment = !environment("BERTH_DIR").empty();
  const std::string programs = program_directory();
  facts.program_found = ::access((programs + "berthd").c_str(), X_OK) == 0;
  facts.simulation_found =
      ::access((programs + "../lib/berth-sim/libnvidia-ml.so.1").c_str(), R_OK) == 0;
  facts.supervisor_found = ::access((programs + "berth-shim").c_str(), X_OK) == 0;
  if (const auto paths = find_instance()) {
    facts.dir = paths->dir;
    facts.socket = paths->socket;
    look_at_directory(facts);
    look_at_daemon(facts, *paths);
  } else {
    facts.instance_error = paths.error().message;
  }
  look_at_gpus(facts, root);
  look_at_board(facts);
  look_at_session(facts, root);
  look_at_cgroup(facts, root);
  look_at_limits(facts);
  return facts;
}

}  // namespace berth::cli
