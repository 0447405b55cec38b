// The most that could be had: the same supervisor, a log file, one durable commit per job, two jobs
// in flight, and no scheduler at all. `--no-commit` leaves out the commit as well.
//
// Prints jobs per second.

#include <sqlite3.h>

#include <poll.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "proc/launcher.hpp"

namespace {

using namespace berth;

constexpr int kInFlight = 2;

void check(bool ok, const std::string& what) {
  if (!ok) {
    std::fprintf(stderr, "ceiling: %s\n", what.c_str());
    std::exit(1);
  }
}

class Commits {
 public:
  explicit Commits(const std::string& file) {
    check(sqlite3_open(file.c_str(), &db_) == SQLITE_OK, "cannot open " + file);
    run("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE jobs(id INTEGER PRIMARY "
        "KEY, code INTEGER);");
    sqlite3_prepare_v2(db_, "INSERT INTO jobs VALUES(?, ?)", -1, &insert_, nullptr);
  }
  ~Commits() {
    sqlite3_finalize(insert_);
    sqlite3_close(db_);
  }
  Commits(const Commits&) = delete;
  Commits& operator=(const Commits&) = delete;

  void one(std::uint64_t id) {
    const std::scoped_lock lock(mutex_);
    sqlite3_bind_int64(insert_, 1, static_cast<sqlite3_int64>(id));
    sqlite3_bind_int64(insert_, 2, 0);
    check(sqlite3_step(insert_) == SQLITE_DONE, "commit failed");
    sqlite3_reset(insert_);
  }

 private:
  void run(const char* sql) {
    check(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) == SQLITE_OK, sql);
  }
  sqlite3* db_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  std::mutex mutex_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: ceiling DIR SHIM JOBS [--no-commit]\n");
    return 2;
  }
  const std::string dir = argv[1];
  const auto jobs = static_cast<std::uint64_t>(std::strtoul(argv[3], nullptr, 10));
  const bool commit = argc < 5 || std::strcmp(argv[4], "--no-commit") != 0;
  std::filesystem::create_directories(dir + "/logs");
  LauncherConfig config;
  config.state_dir = dir;
  config.shim = argv[2];
  config.instance = "ceiling";
  auto launcher = Launcher::open(config);
  check(launcher.has_value(), "cannot open the launcher");
  Commits commits(dir + "/ceiling.db");
  std::atomic<std::uint64_t> next{1};

  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> lanes;
    for (int lane = 0; lane < kInFlight; ++lane) {
      lanes.emplace_back([&] {
        for (std::uint64_t id = next++; id <= jobs; id = next++) {
          const AttemptId attempt{id};
          check((*launcher)->prepare(attempt).has_value(), "cannot prepare");
          LaunchSpec spec;
          spec.attempt = attempt;
          spec.job = JobId{id};
          spec.commands = {{false, {"true"}}};
          spec.environment = {"PATH=/usr/bin:/bin"};
          spec.cwd = "/";
          spec.log = fmt::format("{}/logs/{}.log", dir, id);
          auto shim = (*launcher)->spawn(spec);
          check(shim.has_value(), shim ? "" : shim.error().message);
          pollfd wait{shim->pidfd.get(), POLLIN, 0};
          while (::poll(&wait, 1, -1) != 1) {
          }
          const auto found = (*launcher)->collect(attempt, *shim);
          const auto* ended = std::get_if<recovery::Ended>(&found);
          check(ended != nullptr && !ended->verdict.failure, "a job failed");
          if (commit) {
            commits.one(id);
          }
          (*launcher)->forget(attempt);
        }
      });
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%.1f\n", static_cast<double>(jobs) / took.count());
  return 0;
}
