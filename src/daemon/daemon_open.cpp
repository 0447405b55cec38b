// How a daemon is put together: the place where the wiring is visible.

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "api/access.hpp"
#include "daemon/bash_env.hpp"
#include "daemon/daemon_impl.hpp"
#include "daemon/first_state.hpp"
#include "daemon/log.hpp"
#include "daemon/log_evidence.hpp"
#include "daemon/machine.hpp"
#include "daemon/spawn.hpp"
#include "daemon/state_directory.hpp"
#include "proc/cgroup.hpp"
#include "proc/survivors.hpp"
#include "submit/submission.hpp"

namespace berth {

Result<std::unique_ptr<Daemon>> Daemon::open(const DaemonOptions& options,
                                             const RestoreView& restored) {
  open_log(options.log_level);
  ::signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();

  TRY_ASSIGN(const InstancePaths paths,
             options.dir.empty() ? find_instance() : instance_in(options.dir));
  TRY(prepare_instance(paths));
  TRY_ASSIGN(DaemonLock lock, DaemonLock::acquire(paths.lock));
  LogRotation rotation{paths.daemon_log};
  if (const char* size = std::getenv("BERTH_TEST_LOG_BYTES")) {
    rotation.size = std::strtoull(size, nullptr, 10);
  }
  rotate_log(rotation);
  auto impl = std::make_unique<Impl>(std::move(lock));
  impl->paths = paths;
  Impl* self = impl.get();

  const std::string bin_dir = program_directory();
  TRY_ASSIGN(impl->gpus, choose_gpus(options.gpus, paths.dir, bin_dir, options.nvml_library));
  TRY_ASSIGN(impl->own_program, open_own_program());

  StoreOptions store;
  store.file = paths.database;
  store.boot_id = this_boot();
  store.prepare = [self](AttemptId attempt) { return self->launcher->prepare(attempt); };
  store.post = [self](std::function<void()> task) { self->loop.post(std::move(task)); };
  TRY_ASSIGN(impl->store, SqliteStore::open(std::move(store)));
  TRY_ASSIGN(Snapshot snapshot, impl->store->load());
  TRY_ASSIGN(impl->payloads, StoreReader::open(paths.database));
  TRY_ASSIGN(StoreReader reader, StoreReader::open(paths.database));
  TRY_ASSIGN(StoreReader keeping, StoreReader::open(paths.database));
  TRY_ASSIGN(StoreReader telling, StoreReader::open(paths.database));
  TRY_ASSIGN(impl->traits, StoreReader::open(paths.database));
  TRY_ASSIGN(StoreReader competing, StoreReader::open(paths.database));

  ServiceConfig service;
  InstanceFacts facts;
  facts.id = impl->store->instance_id();
  facts.dir = paths.dir;
  facts.bin_dir = bin_dir;
  facts.logs = paths.logs;
  if (auto written = write_bash_env(paths.dir)) {
    facts.bash_env = bash_env_path(paths.dir);
  } else {
    spdlog::warn("event=no_bash_env why={}", log_value(written.error().message));
  }
  facts.replace = impl->gpus.environment;
  if (!impl->gpus.library_dir.empty()) {
    facts.prepend.emplace_back("LD_LIBRARY_PATH", impl->gpus.library_dir);
  }
  Runner::Hooks runner;
  runner.emit = [self](Event event) { self->emit(std::move(event)); };
  runner.sample = [self] { self->sample(); };
  runner.wake = [self](Millis at) { self->wake(at); };
  runner.payload = [self](JobId job) -> Result<Payload> {
    TRY_ASSIGN(auto payload, self->payloads->payload(job));
    if (!payload) {
      return fail(ErrorCode::corrupt,
                  fmt::format("the store has no payload for job {}", job.value));
    }
    return std::move(*payload);
  };
  runner.state_file = [self, last = std::pair<BatchId, std::string>()](BatchId batch) mutable {
    if (last.first != batch) {
      // The store failing is nothing to keep a job from starting: then it only cannot name a pid.
      const auto found = self->payloads->traits(batch);
      const bool has = found && *found && has_state_files(**found);
      last = {batch, has ? uni_id_file((*found)->state_dir) : std::string()};
    }
    return last.second;
  };
  runner.admit = [self](const effect::Start& start, auto answer) {
    if (self->board) {
      self->board->ask(start, std::move(answer));
    } else {
      answer(std::nullopt);
    }
  };
  runner.bus_ids = [self](const std::vector<std::string>& uuids) {
    std::vector<std::string> ids;
    for (const std::string& uuid : uuids) {
      if (const Gpu* gpu = self->engine->state().gpu(uuid)) {
        ids.push_back(gpu->facts.pci_bus_id);
      }
    }
    return ids;
  };
  runner.papers = [self](AttemptId attempt, auto then) {
    self->find_papers(attempt, std::move(then));
  };
  runner.log_limit = [self] { return self->engine->state().rules.log_limit; };
  runner.log = [](std::string_view what, AttemptId attempt, const std::string& detail) {
    spdlog::info("event={} attempt={} detail={}", what, attempt.value, log_value(detail));
  };
  if (std::getenv("BERTH_NO_CGROUP") == nullptr) {
    impl->cgroup = find_cgroup_parent(impl->store->instance_id()).value_or(std::string{});
  }
  LauncherConfig launcher;
  launcher.state_dir = paths.dir;
  launcher.shim = bin_dir + "/berth-shim";
  launcher.instance = impl->store->instance_id();
  launcher.cgroup_parent = impl->cgroup;
  TRY_ASSIGN(impl->launcher, Launcher::open(std::move(launcher)));
  forget_uncommitted(*impl->launcher, snapshot);
  impl->runner = std::make_unique<Runner>(impl->loop, *impl->launcher, std::move(facts), paths.lock,
                                          impl->cgroup, std::move(runner));

  ProberConfig prober;
  prober.program_fd = impl->own_program.get();
  prober.arguments = {"berthd", "--probe", "--nvml-library", impl->gpus.nvml_library};
  for (const auto& [name, value] : impl->gpus.environment) {
    prober.environment.push_back(fmt::format("{}={}", name, value));
  }
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "HOME"}) {
    if (const char* value = std::getenv(name)) {
      prober.environment.push_back(fmt::format("{}={}", name, value));
    }
  }
  if (const char* patience = std::getenv("BERTH_PROBE_PATIENCE_MS")) {
    prober.patience = Millis(std::max(1, std::atoi(patience)));
  }
  Prober::Hooks probing;
  probing.emit = [self](Event event) { self->emit(std::move(event)); };
  probing.wanted = [self] { return !self->stopping && self->engine->state().wants_samples(); };
  probing.within = [self] { return self->engine->state().look_within; };
  probing.attempt_of_shim = [self](std::uint32_t pid) {
    return self->runner->attempt_of_shim(pid);
  };
  impl->prober = std::make_unique<Prober>(impl->loop, std::move(prober), std::move(probing));

  const std::string settings_file = paths.dir + "/berth.yaml";
  Settings settings = read_settings(settings_file);
  for (const std::string& problem : settings.problems) {
    complain_about_settings(problem);
  }
  Rules rules;
  KeeperConfig keeper;
  keeper.logs = paths.logs;
  keeper.database = paths.database;
  keeper.snapshots = snapshots_in(paths.dir);
  shorten_retention_for_tests(rules, keeper);
  impl->engine =
      std::make_unique<Engine>(first_state(snapshot, rules, settings, options.max_concurrent),
                               *impl->store, *impl->runner, impl->clock);
  impl->engine->on_broken = [self](const Error& error) {
    // The State is ahead of the disk. Ending now and recovering is the only safe way on.
    spdlog::critical("event=store_failed why={}", log_value(error.message));
    self->stopping = true;
    self->exit_code = 1;
    self->loop.stop();
  };
  impl->engine->on_durable = [self] {
    self->service->on_durable();
    self->state_writer->changed();
    if (self->board) {
      self->board->claims_changed();
    }
  };
  impl->open_board();

  service.dir = paths.dir;
  service.logs = paths.logs;
  service.instance = impl->store->instance_id();
  service.node = host_name();
  service.simulated = impl->gpus.simulated;
  service.owner = ::getuid();
  service.processes = &impl->processes;
  service.restored = restored;
  impl->readers = std::make_unique<Worker>("reader");
  StateFilesConfig state_files;
  state_files.cursor = paths.dir + "/state_files.cursor";
  state_files.instance = impl->store->instance_id();
  state_files.pid = [self](AttemptId attempt) -> std::optional<std::uint64_t> {
    const auto pid = self->launcher->pid(attempt);
    return pid ? std::optional(static_cast<std::uint64_t>(*pid)) : std::nullopt;
  };
  state_files.reported_error = [logs = paths.logs](const AttemptRow& attempt) {
    EvidencePlaces places;
    places.report = report_path(logs, attempt.job.value, attempt.number);
    return read_evidence(places).report.error_type;
  };
  impl->state_writer = std::make_unique<StateFiles>(std::move(telling), std::move(state_files));
  impl->keeper = std::make_unique<Keeper>(impl->loop, *impl->engine, *impl->store, *impl->readers,
                                          std::move(keeping), std::move(keeper));
  SettingsWatch::Hooks watching;
  watching.apply = [self](const Settings::Values& values, std::function<void()> then) {
    self->apply_settings(values, std::move(then));
  };
  watching.complain = complain_about_settings;
  impl->settings = std::make_unique<SettingsWatch>(impl->loop, *impl->readers, settings_file,
                                                   std::move(settings), std::move(watching));
  impl->compete = std::make_unique<CompeteApi>(
      impl->loop, *impl->engine, *impl->settings, std::move(competing),
      CompeteConfig{paths.dir, home_directory(), service.node, service.log_places(), service.owner},
      [](const std::string& why) { spdlog::warn("event=stop_problem why={}", log_value(why)); });
  DoorConfig door;
  door.file = paths.dir + "/access.json";
  door.login_page = fmt::format("{}/{}", paths.dir, kLoginPage);
  door.instance = impl->store->instance_id();
  door.node = host_name();
  door.owner = ::getuid();
  door.user = user_name();
  Door::Hooks guarding;
  guarding.handle = [self](HttpRequest request, Respond respond) {
    self->answer(std::move(request), std::move(respond));
  };
  guarding.complain = [](const std::string& why) {
    spdlog::warn("event=access_problem why={}", log_value(why));
  };
  guarding.tell = [](const std::string& where) {
    spdlog::info("event=listening where={}", log_value(where));
  };
  guarding.problem = [self](const std::string& what) { self->settings->set_listen_problem(what); };
  guarding.refusal = [self] { return self->settings->listen_refusal(); };
  TRY_ASSIGN(impl->door, Door::open(impl->loop, std::move(door), std::move(guarding)));
  Service::Hooks serving;
  serving.compete = [self](const RouteMatch& match, HttpRequest request, Respond respond) {
    self->compete->handle(match, std::move(request), std::move(respond));
  };
  serving.stop = [self] { self->stop("asked to"); };
  serving.restore = [self](const RestoreRequest& request) {
    self->to_restore = request;
    self->stop("to restore a backup");
  };
  serving.access = [self](const RouteMatch& match, const HttpRequest& request, Respond respond) {
    self->door->handle(match, request, std::move(respond));
  };
  serving.after_board_look = [self](std::function<void()> then) {
    if (self->board) {
      self->board->look(std::move(then));
    } else {
      then();
    }
  };
  serving.after_fresh_look = [self, board = serving.after_board_look](std::function<void()> then) {
    self->after_fresh_look([board, then = std::move(then)] { board(then); });
  };
  impl->service = std::make_unique<Service>(impl->loop, *impl->engine, *impl->readers,
                                            std::move(reader), *impl->keeper, *impl->settings,
                                            std::move(service), std::move(serving));

  std::vector<std::pair<AttemptId, bool>> open_attempts;
  for (const Snapshot::OpenAttempt& attempt : snapshot.attempts) {
    open_attempts.emplace_back(attempt.id, attempt.boot_id == this_boot());
  }
  impl->runner->recover(open_attempts);
  impl->engine->repeat_orders();
  impl->compete->complete_stops();
  impl->door->configure(impl->settings->settings().listen);
  HttpService local;
  local.handler = [self](HttpRequest request, Respond respond) {
    self->answer(std::move(request), std::move(respond));
  };
  local.offload = impl->door->offload();
  TRY_ASSIGN(impl->server, HttpServer::listen(impl->loop.io(), paths.socket, std::move(local)));
  impl->signals = impl->loop.on_signals({SIGTERM, SIGINT, SIGHUP}, [self](int number) {
    if (number == SIGHUP) {
      self->settings->reload();
    } else {
      self->stop(fmt::format("signal {}", number));
    }
  });
  impl->watch_space();
  spdlog::info("event=ready version={} dir={} gpus={} queued={} open_attempts={} cgroup={}",
               BERTH_VERSION, log_value(paths.dir), log_value(impl->gpus.spec),
               snapshot.jobs.size() - snapshot.attempts.size(), snapshot.attempts.size(),
               log_value(impl->cgroup));
  return std::unique_ptr<Daemon>(new Daemon(std::move(impl)));
}

}  // namespace berth
