#include "daemon/resources.hpp"

#include <utility>

#include "daemon/answers.hpp"

namespace berth {

Resources::Resources(Needs needs)
    : needs_(std::move(needs)),
      started_(read_clock().mono),
      history_(needs_.loop, needs_.config.dir),
      streams_(needs_.loop, needs_.readers, needs_.reader, stream_hooks()),
      logs_(needs_.loop, needs_.readers, needs_.reader, files_, needs_.config),
      previews_(needs_.loop, "the preview", {}),
      files_("files"),
      heavy_("parser") {
  needs_.engine.meter = &meter_;
}

Resources::~Resources() {
  heavy_.give_up();
}

bool Resources::refuses_long(const Respond& respond) {
  constexpr std::size_t kWaiting = 20;
  if (heavy_.backlog() <= kWaiting) {
    return false;
  }
  respond(
      error_response({ErrorCode::busy, "the daemon has too much to do; try again in a moment"}));
  return true;
}

LiveStreams::Hooks Resources::stream_hooks() {
  LiveStreams::Hooks hooks;
  hooks.gpus = [this](std::function<void(std::vector<GpuView>)> then) {
    needs_.after_fresh_look([this, then = std::move(then)] {
      needs_.engine.read(
          [this](const State& state) {
            return make_gpu_views(state, needs_.config.node, read_clock(), needs_.config.processes);
          },
          then);
    });
  };
  hooks.status = [this](StateCounts counts, std::function<void(LiveStatus)> then) {
    needs_.engine.read(
        [this, &counts](const State& state) {
          LiveStatus status;
          for (std::size_t i = 0; i < counts.size(); ++i) {
            status.counts[static_cast<JobState>(i)] = counts.at(i);
          }
          status.paused = state.paused;
          for (const auto& [id, queue] : state.queues) {
            status.queues.push_back({queue.name, queue.limit, queue.running, queue.paused});
          }
          status.space.low = state.low_space;
          status.space.detail = state.space_detail;
          status.probe_error = state.probe_error;
          status.problems = needs_.settings.problems();
          return status;
        },
        std::move(then));
  };
  return hooks;
}

void Resources::handle(const RouteMatch& match, HttpRequest request, Respond respond) {
  switch (match.route->id) {
    case RouteId::job_log:
      return logs_.get(match.id, request, std::move(respond));
    case RouteId::follow_log:
      return logs_.follow(match.id, request, std::move(respond));
    case RouteId::job_usage:
      return usage(match.id, request, std::move(respond));
    case RouteId::batches:
      return batches(request, std::move(respond));
    case RouteId::batch:
      return batch(match.id, std::move(respond));
    case RouteId::queues:
      return queues(std::move(respond));
    case RouteId::rules_preview:
      return preview(request, std::move(respond));
    case RouteId::rules_history:
      return rule_changes(request, std::move(respond));
    case RouteId::gpu_history:
      return gpu_history(request, std::move(respond));
    case RouteId::timeline:
      return timeline(request, std::move(respond));
    case RouteId::stream:
      return streams_.open(request, respond);
    case RouteId::check_file:
      return check_file(std::move(request), std::move(respond));
    case RouteId::submit_file:
      return submit_file(std::move(request), std::move(respond));
    case RouteId::results:
      return results(request, std::move(respond));
    case RouteId::found_runs:
      return found_runs(request, std::move(respond));
    case RouteId::write_files:
      return write_files(std::move(request), std::move(respond));
    case RouteId::take_snapshot:
      return take_snapshot(std::move(request), std::move(respond));
    case RouteId::metrics:
      return metrics(std::move(respond));
    case RouteId::health:
      return health(respond);
    case RouteId::openapi:
      return openapi(std::move(respond));
    case RouteId::docs:
      return docs(std::move(respond));
    default:
      return respond(error_response({ErrorCode::not_found, "nothing answers here"}));
  }
}

void Resources::on_durable() {
  streams_.on_durable();
}

void Resources::on_sampled() {
  last_look_ = needs_.engine.state().seen.or_else([this] { return last_look_; });
  history_.sampled(needs_.engine.state(), read_clock().wall);
}

void Resources::close() {
  streams_.close();
  logs_.close();
  previews_.close();
}

}  // namespace berth
