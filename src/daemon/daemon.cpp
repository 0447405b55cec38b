#include "daemon/daemon.hpp"

#include <malloc.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "api/http.hpp"
#include "api/paths.hpp"
#include "core/rule_table.hpp"
#include "daemon/gpu_source.hpp"
#include "daemon/keeper.hpp"
#include "daemon/log.hpp"
#include "daemon/loop.hpp"
#include "daemon/prober.hpp"
#include "daemon/runner.hpp"
#include "daemon/service.hpp"
#include "daemon/spawn.hpp"
#include "daemon/worker.hpp"
#include "engine/engine.hpp"
#include "proc/cgroup.hpp"
#include "proc/daemon_lock.hpp"
#include "proc/launcher.hpp"
#include "store/reader.hpp"
#include "store/sqlite_store.hpp"

namespace berth {
namespace {

constexpr Millis kSpaceCheck{5'000};

class RealClock final : public Clock {
 public:
  Now now() override { return read_clock(); }
};

std::string first_line(const char* path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string boot_id() {
  // A test may stand in for a reboot.
  if (const char* given = std::getenv("BERTH_TEST_BOOT_ID")) {
    return given;
  }
  return first_line("/proc/sys/kernel/random/boot_id");
}

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

HostCapacity host_capacity() {
  HostCapacity host;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (::sched_getaffinity(0, sizeof cpus, &cpus) == 0) {
    host.cpus = static_cast<std::uint32_t>(CPU_COUNT(&cpus));
  }
  struct sysinfo info{};
  if (::sysinfo(&info) == 0) {
    host.memory = Bytes{info.totalram} * info.mem_unit;
  }
  return host;
}

/// Every running job holds a descriptor or two; the usual soft limit of 1024 would be the first
/// wall.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

/// Records of attempts that were prepared but never committed: nothing ran, and their numbers are
/// not given to anybody else.
void forget_uncommitted(Launcher& launcher, Snapshot& snapshot) {
  std::set<AttemptId> open_attempts;
  for (const Snapshot::OpenAttempt& attempt : snapshot.attempts) {
    open_attempts.insert(attempt.id);
  }
  for (const AttemptId attempt : launcher.leftovers()) {
    if (!open_attempts.contains(attempt)) {
      launcher.forget(attempt);
    }
    snapshot.last_attempt = std::max(snapshot.last_attempt, attempt);
  }
}

/// From the first decision on.
void apply_settings(const Settings& settings, Rules& rules, Snapshot& snapshot) {
  for (const auto& [key, value] : settings.values) {
    [[maybe_unused]] const Status checked_before = set_rule(rules, key, value);
    if (const auto queue = queue_of_rule(key)) {
      for (auto& [id, spec] : snapshot.queues) {
        if (spec.name == *queue) {
          spec.limit = parse_queue_limit(key, value).value_or(spec.limit);
        }
      }
    }
  }
  for (const auto& [name, total] : rules.resources) {
    snapshot.resources[name] = total;
  }
}

std::string program_directory() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string(".") : path.parent_path().string();
}

}  // namespace

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
  std::unique_ptr<Keeper> keeper;
  std::unique_ptr<Service> service;
  std::unique_ptr<Worker> readers;
  std::unique_ptr<HttpServer> server;
  std::vector<std::pair<std::string, std::string>> saved;  ///< rules of berth.yaml
  Loop::Handle signals;
  Loop::Handle space_timer;
  Loop::Handle stop_timer;
  bool stopping = false;
  int exit_code = 0;

  void log_event(const Event& event);
  void emit(Event event);
  void sample();
  void watch_space();
  void stop(std::string_view why);
};

void Daemon::Impl::emit(Event event) {
  if (stopping) {
    return;  // the next daemon finds it again
  }
  log_event(event);
  const bool ended = std::holds_alternative<event::AttemptExited>(event);
  engine->handle(std::move(event));
  if (ended) {
    keeper->job_ended();
  }
}

void Daemon::Impl::log_event(const Event& event) {
  if (const auto* exited = std::get_if<event::AttemptExited>(&event)) {
    const Verdict& verdict = exited->verdict;
    const auto attempt = engine->state().attempts.find(exited->attempt);
    spdlog::info("event=exited attempt={} job={} class={} code={} message={}",
                 exited->attempt.value,
                 attempt == engine->state().attempts.end() ? 0 : attempt->second.job.value,
                 verdict.failure ? to_string(*verdict.failure) : "ok",
                 verdict.exit_code.value_or(-1), log_value(verdict.message));
  } else if (const auto* failed = std::get_if<event::ProbeFailed>(&event)) {
    if (engine->state().probe_error != failed->why) {
      spdlog::warn("event=probe_failed why={}", log_value(failed->why));
    }
  } else if (const auto* space = std::get_if<event::SpaceChanged>(&event)) {
    spdlog::warn("event=space low={} detail={}", space->low, log_value(space->detail));
  }
}

void Daemon::Impl::sample() {
  if (gpus.none) {
    loop.post([this] { emit(event::Sampled{GpuSample{read_clock().mono, {}, "none"}}); });
  } else {
    prober->request();
  }
}

void Daemon::Impl::watch_space() {
  if (stopping) {
    return;
  }
  space_timer = loop.after(kSpaceCheck, [this] {
    store->check_space([this](const SpaceReport& report) {
      if (report.low != engine->state().low_space) {
        emit(event::SpaceChanged{report.low, report.detail});
      }
      watch_space();
    });
  });
}

void Daemon::Impl::stop(std::string_view why) {
  if (std::exchange(stopping, true)) {
    return;
  }
  spdlog::info("event=stopping why={} running={}", log_value(why), engine->state().running);
  server->stop();
  service->close();
  keeper->stop();
  // One more turn for answers on their way out, then the end; what is not durable was not answered.
  engine->read([](const State&) { return 0; },
               [this](int) { stop_timer = loop.after(Millis(20), [this] { loop.stop(); }); });
}

Result<std::unique_ptr<Daemon>> Daemon::open(const DaemonOptions& options) {
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
  store.boot_id = boot_id();
  store.prepare = [self](AttemptId attempt) { return self->launcher->prepare(attempt); };
  store.post = [self](std::function<void()> task) { self->loop.post(std::move(task)); };
  TRY_ASSIGN(impl->store, SqliteStore::open(std::move(store)));
  TRY_ASSIGN(Snapshot snapshot, impl->store->load());
  TRY_ASSIGN(impl->payloads, StoreReader::open(paths.database));
  TRY_ASSIGN(StoreReader reader, StoreReader::open(paths.database));
  TRY_ASSIGN(StoreReader keeping, StoreReader::open(paths.database));

  ServiceConfig service;
  InstanceFacts facts;
  facts.id = impl->store->instance_id();
  facts.dir = paths.dir;
  facts.bin_dir = bin_dir;
  facts.logs = paths.logs;
  facts.replace = impl->gpus.environment;
  if (!impl->gpus.library_dir.empty()) {
    facts.prepend.emplace_back("LD_LIBRARY_PATH", impl->gpus.library_dir);
  }
  Runner::Hooks runner;
  runner.emit = [self](Event event) { self->emit(std::move(event)); };
  runner.sample = [self] { self->sample(); };
  runner.payload = [self](JobId job) -> Result<Payload> {
    TRY_ASSIGN(auto payload, self->payloads->payload(job));
    if (!payload) {
      return fail(ErrorCode::corrupt,
                  fmt::format("the store has no payload for job {}", job.value));
    }
    return std::move(*payload);
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
  probing.attempt_of_shim = [self](std::uint32_t pid) {
    return self->runner->attempt_of_shim(pid);
  };
  impl->prober = std::make_unique<Prober>(impl->loop, std::move(prober), std::move(probing));

  service.settings_file = paths.dir + "/berth.yaml";
  service.settings = read_settings(service.settings_file);
  for (const std::string& problem : service.settings.problems) {
    spdlog::warn("event=settings_problem what={}", log_value(problem));
  }
  Rules rules;
  apply_settings(service.settings, rules, snapshot);
  impl->saved = service.settings.values;
  if (options.max_concurrent != 0) {
    rules.max_concurrent = options.max_concurrent;
    std::erase_if(impl->saved, [](const auto& v) { return v.first == "max_concurrent"; });
  }
  KeeperConfig keeper;
  keeper.logs = paths.logs;
  keeper.database = paths.database;
  shorten_retention_for_tests(rules, keeper);
  impl->engine = std::make_unique<Engine>(restore(snapshot, std::move(rules), host_capacity()),
                                          *impl->store, *impl->runner, impl->clock);
  impl->engine->on_broken = [self](const Error& error) {
    // The State is ahead of the disk. Ending now and recovering is the only safe way on.
    spdlog::critical("event=store_failed why={}", log_value(error.message));
    self->stopping = true;
    self->exit_code = 1;
    self->loop.stop();
  };
  impl->engine->on_durable = [self] { self->service->on_durable(); };

  service.dir = paths.dir;
  service.logs = paths.logs;
  service.node = host_name();
  service.simulated = impl->gpus.simulated;
  service.owner = ::getuid();
  impl->readers = std::make_unique<Worker>("reader");
  impl->keeper = std::make_unique<Keeper>(impl->loop, *impl->engine, *impl->store, *impl->readers,
                                          std::move(keeping), std::move(keeper));
  Service::Hooks serving;
  serving.stop = [self] { self->stop("asked to"); };
  serving.after_fresh_look = [self](std::function<void()> then) {
    if (self->gpus.none) {
      then();
    } else {
      self->prober->after_fresh(std::move(then));
    }
  };
  impl->service =
      std::make_unique<Service>(impl->loop, *impl->engine, *impl->readers, std::move(reader),
                                *impl->keeper, std::move(service), std::move(serving));

  std::vector<std::pair<AttemptId, bool>> open_attempts;
  for (const Snapshot::OpenAttempt& attempt : snapshot.attempts) {
    open_attempts.emplace_back(attempt.id, attempt.boot_id == boot_id());
  }
  impl->runner->recover(open_attempts);
  impl->engine->repeat_orders();
  TRY_ASSIGN(impl->server,
             HttpServer::listen(
                 impl->loop.io(), paths.socket, [self](HttpRequest request, Respond respond) {
                   self->loop.timed(
                       [&] { self->service->handle(std::move(request), std::move(respond)); });
                 }));
  impl->signals = impl->loop.on_signals({SIGTERM, SIGINT, SIGHUP}, [self](int number) {
    self->stop(fmt::format("signal {}", number));
  });
  impl->watch_space();
  spdlog::info("event=ready version={} dir={} gpus={} queued={} open_attempts={} cgroup={}",
               BERTH_VERSION, log_value(paths.dir), log_value(impl->gpus.spec),
               snapshot.jobs.size() - snapshot.attempts.size(), snapshot.attempts.size(),
               log_value(impl->cgroup));
  return std::unique_ptr<Daemon>(new Daemon(std::move(impl)));
}

Daemon::Daemon(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Daemon::~Daemon() = default;

int Daemon::run() {
  ::malloc_trim(0);  // reading the store took twice what is kept of it
  // The first look, and whatever can start without one; on a full disk nothing may.
  impl_->store->check_space([this](const SpaceReport& report) {
    if (report.low) {
      impl_->emit(event::SpaceChanged{report.low, report.detail});
    }
    impl_->sample();
    // The rules hold already, but for those of queues that nobody has used yet.
    if (!impl_->saved.empty()) {
      impl_->emit(event::SetRules{std::exchange(impl_->saved, {})});
    }
    impl_->emit(event::Tick{});
    impl_->keeper->start();
  });
  impl_->loop.run();
  if (impl_->exit_code == 0) {
    std::error_code ignored;
    std::filesystem::remove(impl_->paths.socket, ignored);
    if (!impl_->cgroup.empty()) {
      ::rmdir(impl_->cgroup.c_str());  // stays while a job runs in it
    }
    spdlog::info("event=stopped");
  }
  return impl_->exit_code;
}

}  // namespace berth
