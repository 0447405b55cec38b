// Why jobs wait: one of them, or all.

#include <utility>

#include "api/wire.hpp"
#include "core/backlog.hpp"
#include "daemon/answers.hpp"
#include "daemon/service.hpp"
#include "daemon/views.hpp"

namespace berth {
namespace {

/// Counting walks the line on the loop's thread, and whoever has so many before it does not care
/// how many exactly.
constexpr std::uint64_t kCounted = 10'000;

}  // namespace

void Service::why(std::uint64_t id, Respond respond) {
  with_detail(id, std::move(respond), [this, id](JobDetail detail, Respond reply) {
    WhyView view;
    view.job = std::move(detail.job);
    const Now now = read_clock();
    if (const Job* live = engine_.state().job(JobId{id})) {
      const State& state = engine_.state();
      view.job.state = live->state;
      for (const Reason& reason : explain(state, *live, now)) {
        if (view.reasons.empty()) {
          view.job.why = cause_view(reason);
        }
        view.reasons.push_back(reason_view(reason));
      }
      view.ahead = jobs_ahead(state, *live, kCounted);
      if (!view.reasons.empty()) {
        view.job.reason = view.reasons.front().text;
        if (const auto outlook = foretell(state, *live, now)) {
          view.outlook = describe(*outlook);
          view.foreseen = OutlookView{outlook->gpus, {}, outlook->within};
          for (const JobId job : outlook->jobs) {
            view.foreseen->jobs.push_back(job.value);
          }
        }
      }
    }
    engine_.read([](const State&) { return 0; }, [reply = std::move(reply), view = std::move(view)](
                                                     int) { reply(ok(encode(view))); });
  });
}

void Service::show_backlog(Respond respond) {
  engine_.read(
      [](const State& state) {
        const Backlog found = backlog(state, read_clock());
        BacklogView view;
        view.waiting = found.waiting;
        for (const Holdup& holdup : found.holdups) {
          view.holdups.push_back({std::string(to_string(holdup.reason.kind)), holdup.reason.text,
                                  holdup.first.value, holdup.jobs, reason_view(holdup.reason)});
        }
        return view;
      },
      [respond = std::move(respond)](const BacklogView& view) { respond(ok(encode(view))); });
}

}  // namespace berth
