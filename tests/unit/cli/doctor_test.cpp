#include "cli/doctor.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

namespace berth::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Nvml = DoctorFacts::Nvml;

/// A machine on which nothing is wrong.
DoctorFacts healthy() {
  DoctorFacts facts;
  facts.version = "1.2.3";
  facts.uid = 1000;
  facts.user = "ann";
  facts.dir = "/home/ann/.local/state/berth/box";
  facts.dir_exists = true;
  facts.dir_owner = 1000;
  facts.dir_mode = 0700;
  facts.space_free = 50 * kGiB;
  facts.space_total = 100 * kGiB;
  facts.inodes_free = 1'000'000;
  facts.inodes_total = 2'000'000;
  facts.socket = facts.dir + "/sock";
  facts.socket_exists = true;
  facts.lock_held = true;
  facts.status = StatusView();
  facts.status->version = "1.2.3";
  facts.status->pid = 77;
  facts.nvml = Nvml::works;
  facts.nvml_version = "550.54";
  facts.nvidia_device = true;
  facts.wall = Millis(1'750'000'000'000);
  facts.file_time = facts.wall;
  facts.newest = facts.wall - Millis(5000);
  facts.cgroup2 = true;
  facts.cgroup_delegated = true;
  facts.open_files = 1'048'576;
  return facts;
}

struct Case {
  const char* name;
  std::function<void(DoctorFacts&)> change;
  const char* check;
  Health health;
  const char* text;
  const char* advice;  ///< empty: none is given
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"healthy", [](auto&) {}, "daemon", Health::ok, "pid 77 answers", ""},
      {"no place", [](auto& f) { f.instance_error = "neither BERTH_DIR nor HOME is set"; },
       "directory", Health::fail, "neither", "set BERTH_DIR"},
      {"no directory yet", [](auto& f) { f.dir_exists = false; }, "directory", Health::ok,
       "the first command makes", ""},
      {"somebody else's", [](auto& f) { f.dir_owner = 1; }, "directory", Health::fail,
       "belongs to user 1", "BERTH_DIR"},
      {"writable by others", [](auto& f) { f.dir_mode = 0770; }, "directory", Health::fail,
       "mode 0770", "chmod 700"},
      {"readable by others", [](auto& f) { f.dir_mode = 0755; }, "directory", Health::warn,
       "may look into", "chmod 700"},
      {"read-only", [](auto& f) { f.dir_writable = false; }, "directory", Health::fail,
       "cannot be written", "mount it writable"},
      {"NFS", [](auto& f) { f.network_file_system = true; }, "file system", Health::fail,
       "network file system", "local disk"},
      {"full", [](auto& f) { f.space_free = 10 * kMiB; }, "disk space", Health::fail,
       "10 MiB of 100 GiB are free", "make room"},
      {"nearly full", [](auto& f) { f.space_free = 500 * kMiB; }, "disk space", Health::warn,
       "500 MiB", "make room"},
      {"no inodes", [](auto& f) { f.inodes_free = 12; }, "disk space", Health::warn,
       "only 12 of 2000000 inodes", "small files"},
      {"no inodes at all", [](auto& f) { f.inodes_free = 0; }, "disk space", Health::fail,
       "only 0 of", "small files"},
      {"inodes not counted",
       [](auto& f) {
         f.inodes_free = 0;
         f.inodes_total = 0;
       },
       "disk space", Health::ok, "50 GiB", ""},
      {"long socket path", [](auto& f) { f.socket = "/" + std::string(150, 'x'); }, "socket",
       Health::ok, "more than the 107", ""},
      {"stale socket",
       [](auto& f) {
         f.status.reset();
         f.lock_held = false;
       },
       "socket", Health::ok, "the next one replaces it", ""},
      {"other version", [](auto& f) { f.status->version = "1.0.0"; }, "daemon", Health::warn,
       "of version 1.0.0, this program of version 1.2.3", "berth stop"},
      {"stuck daemon", [](auto& f) { f.status.reset(); }, "daemon", Health::fail,
       "holds the lock but does not answer", "daemon.log"},
      {"no daemon",
       [](auto& f) {
         f.status.reset();
         f.lock_held = false;
       },
       "daemon", Health::ok, "none runs", ""},
      {"no berthd",
       [](auto& f) {
         f.status.reset();
         f.lock_held = false;
         f.program_found = false;
       },
       "daemon", Health::fail, "no berthd beside berth", "install"},
      {"no shim", [](auto& f) { f.supervisor_found = false; }, "programs", Health::fail,
       "no berth-shim", "install"},
      {"errors in the log", [](auto& f) { f.log_errors = {"old", "level=error what=\"x\""}; },
       "daemon log", Health::warn, "level=error what=\"x\"", "grep"},
      {"simulated",
       [](auto& f) {
         f.gpus_wanted = "sim:2x24GiB";
         f.nvml = Nvml::missing;
       },
       "GPUs", Health::ok, "simulated", ""},
      {"driver works", [](auto&) {}, "GPUs", Health::ok, "version 550.54", ""},
      {"CUDA", [](auto& f) { f.nvml_cuda = 12040; }, "GPUs", Health::ok, "550.54, CUDA 12.4", ""},
      {"no driver at all",
       [](auto& f) {
         f.nvml = Nvml::missing;
         f.nvidia_device = false;
       },
       "GPUs", Health::warn, "no NVIDIA driver", "BERTH_GPUS=sim"},
      {"library missing", [](auto& f) { f.nvml = Nvml::missing; }, "GPUs", Health::fail,
       "libnvidia-ml.so.1 is missing", "user-space libraries"},
      {"mismatch",
       [](auto& f) {
         f.nvml = Nvml::failed;
         f.nvml_code = 18;
         f.kernel_driver = "535.1";
       },
       "GPUs", Health::fail, "kernel module (535.1) are of different versions", "reboot"},
      {"module not loaded",
       [](auto& f) {
         f.nvml = Nvml::failed;
         f.nvml_code = 9;
       },
       "GPUs", Health::fail, "not loaded", "modprobe"},
      {"no permission",
       [](auto& f) {
         f.nvml = Nvml::failed;
         f.nvml_code = 4;
       },
       "GPUs", Health::fail, "may not use", "/dev/nvidia"},
      {"other code",
       [](auto& f) {
         f.nvml = Nvml::failed;
         f.nvml_code = 999;
       },
       "GPUs", Health::fail, "code 999", "nvidia-smi"},
      {"driver hangs", [](auto& f) { f.nvml = Nvml::hangs; }, "GPUs", Health::fail,
       "does not answer", "Xid"},
      {"the daemon's probe fails", [](auto& f) { f.status->probe.error = "GPU is lost"; }, "GPUs",
       Health::fail, "GPU is lost", "nvidia-smi"},
      {"a card is lost",
       [](auto& f) {
         GpuView& gpu = f.status->gpus.emplace_back();
         gpu.index = 3;
         gpu.trouble = "GPU is lost";
         gpu.lost = true;
       },
       "GPUs", Health::warn, "GPU 3: GPU is lost", "berth resume --gpu 3"},
      {"a card is out of use",
       [](auto& f) {
         GpuView& gpu = f.status->gpus.emplace_back();
         gpu.trouble = "out of use: a new fan";
         gpu.drained_why = "a new fan";
       },
       "GPUs", Health::warn, "GPU 0: out of use: a new fan", "berth resume --gpu 0"},
      {"the simulation is not installed",
       [](auto& f) {
         f.gpus_wanted = "sim:2x24GiB";
         f.status.reset();
         f.lock_held = false;
         f.simulation_found = false;
       },
       "GPUs", Health::fail, "no daemon can start", "lib/berth-sim"},
      {"logind kills",
       [](auto& f) {
         f.logind = true;
         f.kills_user_processes = true;
         f.logind_file = "/etc/systemd/logind.conf";
       },
       "logout", Health::fail, "KillUserProcesses=yes in /etc/systemd/logind.conf",
       "enable-linger ann"},
      {"lingering",
       [](auto& f) {
         f.logind = true;
         f.kills_user_processes = true;
         f.lingers = true;
       },
       "logout", Health::ok, "you linger", ""},
      {"no logind", [](auto& f) { f.kills_user_processes = true; }, "logout", Health::ok, "goes on",
       ""},
      {"clock at the epoch", [](auto& f) { f.wall = Millis(1000); }, "clock", Health::fail,
       "it shows 1970", "set the clock"},
      {"file server's clock", [](auto& f) { f.file_time = f.wall - Millis(60'000); }, "clock",
       Health::warn, "differ by 1m 00s", "synchronise"},
      {"clock set back", [](auto& f) { f.newest = f.wall + Millis(3'600'000); }, "clock",
       Health::warn, "1h 00m ahead", "right"},
      {"no delegation", [](auto& f) { f.cgroup_delegated = false; }, "cgroups", Health::ok,
       "none is delegated to you", ""},
      {"no cgroup v2",
       [](auto& f) {
         f.cgroup_delegated = false;
         f.cgroup2 = false;
       },
       "cgroups", Health::ok, "there is no cgroup v2 here", ""},
      {"no board", [](auto& f) { f.board_problem = "no directory will do"; }, "claims board",
       Health::warn, "berths of different users may use the same GPU", "1777"},
      {"board off", [](auto& f) { f.board_off = true; }, "claims board", Health::ok,
       "BERTH_BOARD=off", ""},
      {"others on the board",
       [](auto& f) {
         f.board = "/run/lock";
         f.board_live = {"ann", "bob"};
         f.board_silent = {"eve"};
       },
       "claims board", Health::ok,
       "in /run/lock: GPUs are claimed by the berths of ann, bob; without a daemon, by those of "
       "eve",
       ""},
      {"few files", [](auto& f) { f.open_files = 256; }, "limits", Health::warn,
       "at most 256 open files", "nofile"},
      {"few processes", [](auto& f) { f.processes = 100; }, "limits", Health::warn,
       "at most 100 processes", "nproc"},
  };
  return all;
}

TEST(DoctorTest, EachAilmentIsFoundExplainedAndNothingElseIs) {
  for (const Case& one : cases()) {
    DoctorFacts facts = healthy();
    one.change(facts);
    bool found = false;
    for (const Finding& finding : diagnose(facts)) {
      // That the driver works does not make each card well.
      const bool driver = finding.check == "GPUs" && finding.health == Health::ok &&
                          one.health != Health::ok && facts.status && !facts.status->gpus.empty();
      if (finding.check == one.check && !driver) {
        found = true;
        EXPECT_EQ(finding.health, one.health) << one.name << ": " << finding.text;
        EXPECT_THAT(finding.text, HasSubstr(one.text)) << one.name;
        EXPECT_THAT(finding.advice, HasSubstr(one.advice)) << one.name;
        EXPECT_EQ(finding.advice.empty(), finding.health == Health::ok) << one.name;
      } else {
        EXPECT_EQ(finding.health, Health::ok) << one.name << ": " << finding.check;
      }
    }
    EXPECT_TRUE(found) << one.name;
  }
}

TEST(DoctorTest, EveryMistakeInTheFileIsToldUpToALimit) {
  DoctorFacts facts = healthy();
  for (int line = 1; line <= 12; ++line) {
    facts.status->problems.push_back(fmt::format("berth.yaml:{}: no such rule", line));
  }
  std::vector<Finding> rules = diagnose(facts);
  std::erase_if(rules, [](const Finding& finding) { return finding.check != "rules"; });
  ASSERT_EQ(rules.size(), 10U);
  EXPECT_EQ(rules[1].text, "berth.yaml:2: no such rule");
  EXPECT_EQ(rules[9].text, "berth.yaml:10: no such rule; and 2 more");
  EXPECT_THAT(rules[9].advice, HasSubstr("berth.yaml"));
}

TEST(DoctorTest, LogindIsReadAsSystemdReadsIt) {
  std::string name = (fs::temp_directory_path() / "berth-doctor-XXXXXX").native();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  const std::string& root = name;
  const auto write = [&](const std::string& file, const std::string& text) {
    fs::create_directories(fs::path(root + file).parent_path());
    std::ofstream(root + file) << text;
  };
  EXPECT_FALSE(read_logind_conf(root).kills);
  write("/usr/lib/systemd/logind.conf", "[Login]\nKillUserProcesses=yes\n");
  EXPECT_TRUE(read_logind_conf(root).kills);
  write("/etc/systemd/logind.conf", "[Login]\n#KillUserProcesses=yes\n");
  EXPECT_FALSE(read_logind_conf(root).kills);  // it stands in place of the vendor's
  write("/run/systemd/logind.conf.d/20-a.conf", "[Login]\n KillUserProcesses = true\n");
  EXPECT_TRUE(read_logind_conf(root).kills);
  EXPECT_EQ(read_logind_conf(root).file, "/run/systemd/logind.conf.d/20-a.conf");
  write("/etc/systemd/logind.conf.d/30-b.conf", "[Other]\nKillUserProcesses=no\n");
  EXPECT_TRUE(read_logind_conf(root).kills);  // of another section
  write("/etc/systemd/logind.conf.d/20-a.conf", "[Login]\nKillUserProcesses=no\n");
  EXPECT_FALSE(read_logind_conf(root).kills);  // it hides the one of the same name
  fs::remove_all(root);
}

}  // namespace
}  // namespace berth::cli
