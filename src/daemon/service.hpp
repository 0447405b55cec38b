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
#include "daemon/resources.hpp"
#include "daemon/service_config.hpp"
#include "daemon/settings_watch.hpp"
#include "daemon/views.hpp"
#include "daemon/worker.hpp"
#include "engine/engine.hpp"
#include "store/reader.hpp"

namespace berth {

class Service {
 public:
  struct Hooks {
    std::function<void()> stop;
    /// Ends, restores, and begins anew.
    std::function<void(const RestoreRequest&)> restore;
    /// Answers what concerns command files by their numbers.
    std::function<void(const RouteMatch&, HttpRequest, Respond)> compete;
    /// Answers what concerns access.
    std::function<void(const RouteMatch&, const HttpRequest&, Respond)> access;
    /// Calls back when it is known what others hold on the claims board now: where nothing waits,
    /// nobody has looked for a while.
    std::function<void(std::function<void()>)> after_board_look;
    /// Calls back after a look at the GPUs, and the board, that begins now.
    std::function<void(std::function<void()>)> after_fresh_look;
  };

  Service(Loop& loop, Engine& engine, Worker& readers, StoreReader reader, Keeper& keeper,
          SettingsWatch& settings, ServiceConfig config, Hooks hooks);

  void handle(HttpRequest request, Respond respond);
  /// Something has become durable: whoever waits may have what they wait for.
  void on_durable();
  /// There has been a look at the GPUs.
  void on_sampled() { resources_.on_sampled(); }
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

  /// Decoding a larger body takes long enough to be noticed by others.
  static constexpr std::size_t kDecodeHere = 64 * 1024;

  void submit(HttpRequest request, Respond respond);
  void submit_decoded(Result<event::Submit> submit, std::uint32_t owner, Respond respond);
  /// Whether the reading thread has a part in the answer. What does without is answered however
  /// long that thread's queue is.
  [[nodiscard]] static bool needs_reader(RouteId route, const HttpRequest& request);
  /// Whether more work would only lengthen the queue; then the client is told to come back.
  [[nodiscard]] bool overloaded(RouteId route, const HttpRequest& request);
  void list_jobs(const HttpRequest& request, Respond respond);
  void show_job(std::uint64_t id, const HttpRequest& request, Respond respond);
  void why(std::uint64_t id, Respond respond);
  void show_backlog(Respond respond);
  void kill(const HttpRequest& request, Respond respond);
  void remove(const HttpRequest& request, Respond respond);
  void backup(const HttpRequest& request, const Respond& respond);
  void restore(const HttpRequest& request, Respond respond);
  void done(HttpRequest request, Respond respond);
  void wait(const HttpRequest& request, Respond respond);

  // In service_control.cpp.
  struct ControlRun;
  void pause(const HttpRequest& request, bool paused, Respond respond);
  void start(const HttpRequest& request, Respond respond);
  void move(const HttpRequest& request, Respond respond);
  void set_jobs(const HttpRequest& request, Respond respond);
  void retry(const HttpRequest& request, Respond respond);
  void retry_ids(const RetryRequest& asked, IdSet ids, Respond respond);
  /// Of a queue, a card or the whole instance.
  void pause_other(const ControlRequest& asked, bool paused, Respond respond);
  /// Does the next part of a request about many jobs, and comes back for the rest.
  void control(const std::shared_ptr<ControlRun>& run);
  void control_done(const std::shared_ptr<ControlRun>& run);

  // In service_rules.cpp.
  void rules(const HttpRequest& request, Respond respond);
  void set_rules(const HttpRequest& request, Respond respond);
  void save_rules(SetRulesRequest asked, Respond respond);
  /// `note`: what to tell besides; empty: nothing.
  void answer_rules(const RulesQuery& query, Respond respond, const std::string& note = {});
  [[nodiscard]] Result<RulesView> rules_view(const RulesQuery& query) const;

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
  void tell(const std::shared_ptr<Waiter>& waiter, WaitAnswer found);
  void look(const std::shared_ptr<Listener>& listener);
  [[nodiscard]] JobView view(const JobRow& row) const;
  /// Adds why each waiting job waits, a slice at a time, then calls `then`.
  void explain_all(std::shared_ptr<std::vector<JobView>> jobs, std::size_t from,
                   std::function<void()> then);
  struct KillWork;
  void kill_on(const std::shared_ptr<KillWork>& work);
  [[nodiscard]] std::vector<GpuView> gpu_views() const;
  [[nodiscard]] Resources::Needs resource_needs();

  Loop& loop_;
  Engine& engine_;
  Keeper& keeper_;
  Worker& readers_;
  SettingsWatch& settings_;
  StoreReader reader_;
  ServiceConfig config_;
  Hooks hooks_;
  RestoreView restore_;
  Millis started_;
  std::size_t streams_ = 0;  ///< submissions that are arriving
  std::list<std::shared_ptr<Waiter>> waiters_;
  std::list<std::shared_ptr<Listener>> listeners_;
  Loop::Handle listeners_timer_;
  Resources resources_;
};

template <class Query, class Then>
void Service::read_store(Query query, Then then) {
  readers_.post([this, query = std::move(query), then = std::move(then)]() mutable {
    auto result = std::make_shared<decltype(query(reader_))>(query(reader_));
    loop_.post([result, then = std::move(then)]() mutable { then(std::move(*result)); });
  });
}

}  // namespace berth
