#pragma once
// The part of the API that tells and takes more than jobs: lists, live streams, logs, what cards
// did, files, results, the instance's health.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/http.hpp"
#include "api/remote.hpp"
#include "api/routes.hpp"
#include "core/event.hpp"
#include "daemon/answers.hpp"
#include "daemon/forked_work.hpp"
#include "daemon/gpu_history.hpp"
#include "daemon/live_streams.hpp"
#include "daemon/log_routes.hpp"
#include "daemon/loop.hpp"
#include "daemon/meter.hpp"
#include "daemon/service_config.hpp"
#include "daemon/settings_watch.hpp"
#include "daemon/worker.hpp"
#include "engine/engine.hpp"
#include "jobspec/job_file.hpp"
#include "store/reader.hpp"

namespace berth {

class Resources {
 public:
  struct Needs {
    Loop& loop;
    Engine& engine;
    Worker& readers;
    StoreReader& reader;  ///< on the thread of `readers` alone
    SettingsWatch& settings;
    const ServiceConfig& config;
    std::function<void(std::function<void()>)> after_fresh_look;
    std::function<void(event::Submit, std::uint32_t owner, Respond)> submit;
  };

  explicit Resources(Needs needs);
  /// What takes long and has not begun is dropped; who asked for it has gone.
  ~Resources();
  Resources(const Resources&) = delete;
  Resources& operator=(const Resources&) = delete;

  /// One of its routes.
  void handle(const RouteMatch& match, HttpRequest request, Respond respond);
  void on_durable();
  void on_sampled();
  /// Ends what is still being told; the daemon is going.
  void close();

 private:
  // Lists, in resources_lists.cpp.
  void batches(const HttpRequest& request, Respond respond);
  void batch(std::uint64_t id, Respond respond);
  void queues(Respond respond);
  void timeline(const HttpRequest& request, Respond respond);
  void rule_changes(const HttpRequest& request, Respond respond);

  // In resources_instance.cpp.
  void metrics(Respond respond);
  void tell_metrics(Respond respond);
  void health(const Respond& respond);
  void openapi(Respond respond);
  void docs(Respond respond);

  // In resources_files.cpp.
  void check_file(HttpRequest request, Respond respond);
  void submit_file(HttpRequest request, Respond respond);
  /// `known`, of each job: what is done is left out of the file. Empty: nothing is.
  void submit_read_file(JobFile file, std::vector<DoneView> known, std::string key,
                        std::uint32_t owner, Respond respond);
  void results(const HttpRequest& request, Respond respond);
  void preview(const HttpRequest& request, Respond respond);

  // For commands on other machines, in resources_remote.cpp.
  void found_runs(const HttpRequest& request, Respond respond);
  void write_files(HttpRequest request, Respond respond);
  void take_snapshot(HttpRequest request, Respond respond);
  struct Taken;
  [[nodiscard]] Result<Taken> take(const SnapshotRequest& asked);

  // In resources_gpus.cpp.
  void gpu_history(const HttpRequest& request, Respond respond);
  void usage(std::uint64_t job, const HttpRequest& request, Respond respond);

  /// Runs `query` with the reader on its thread, then `then` on the loop.
  template <class Query, class Then>
  void read_store(Query query, Then then) {
    needs_.readers.post([this, query = std::move(query), then = std::move(then)]() mutable {
      auto result = std::make_shared<decltype(query(needs_.reader))>(query(needs_.reader));
      needs_.loop.post([result, then = std::move(then)]() mutable { then(std::move(*result)); });
    });
  }
  /// Whether so much of the long work waits that this has been refused.
  [[nodiscard]] bool refuses_long(const Respond& respond);
  /// Likewise what takes long, on a thread where it holds up nobody else.
  template <class Work, class Then>
  void work_long(Work work, Then then) {
    heavy_.post([this, work = std::move(work), then = std::move(then)]() mutable {
      auto result = std::make_shared<decltype(work())>(work());
      needs_.loop.post([result, then = std::move(then)]() mutable { then(std::move(*result)); });
    });
  }
  /// A query whose result is the body of the answer.
  template <class Query>
  void answer_from_store(Query query, Respond respond) {
    read_store(std::move(query), [respond = std::move(respond)](Result<std::string> body) {
      respond(body ? ok(std::move(*body)) : error_response(body.error()));
    });
  }

  [[nodiscard]] LiveStreams::Hooks stream_hooks();
  [[nodiscard]] std::vector<QueueDetail> queue_details(const State& state) const;

  Needs needs_;
  Millis started_;
  std::optional<Millis> last_look_;  ///< at the cards that the driver has answered
  LatencyMeter meter_;
  GpuHistory history_;
  std::deque<Loop::Handle> held_snapshots_;  ///< until they have got their jobs
  struct KnownSnapshot {
    SnapshotRequest asked;
    SnapshotAnswer answer;
    Millis until{0};
  };
  std::map<std::string, KnownSnapshot> known_snapshots_;  ///< by key; on the thread of `heavy_`
  LiveStreams streams_;
  LogRoutes logs_;
  ForkedWork previews_;
  // They end first: what they do uses the others.
  Worker files_;  ///< logs
  Worker heavy_;  ///< what may take seconds
};

}  // namespace berth
