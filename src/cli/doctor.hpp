#pragma once
// What can be wrong with a machine. Gathering facts and judging them are kept apart: the judgement
// is plain functions of the facts.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/views.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

namespace berth::cli {

/// What was seen. Unknown is nullopt.
struct DoctorFacts {
  std::string version;  ///< of this program
  std::uint32_t uid = 0;
  std::string user;

  // The instance's directory.
  std::string dir;
  std::string instance_error;  ///< why there is no telling where it would be
  bool dir_exists = false;
  bool dir_from_environment = false;  ///< BERTH_DIR names it
  std::uint32_t dir_owner = 0;
  std::uint32_t dir_mode = 0;
  bool dir_writable = true;
  bool network_file_system = false;
  std::optional<Bytes> space_free;
  std::optional<Bytes> space_total;
  std::optional<std::uint64_t> inodes_free;
  std::optional<std::uint64_t> inodes_total;
  std::string socket;

  // The daemon.
  bool socket_exists = false;
  bool lock_held = false;
  bool program_found = true;            ///< berthd lies beside this program
  bool supervisor_found = true;         ///< and so does berth-shim
  std::optional<StatusView> status;     ///< none: no daemon answers
  std::string status_error;             ///< why it gave no answer that could be understood
  std::vector<std::string> log_errors;  ///< the last lines of its log that report errors

  // GPUs.
  std::string gpus_wanted;       ///< "auto", "none", "sim:…"
  bool simulation_found = true;  ///< what simulated ones need is installed
  bool nvidia_device = false;
  std::string kernel_driver;  ///< version of the loaded module; empty: none is loaded
  enum class Nvml : std::uint8_t { missing, failed, hangs, works };
  Nvml nvml = Nvml::missing;
  int nvml_code = 0;         ///< of `failed`
  std::string nvml_version;  ///< of the driver, as the library tells
  int nvml_cuda = 0;         ///< 12040: CUDA 12.4 is the newest it can do; 0: not known

  // The claims board.
  std::string board;                      ///< its directory; empty: none
  bool board_off = false;                 ///< on request
  std::string board_problem;              ///< why it cannot be used
  std::vector<std::string> board_live;    ///< whose berths claim cards there and answer
  std::vector<std::string> board_silent;  ///< whose claims stand there without a daemon

  // Sessions.
  bool logind = false;  ///< systemd-logind looks after sessions here
  bool kills_user_processes = false;
  std::string logind_file;  ///< where that is set
  bool lingers = false;

  // Clocks.
  Millis wall{0};
  std::optional<Millis> file_time;  ///< that a new file in the directory got at `wall`
  std::optional<Millis> newest;     ///< of what berth has recorded

  // Control groups.
  bool cgroup2 = false;
  bool cgroup_delegated = false;

  // Limits.
  std::optional<std::uint64_t> open_files;  ///< hard limit; none: unlimited
  std::optional<std::uint64_t> processes;   ///< soft limit; none: unlimited
};

enum class Health : std::uint8_t { ok, warn, fail };
[[nodiscard]] std::string_view to_string(Health health);

struct Finding {
  std::string check;
  Health health = Health::ok;
  std::string text;    ///< what is the case and what it means
  std::string advice;  ///< what to do; empty: nothing
};

/// Every check, in the order in which they are shown.
[[nodiscard]] std::vector<Finding> diagnose(const DoctorFacts& facts);

/// The cards that nobody gets, one finding for each.
[[nodiscard]] std::vector<Finding> check_cards(const std::vector<GpuView>& gpus);

/// Looks at this machine. Starts no daemon. For tests, BERTH_TEST_ROOT is put before the paths
/// below /etc, /usr/lib, /run, /var, /dev, /proc/driver and /sys that are looked at, and the
/// driver's library is looked for in its root directory instead of the loader's path.
[[nodiscard]] DoctorFacts gather_facts();

/// Whether logind ends what a user left running, and the file that says so; from the files below
/// `root`, as systemd reads them.
struct KillUserProcesses {
  bool kills = false;
  std::string file;
};
[[nodiscard]] KillUserProcesses read_logind_conf(const std::string& root);

}  // namespace berth::cli
