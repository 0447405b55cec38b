// The instance: its cards and how it is.

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/answers.hpp"
#include "daemon/rule_warnings.hpp"
#include "daemon/service.hpp"
#include "daemon/views.hpp"

namespace berth {
namespace {

constexpr Millis kGpuAgeShown{1'000};

}  // namespace

std::vector<GpuView> Service::gpu_views() const {
  return make_gpu_views(engine_.state(), config_.node, read_clock(), config_.processes);
}

void Service::gpus(Respond respond) {
  const auto& seen = engine_.state().seen;
  const auto now = [this, respond = std::move(respond)] {
    engine_.read([this](const State&) { return gpu_views(); },
                 [respond](const std::vector<GpuView>& views) { respond(ok(encode(views))); });
  };
  if (seen && read_clock().mono - *seen < kGpuAgeShown) {
    hooks_.after_board_look(now);
  } else {
    hooks_.after_fresh_look(now);
  }
}

void Service::status(Respond respond) {
  read_store([](StoreReader& reader) { return reader.counts(); },
             [this, respond = std::move(respond)](Result<StateCounts> counts) mutable {
               if (!counts) {
                 respond(error_response(counts.error()));
                 return;
               }
               const State& state = engine_.state();
               StatusView status;
               status.version = BERTH_VERSION;
               status.pid = static_cast<std::uint32_t>(::getpid());
               status.instance = config_.dir;
               status.node = config_.node;
               status.uptime = read_clock().mono - started_;
               for (std::size_t i = 0; i < counts->size(); ++i) {
                 status.counts[static_cast<JobState>(i)] = (*counts)[i];
               }
               status.gpus = gpu_views();
               status.probe.driver = state.driver;
               if (state.seen) {
                 status.probe.age = read_clock().mono - *state.seen;
               }
               status.probe.error = state.probe_error;
               status.probe.simulated = config_.simulated;
               const LoopStats& loop = loop_.stats();
               status.loop.tasks = loop.tasks;
               status.loop.over_limit = loop.over_limit;
               status.loop.longest_us = static_cast<std::uint64_t>(loop.longest.count());
               status.loop.longest_wall_us = static_cast<std::uint64_t>(loop.longest_wall.count());
               status.space.low = state.low_space;
               status.space.detail = state.space_detail;
               status.queues = make_queue_views(state);
               status.paused = state.paused;
               status.problems = settings_.problems();
               std::ranges::move(rule_warnings(state, state.rules),
                                 std::back_inserter(status.problems));
               engine_.read([](const State&) { return 0; },
                            [respond = std::move(respond), status = std::move(status)](int) {
                              respond(ok(encode(status)));
                            });
             });
}

}  // namespace berth
