#pragma once
// The console of compete_gpu_retry: command files by their numbers, batches of them as schedulers
// that are started and stopped, logs that belong to their processes.
//
// Files of users may lie on disks that hang, so everything that touches one is done on a thread of
// its own, which has its own connection to the store.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/http.hpp"
#include "api/routes.hpp"
#include "compete/places.hpp"
#include "core/event.hpp"
#include "daemon/batch_reader.hpp"
#include "daemon/compete_query.hpp"
#include "daemon/loop.hpp"
#include "daemon/settings_watch.hpp"
#include "daemon/shown_files.hpp"
#include "daemon/stop_notes.hpp"
#include "daemon/views.hpp"
#include "daemon/worker.hpp"
#include "engine/engine.hpp"
#include "store/reader.hpp"

namespace berth {

struct CompeteConfig {
  std::string dir;  ///< of the instance
  std::string home;
  std::string node;
  LogPlaces logs;
  std::uint32_t owner = 0;  ///< whose files are shown
};

/// Numbers that stand for schedulers begin behind the last that a process can have: nobody who
/// takes one for a process ends another.
inline constexpr std::uint64_t kSchedulerPids = 4'194'304;

/// Belongs to the loop's thread.
class CompeteApi {
 public:
  CompeteApi(Loop& loop, Engine& engine, const SettingsWatch& settings, StoreReader reader,
             CompeteConfig config, std::function<void(const std::string&)> complain);

  /// For the routes that are about this.
  void handle(const RouteMatch& match, HttpRequest request, Respond respond);
  /// Completes the stops that a daemon before this one has not come to the end of.
  void complete_stops();

 private:
  using Answer = Result<HttpResponse>;

  // In compete_api.cpp: command files and settings.
  void show_config(compete::Cards mode, const HttpRequest& request, Respond respond);
  void write_config(compete::Cards mode, HttpRequest request, Respond respond);
  void delete_config(const RouteMatch& match, compete::Cards mode, Respond respond);
  void settings(Respond respond);
  void set_settings(const HttpRequest& request, Respond respond);
  void about_mode(const RouteMatch& match, HttpRequest request, Respond respond);

  // In compete_scheduler.cpp.
  struct Prepared;
  void start(compete::Cards mode, const HttpRequest& request, Respond respond);
  [[nodiscard]] Result<Prepared> prepare(const compete::Places& places, compete::Cards mode,
                                         std::uint32_t index, std::vector<BatchId> live);
  void submit(Prepared prepared, std::function<void(HttpResponse)> done);
  void state(compete::Cards mode, const HttpRequest& request, Respond respond);
  void running(const HttpRequest& request, Respond respond);

  // In compete_stop.cpp.
  struct StopWork;
  using FindBatch = std::function<Result<FoundBatch>(StoreReader&, std::vector<BatchId>)>;
  void stop(compete::Cards mode, const HttpRequest& request, Respond respond);
  void stop_pid(const RouteMatch& match, const HttpRequest& request, Respond respond);
  void stop_found(const HttpRequest& request, FindBatch find, Respond respond);
  /// What of the batch has not ended.
  [[nodiscard]] Status find_jobs(StopWork& work);
  void begin_stop(const std::shared_ptr<StopWork>& work);
  void forbid_tries(const std::shared_ptr<StopWork>& work);
  void hold_queues(const std::shared_ptr<StopWork>& work);
  void hold(const std::shared_ptr<StopWork>& work, std::vector<std::string> queues);
  void pause_held(const std::shared_ptr<StopWork>& work);
  void release_held(const std::shared_ptr<StopWork>& work);
  void stop_on(const std::shared_ptr<StopWork>& work);
  void end_stop(const std::shared_ptr<StopWork>& work);

  // In compete_logs.cpp.
  void bind_log(const HttpRequest& request, Respond respond);
  void unbind_log(const HttpRequest& request, Respond respond);
  void bound_log(const HttpRequest& request, Respond respond);
  void read_log(const HttpRequest& request, Respond respond);
  /// Whose log it is decides whether a link in its place is followed; refused: nobody's.
  [[nodiscard]] Result<EndLink> find_owner(const compete::Places& places, const std::string& path,
                                           std::uint64_t job);
  [[nodiscard]] Answer log_answer(const std::string& path, EndLink end,
                                  const compete::LogPiece& piece) const;
  [[nodiscard]] ShownFiles shown_files() const;

  /// Does `work` on the thread for files and answers with what it gives.
  void answer(std::function<Answer()> work, Respond respond);
  /// Does `work` there, then `then` here.
  template <class Work, class Then>
  void on_files(Work work, Then then);
  [[nodiscard]] compete::Places places() const;
  /// Batches that have jobs which wait or run.
  [[nodiscard]] std::vector<BatchId> live_batches() const;

  Loop& loop_;
  Engine& engine_;
  const SettingsWatch& settings_;
  CompeteConfig config_;
  StoreReader reader_;  ///< for the thread alone
  std::function<void(const std::string&)> complain_;
  StopNotes stop_notes_;
  std::set<std::string> starting_;                  ///< command files on their way to the store
  std::map<std::string, std::size_t> held_queues_;  ///< paused by so many stops under way
  std::map<BatchId, std::size_t> stopping_;         ///< so many noted stops of it are under way
  Worker files_{"files"};                           ///< last: its tasks use all of the above
};

template <class Work, class Then>
void CompeteApi::on_files(Work work, Then then) {
  files_.post([this, work = std::move(work), then = std::move(then)]() mutable {
    auto result = std::make_shared<decltype(work())>(work());
    loop_.post([result, then = std::move(then)]() mutable { then(std::move(*result)); });
  });
}

}  // namespace berth
