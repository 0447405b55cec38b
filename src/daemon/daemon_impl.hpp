#pragma once
// All that a daemon consists of, for the files that put it together and run it.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "api/http.hpp"
#include "api/paths.hpp"
#include "daemon/board_watch.hpp"
#include "daemon/compete_api.hpp"
#include "daemon/daemon.hpp"
#include "daemon/door.hpp"
#include "daemon/gpu_source.hpp"
#include "daemon/keeper.hpp"
#include "daemon/loop.hpp"
#include "daemon/prober.hpp"
#include "daemon/process_notes.hpp"
#include "daemon/runner.hpp"
#include "daemon/service.hpp"
#include "daemon/settings_watch.hpp"
#include "daemon/state_files.hpp"
#include "daemon/worker.hpp"
#include "engine/engine.hpp"
#include "proc/daemon_lock.hpp"
#include "proc/launcher.hpp"
#include "store/reader.hpp"
#include "store/sqlite_store.hpp"

namespace berth {

class RealClock final : public Clock {
 public:
  Now now() override { return read_clock(); }
};

void complain_about_settings(const std::string& problem);

// Members are destroyed from the bottom up: first who talks to people, then who acts, the store and
// the lock last.
struct Daemon::Impl {
  explicit Impl(DaemonLock held) : lock(std::move(held)) {}

  DaemonLock lock;
  InstancePaths paths;
  GpuSource gpus;
  std::string cgroup;  ///< under which attempts get theirs; empty: none
  Fd own_program;
  Loop loop;
  RealClock clock;
  std::unique_ptr<Launcher> launcher;
  std::unique_ptr<SqliteStore> store;
  std::optional<StoreReader> payloads;  ///< for the spawning thread alone
  std::unique_ptr<Runner> runner;
  std::unique_ptr<Prober> prober;
  std::unique_ptr<Engine> engine;
  ProcessNotes processes{read_process_note};
  std::unique_ptr<BoardWatch> board;  ///< none: no board is used
  std::unique_ptr<Keeper> keeper;
  std::unique_ptr<SettingsWatch> settings;
  std::unique_ptr<CompeteApi> compete;
  std::unique_ptr<Service> service;
  std::optional<StoreReader> traits;                     ///< for the reading thread alone
  std::unordered_map<BatchId, std::string> state_files;  ///< uni_id.json of batches; empty: none
  std::unique_ptr<StateFiles> state_writer;
  std::unique_ptr<Worker> readers;
  std::unique_ptr<Door> door;
  std::unique_ptr<HttpServer> server;
  Loop::Handle signals;
  Loop::Handle space_timer;
  Loop::Handle stop_timer;
  Loop::Handle alarm;
  Loop::Handle host_look;
  std::optional<RestoreRequest> to_restore;
  bool stopping = false;
  int exit_code = 0;

  void open_board();
  void find_papers(AttemptId attempt, std::function<void(EvidencePlaces)> then);
  void log_event(const Event& event);
  void emit(Event event);
  void sample();
  void look_at_host_again();
  void after_fresh_look(std::function<void()> then);
  void wake(Millis at);
  void watch_space();
  void apply_settings(const Settings::Values& values, std::function<void()> then);
  void answer(HttpRequest request, Respond respond);
  void stop(std::string_view why);
};

}  // namespace berth
