#pragma once
// Answers the API: reads come from the store's committed rows, explained with the present State;
// changes go through the engine.

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "api/control.hpp"
#include "api/http.hpp"
#include "api/routes.hpp"
#include "api/wire.hpp"
#include "daemon/keeper.hpp"
#include "daemon/loop.hpp"
#include "daemon/settings.hpp"
#include "daemon/worker.hpp"
#include "engine/engine.hpp"
#include "store/reader.hpp"

namespace berth {

struct ServiceConfig {
  std::string dir;
  std::string logs;
  std::string node;
  bool simulated = false;
  std::uint32_t owner = 0;  ///< the only user who gets in
  std::string settings_file;
  Settings settings;  ///< what it said when the daemon started
};

class Service {
 public:
  struct Hooks {
    std::function<void()> stop;
    /// Calls back after a look at the GPUs that begins now.
    std::function<void(std::function<void()>)> after_fresh_look;
  };

  Service(Loop& loop, Engine& engine, Worker& readers, StoreReader reader, Keeper& keeper,
          ServiceConfig config, Hooks hooks);

  void handle(HttpRequest request, Respond respond);
  /// Something has become durable: whoever waits may have what they wait for.
  void on_durable();
  /// Answers whoever still waits; the daemon is going.
  void close();

 private:
  struct Waiter {
    WaitQuery query;
    Respond respond;
    Loop::Handle timeout;
    std::uint64_t live = 0;     ///< an id known to be alive: nothing to check while it is
    std::uint64_t checked = 0;  ///< ids up to this one have ended
    bool checking = false;      ///< comes back for more
    bool answering = false;
  };
  struct Listener {
    EventQuery query;
    Respond respond;
    Loop::Handle timeout;
    bool looking = false;
    bool again = false;  ///< something became durable during the look
    bool last_look = false;
  };

  void submit(HttpRequest request, Respond respond);
  void submit_decoded(Result<event::Submit> submit, std::uint32_t owner, Respond respond);
  /// Whether more work would only lengthen the queue; then the client is told to come back.
  [[nodiscard]] bool overloaded(RouteId route);
  void list_jobs(const HttpRequest& request, Respond respond);
  void show_job(std::uint64_t id, Respond respond);
  void why(std::uint64_t id, Respond respond);
  void kill(const HttpRequest& request, Respond respond);
  void remove(const HttpRequest& request, Respond respond);
  void backup(const HttpRequest& request, Respond respond);
  void wait(const HttpRequest& request, Respond respond);

  // In service_control.cpp.
  struct ControlRun;
  void pause(const HttpRequest& request, bool paused, Respond respond);
  void start(const HttpRequest& request, Respond respond);
  void move(const HttpRequest& request, Respond respond);
  void set_jobs(const HttpRequest& request, Respond respond);
  void rules(Respond respond);
  void set_rules(const HttpRequest& request, Respond respond);
  void pause_queue(const std::string& queue, bool paused, Respond respond);
  /// Does the next part of a request about many jobs, and comes back for the rest.
  void control(const std::shared_ptr<ControlRun>& run);
  void control_done(const std::shared_ptr<ControlRun>& run);
  [[nodiscard]] RulesView rules_view() const;

  void gpus(Respond respond);
  void status(Respond respond);
  void events(const HttpRequest& request, Respond respond);

  /// Reads everything about a job and goes on, or answers that there is none.
  void with_detail(std::uint64_t id, Respond respond, std::function<void(JobDetail, Respond)> then);
  /// Runs `query` with the reader on its thread, then `then` on the loop.
  template <class Query, class Then>
  void read_store(Query query, Then then);
  void check(const std::shared_ptr<Waiter>& waiter);
  void answer(const std::shared_ptr<Waiter>& waiter, bool done);
  void look(const std::shared_ptr<Listener>& listener);
  [[nodiscard]] JobView view(const JobRow& row) const;
  /// Adds why each waiting job waits, a slice at a time, then calls `then`.
  void explain_all(std::shared_ptr<std::vector<JobView>> jobs, std::size_t from,
                   std::function<void()> then);
  struct KillWork;
  void kill_on(const std::shared_ptr<KillWork>& work);
  [[nodiscard]] std::vector<GpuView> gpu_views() const;

  Loop& loop_;
  Engine& engine_;
  Keeper& keeper_;
  Worker& readers_;
  StoreReader reader_;
  ServiceConfig config_;
  Hooks hooks_;
  Millis started_;
  std::size_t streams_ = 0;  ///< submissions that are arriving
  std::list<std::shared_ptr<Waiter>> waiters_;
  std::list<std::shared_ptr<Listener>> listeners_;
  Loop::Handle listeners_timer_;
};

template <class Query, class Then>
void Service::read_store(Query query, Then then) {
  readers_.post([this, query = std::move(query), then = std::move(then)]() mutable {
    auto result = std::make_shared<decltype(query(reader_))>(query(reader_));
    loop_.post([result, then = std::move(then)]() mutable { then(std::move(*result)); });
  });
}

}  // namespace berth
