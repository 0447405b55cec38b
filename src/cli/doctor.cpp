#include "cli/doctor.hpp"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <iterator>

#include "cli/terminal.hpp"

namespace berth::cli {
namespace {

constexpr Bytes kSpaceFail = 64 * kMiB;
constexpr Bytes kSpaceWarn = kGiB;
constexpr std::uint64_t kInodesWarn = 10'000;
constexpr std::uint64_t kOpenFilesWarn = 1024;
constexpr std::uint64_t kProcessesWarn = 512;
constexpr Millis kSkewWarn{5'000};
constexpr Millis kFirstBerth{1'700'000'000'000};  ///< no clock of a running berth shows less

// Of nvml.h.
constexpr int kNvmlDriverNotLoaded = 9;
constexpr int kNvmlNoPermission = 4;
constexpr int kNvmlVersionMismatch = 18;

Finding good(std::string check, std::string text) {
  return {std::move(check), Health::ok, std::move(text), ""};
}

Finding check_directory(const DoctorFacts& f) {
  Finding out = good("directory", fmt::format("state is kept in {}", printable(f.dir)));
  if (!f.instance_error.empty()) {
    return {"directory", Health::fail, f.instance_error,
            "set BERTH_DIR to a directory of your own"};
  }
  if (!f.dir_exists) {
    out.text += ", which the first command makes";
    return out;
  }
  if (f.dir_owner != f.uid) {
    return {"directory", Health::fail,
            fmt::format("{} belongs to user {}, not to you; berth refuses it", printable(f.dir),
                        f.dir_owner),
            "set BERTH_DIR to a directory of your own"};
  }
  if ((f.dir_mode & 0022U) != 0) {
    return {"directory", Health::fail,
            fmt::format("others may write in {} (mode {:04o}): they could replace the socket and "
                        "read what jobs are given; berth refuses it",
                        printable(f.dir), f.dir_mode),
            fmt::format("chmod 700 '{}'", printable(f.dir))};
  }
  if (!f.dir_writable) {
    return {"directory", Health::fail,
            fmt::format("{} cannot be written: the file system is read-only, or access is denied",
                        printable(f.dir)),
            "mount it writable, or set BERTH_DIR to another directory"};
  }
  if ((f.dir_mode & 0055U) != 0) {
    return {"directory", Health::warn,
            fmt::format("others may look into {} (mode {:04o})", printable(f.dir), f.dir_mode),
            fmt::format("chmod 700 '{}'", printable(f.dir))};
  }
  return out;
}

Finding check_file_system(const DoctorFacts& f) {
  if (f.network_file_system) {
    return {"file system", Health::fail,
            fmt::format("{} is on a network file system, where the locks of a database cannot be "
                        "relied on: jobs may be lost or run twice",
                        printable(f.dir)),
            f.dir_from_environment ? "set BERTH_DIR to a directory on a local disk, or unset it"
                                   : "set BERTH_DIR to a directory on a local disk"};
  }
  return good("file system", "the state is on a local file system");
}

Finding check_space(const DoctorFacts& f) {
  if (!f.space_free || !f.space_total) {
    return good("disk space", "not known: the directory is not there yet");
  }
  const std::string text =
      fmt::format("{} of {} are free", format_size(*f.space_free), format_size(*f.space_total));
  const std::string advice = fmt::format(
      "make room on the disk of {}: berth clean, old logs, other files", printable(f.dir));
  if (*f.space_free < kSpaceFail) {
    return {"disk space", Health::fail, text + ": no job is accepted or started any more", advice};
  }
  if (*f.space_free < kSpaceWarn) {
    return {"disk space", Health::warn, text + ": logs may soon have no room", advice};
  }
  // Some file systems have no fixed number of inodes and report none.
  if (f.inodes_total.value_or(0) > 0 && f.inodes_free.value_or(0) < kInodesWarn) {
    return {"disk space", *f.inodes_free == 0 ? Health::fail : Health::warn,
            fmt::format("only {} of {} inodes are free: soon no file can be made", *f.inodes_free,
                        *f.inodes_total),
            "remove small files that nobody needs"};
  }
  return good("disk space", text);
}

Finding check_socket(const DoctorFacts& f) {
  constexpr std::size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
  if (f.socket.size() > kMost) {
    return good("socket", fmt::format("its path has {} bytes, more than the {} that programs can "
                                      "usually connect to; berth itself can, curl and others "
                                      "cannot",
                                      f.socket.size(), kMost));
  }
  if (f.status) {
    return good("socket", printable(f.socket));
  }
  if (f.socket_exists && !f.lock_held) {
    return good("socket",
                "a daemon that ended without cleaning up has left it; the next one "
                "replaces it");
  }
  return good("socket", f.socket_exists ? printable(f.socket) : "there is none, as no daemon runs");
}

Finding check_daemon(const DoctorFacts& f) {
  if (f.status) {
    if (f.status->version != f.version) {
      return {"daemon", Health::warn,
              fmt::format("it is of version {}, this program of version {}",
                          printable(f.status->version), f.version),
              "berth stop; the next command starts the new one, and running jobs go on"};
    }
    return good("daemon", fmt::format("pid {} answers, up {}", f.status->pid,
                                      format_duration(f.status->uptime)));
  }
  if (f.lock_held) {
    return {"daemon", Health::fail,
            "one holds the lock but does not answer" +
                (f.status_error.empty() ? "" : ": " + f.status_error),
            fmt::format("it may still be reading its state: wait a minute, then look into {}",
                        printable(f.dir + "/daemon.log"))};
  }
  if (!f.program_found) {
    return {"daemon", Health::fail, "there is no berthd beside berth, so none can be started",
            "install berth, berthd and berth-shim into one directory"};
  }
  return good("daemon", "none runs; any command that needs one starts it");
}

Finding check_programs(const DoctorFacts& f) {
  if (!f.supervisor_found) {
    return {"programs", Health::fail, "there is no berth-shim beside berth: no job can start",
            "install berth, berthd and berth-shim into one directory"};
  }
  return good("programs", "berth-shim lies beside berth");
}

Finding check_log(const DoctorFacts& f) {
  if (f.log_errors.empty()) {
    return good("daemon log", "it reports no errors");
  }
  return {"daemon log", Health::warn,
          "it reports errors, the last one: " + printable(f.log_errors.back()),
          fmt::format("grep level=err {}", printable(f.dir + "/daemon.log"))};
}

Finding check_driver(const DoctorFacts& f) {
  if (f.gpus_wanted.starts_with("sim:")) {
    if (!f.status && !f.simulation_found) {
      return {"GPUs", Health::fail,
              fmt::format("simulated ones are wanted ({}), and their driver is missing: no daemon "
                          "can start",
                          printable(f.gpus_wanted)),
              "install the directory lib/berth-sim beside the directory of berthd"};
    }
    if (f.status && !f.status->probe.error.empty()) {
      return {"GPUs", Health::fail,
              fmt::format("simulated ones are wanted ({}), and cannot be seen: {}",
                          printable(f.gpus_wanted), printable(f.status->probe.error)),
              "install the directory lib/berth-sim beside the directory of berthd"};
    }
    return good("GPUs",
                fmt::format("simulated ({}); no driver is needed", printable(f.gpus_wanted)));
  }
  if (f.gpus_wanted == "none") {
    return good("GPUs", "none wanted (BERTH_GPUS=none)");
  }
  if (f.status && !f.status->probe.error.empty()) {
    return {"GPUs", Health::fail,
            "the daemon cannot look at them: " + printable(f.status->probe.error),
            "nvidia-smi must work first; then berth gpus"};
  }
  switch (f.nvml) {
    case DoctorFacts::Nvml::works:
      return good("GPUs",
                  "the NVIDIA driver works" +
                      (f.nvml_version.empty() ? "" : ", version " + printable(f.nvml_version)) +
                      (f.nvml_cuda <= 0 ? ""
                                        : fmt::format(", CUDA {}.{}", f.nvml_cuda / 1000,
                                                      f.nvml_cuda % 1000 / 10)));
    case DoctorFacts::Nvml::missing:
      if (f.nvidia_device || !f.kernel_driver.empty()) {
        return {"GPUs", Health::fail,
                "the NVIDIA driver is loaded, but its library libnvidia-ml.so.1 is missing: berth "
                "cannot see what the cards do",
                "install the driver's user-space libraries of the same version, as "
                "libnvidia-compute or libnvidia-ml1; in a container, start it with the NVIDIA "
                "runtime and the capability utility"};
      }
      return {"GPUs", Health::warn, "there is no NVIDIA driver, so jobs run without GPUs",
              "install the driver, if there is a card; to try things out: "
              "BERTH_GPUS=sim:2x24GiB"};
    case DoctorFacts::Nvml::hangs:
      return {"GPUs", Health::fail,
              "the NVIDIA driver does not answer: a card may have fallen off the bus",
              "see dmesg for Xid messages; a reboot may be needed"};
    case DoctorFacts::Nvml::failed:
      break;
  }
  if (f.nvml_code == kNvmlVersionMismatch) {
    return {"GPUs", Health::fail,
            fmt::format("the driver's library and the loaded kernel module{} are of different "
                        "versions, as after an upgrade without a reboot",
                        f.kernel_driver.empty() ? "" : " (" + printable(f.kernel_driver) + ")"),
            "reboot, or unload and load the nvidia modules"};
  }
  if (f.nvml_code == kNvmlDriverNotLoaded) {
    return {"GPUs", Health::fail,
            "the NVIDIA libraries are there, but the kernel module is not "
            "loaded",
            "modprobe nvidia; dmesg tells why it fails"};
  }
  if (f.nvml_code == kNvmlNoPermission) {
    return {"GPUs", Health::fail, "you may not use the NVIDIA devices",
            "see ls -l /dev/nvidia*; you may have to join the group video"};
  }
  return {"GPUs", Health::fail, fmt::format("the NVIDIA library fails with code {}", f.nvml_code),
          "nvidia-smi may tell more"};
}

std::string names(const std::vector<std::string>& users) {
  std::string text;
  for (const std::string& user : users) {
    text += (text.empty() ? "" : ", ") + printable(user);
  }
  return text;
}

Finding check_board(const DoctorFacts& f) {
  if (f.board_off) {
    return good("claims board", "BERTH_BOARD=off: other people's berths are not asked");
  }
  if (f.board.empty() && f.board_problem.empty()) {
    return good("claims board", "not needed: simulated GPUs, or none, are yours alone");
  }
  if (!f.board_problem.empty()) {
    return {"claims board", Health::warn,
            fmt::format("{}; so berths of different users may use the same GPU",
                        printable(f.board_problem)),
            "ask the administrator for /run/lock with mode 1777, or have everybody set BERTH_BOARD "
            "to such a directory"};
  }
  std::string text = fmt::format("in {}: ", printable(f.board));
  text += f.board_live.empty() ? "no berth claims a GPU at present"
                               : "GPUs are claimed by the berths of " + names(f.board_live);
  if (!f.board_silent.empty()) {
    text += "; without a daemon, by those of " + names(f.board_silent);
  }
  return good("claims board", std::move(text));
}

Finding check_logind(const DoctorFacts& f) {
  if (!f.logind || !f.kills_user_processes) {
    return good("logout", "what runs goes on after you log out");
  }
  if (f.lingers) {
    return good("logout",
                "KillUserProcesses is on, but you linger: the user manager stays; start "
                "berth from it, as with systemd-run --user --scope berth ls");
  }
  return {"logout", Health::fail,
          fmt::format("KillUserProcesses=yes in {}: everything of yours is ended when you log out, "
                      "the daemon and running jobs included",
                      printable(f.logind_file)),
          fmt::format("loginctl enable-linger {}, then start berth by: systemd-run --user --scope "
                      "berth ls",
                      printable(f.user))};
}

Finding check_clock(const DoctorFacts& f) {
  if (f.wall < kFirstBerth) {
    return {"clock", Health::fail, fmt::format("it shows {}", date_time(f.wall)),
            "set the clock; times of jobs are wrong until then"};
  }
  if (f.file_time && std::chrono::abs(*f.file_time - f.wall) > kSkewWarn) {
    return {"clock", Health::warn,
            fmt::format("the file system of the state and this machine differ by {}",
                        format_duration(std::chrono::abs(*f.file_time - f.wall))),
            "is it served by another machine? synchronise the clocks of both"};
  }
  if (f.newest && *f.newest > f.wall + kSkewWarn) {
    return {"clock", Health::warn,
            fmt::format("berth has recorded times up to {}, {} ahead of the clock: it was set back",
                        date_time(*f.newest), format_duration(*f.newest - f.wall)),
            "is the clock right? times shown of jobs may be odd; nothing else depends on them"};
  }
  return good("clock", "it agrees with what is recorded");
}

Finding check_cgroup(const DoctorFacts& f) {
  if (f.cgroup_delegated) {
    return good("cgroups", "jobs get control groups of their own");
  }
  // The usual case in a login session: nothing is wrong with it.
  return good(
      "cgroups",
      fmt::format("{}, so jobs run without control groups: they are ended by walking their "
                  "processes, and the peak of memory is that of their largest process. "
                  "systemd-run --user --scope -p Delegate=yes berth ls starts a daemon with "
                  "them",
                  f.cgroup2 ? "none is delegated to you" : "there is no cgroup v2 here"));
}

Finding check_limits(const DoctorFacts& f) {
  if (f.open_files && *f.open_files < kOpenFilesWarn) {
    return {"limits", Health::warn,
            fmt::format("at most {} open files (ulimit -Hn): enough for about {} jobs at once",
                        *f.open_files, *f.open_files / 4),
            "raise nofile in /etc/security/limits.conf"};
  }
  if (f.processes && *f.processes < kProcessesWarn) {
    return {"limits", Health::warn,
            fmt::format("at most {} processes and threads (ulimit -u): jobs may fail to start",
                        *f.processes),
            "raise nproc in /etc/security/limits.conf"};
  }
  return good("limits", "open files and processes suffice");
}

std::vector<Finding> check_rules(const DoctorFacts& f) {
  constexpr std::size_t kShown = 10;
  if (!f.status || f.status->problems.empty()) {
    return {good("rules", f.status ? "they fit the machine, and berth.yaml has no mistakes"
                                   : "no daemon has read them")};
  }
  const std::vector<std::string>& problems = f.status->problems;
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < std::min(kShown, problems.size()); ++i) {
    findings.push_back({"rules", Health::warn, printable(problems[i]), ""});
  }
  if (problems.size() > kShown) {
    findings.back().text += fmt::format("; and {} more", problems.size() - kShown);
  }
  findings.back().advice = fmt::format("repair {}, which is read again at once, or use berth set",
                                       printable(f.dir + "/berth.yaml"));
  return findings;
}

}  // namespace

std::string_view to_string(Health health) {
  switch (health) {
    case Health::ok:
      return "ok";
    case Health::warn:
      return "warn";
    case Health::fail:
      return "fail";
  }
  return "";
}

std::vector<Finding> check_cards(const std::vector<GpuView>& gpus) {
  std::vector<Finding> findings;
  for (const GpuView& gpu : gpus) {
    if (!gpu.trouble.empty()) {
      findings.push_back(
          {"GPUs", Health::warn, fmt::format("GPU {}: {}", gpu.index, printable(gpu.trouble)),
           fmt::format("{}once it is well: berth resume --gpu {}",
                       gpu.drained_why.empty() ? "dmesg may have Xid messages; " : "", gpu.index)});
    }
  }
  return findings;
}

std::vector<Finding> diagnose(const DoctorFacts& facts) {
  std::vector<Finding> findings{
      check_directory(facts), check_file_system(facts), check_space(facts), check_socket(facts),
      check_daemon(facts),    check_programs(facts),    check_log(facts),   check_driver(facts),
      check_board(facts),     check_logind(facts),      check_clock(facts), check_cgroup(facts),
      check_limits(facts)};
  std::ranges::move(check_rules(facts), std::back_inserter(findings));
  if (facts.status) {
    const std::vector<Finding> cards = check_cards(facts.status->gpus);
    const auto driver = std::ranges::find(findings, std::string_view("GPUs"), &Finding::check);
    findings.insert(driver + 1, cards.begin(), cards.end());
  }
  return findings;
}

}  // namespace berth::cli
