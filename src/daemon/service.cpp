#include "daemon/service.hpp"

#include <utility>

#include <fmt/format.h>

#include "api/resources.hpp"
#include "daemon/answers.hpp"

namespace berth {
namespace {

/// Whether the route has parameters, and so looks at the query itself.
bool reads_query(RouteId route) {
  switch (route) {
    case RouteId::list_jobs:
    case RouteId::rules:
    case RouteId::wait:
    case RouteId::events:
    case RouteId::job_log:
    case RouteId::follow_log:
    case RouteId::job_usage:
    case RouteId::batches:
    case RouteId::rules_history:
    case RouteId::gpu_history:
    case RouteId::timeline:
    case RouteId::stream:
    case RouteId::results:
    case RouteId::login:
    case RouteId::show_config:
    case RouteId::write_config:
    case RouteId::stop_pid:
    case RouteId::start_config:
    case RouteId::stop_config:
    case RouteId::config_state:
    case RouteId::bind_log:
    case RouteId::unbind_log:
    case RouteId::bound_log:
    case RouteId::read_log:
      return true;
    default:
      return false;
  }
}

}  // namespace

Service::Service(Loop& loop, Engine& engine, Worker& readers, StoreReader reader, Keeper& keeper,
                 SettingsWatch& settings, ServiceConfig config, Hooks hooks)
    : loop_(loop),
      engine_(engine),
      keeper_(keeper),
      readers_(readers),
      settings_(settings),
      reader_(std::move(reader)),
      config_(std::move(config)),
      hooks_(std::move(hooks)),
      restore_(config_.restored),
      started_(read_clock().mono),
      resources_(resource_needs()) {}

Resources::Needs Service::resource_needs() {
  return {loop_,
          engine_,
          readers_,
          reader_,
          settings_,
          config_,
          hooks_.after_fresh_look,
          [this](event::Submit submit, std::uint32_t owner, Respond respond) {
            submit_decoded(std::move(submit), owner, std::move(respond));
          }};
}

void Service::handle(HttpRequest request, Respond respond) {
  if (request.peer_uid != config_.owner && request.peer_uid != 0) {
    respond(error_response({ErrorCode::refused, "this instance belongs to another user"}));
    return;
  }
  const RouteMatch match = match_route(request.method, request.path);
  if (match.route == nullptr) {
    HttpResponse response = error_response(
        {ErrorCode::not_found, fmt::format("nothing at {} {}; /api/docs tells what there is",
                                           request.method, request.path)});
    if (!match.allowed.empty()) {
      response.status = 405;
      response.headers.emplace_back("Allow", match.allowed);
    }
    respond(std::move(response));
    return;
  }
  if (!request.query.empty() && !reads_query(match.route->id)) {
    respond(error_response(parse_no_query(request.query).error()));
    return;
  }
  if (overloaded(match.route->id, request)) {
    respond(
        error_response({ErrorCode::busy, "the daemon has too much to do; try again in a moment"}));
    return;
  }
  switch (match.route->id) {
    case RouteId::submit:
      return submit(std::move(request), std::move(respond));
    case RouteId::list_jobs:
      return list_jobs(request, std::move(respond));
    case RouteId::kill:
      return kill(request, std::move(respond));
    case RouteId::pause:
      return pause(request, true, std::move(respond));
    case RouteId::resume:
      return pause(request, false, std::move(respond));
    case RouteId::move:
      return move(request, std::move(respond));
    case RouteId::start:
      return start(request, std::move(respond));
    case RouteId::set_jobs:
      return set_jobs(request, std::move(respond));
    case RouteId::retry:
      return retry(request, std::move(respond));
    case RouteId::done:
      return done(std::move(request), std::move(respond));
    case RouteId::list_configs:
    case RouteId::all_configs:
    case RouteId::new_config:
    case RouteId::show_config:
    case RouteId::write_config:
    case RouteId::delete_config:
    case RouteId::running_configs:
    case RouteId::stop_pid:
    case RouteId::start_config:
    case RouteId::stop_config:
    case RouteId::config_state:
    case RouteId::bind_log:
    case RouteId::unbind_log:
    case RouteId::log_bindings:
    case RouteId::bound_log:
    case RouteId::read_log:
    case RouteId::console_settings:
    case RouteId::set_console_settings:
      return hooks_.compete(match, std::move(request), std::move(respond));
    case RouteId::rules:
      return rules(request, std::move(respond));
    case RouteId::set_rules:
      return set_rules(request, std::move(respond));
    case RouteId::remove:
      return remove(request, std::move(respond));
    case RouteId::show_job:
      return show_job(match.id, request, std::move(respond));
    case RouteId::backlog:
      return show_backlog(std::move(respond));
    case RouteId::why:
      return why(match.id, std::move(respond));
    case RouteId::wait:
      return wait(request, std::move(respond));
    case RouteId::gpus:
      return gpus(std::move(respond));
    case RouteId::status:
      return status(std::move(respond));
    case RouteId::events:
      return events(request, std::move(respond));
    case RouteId::backup:
      return backup(request, respond);
    case RouteId::backup_progress:
      return respond(ok(encode(keeper_.backup_view())));
    case RouteId::restore:
      return restore(request, std::move(respond));
    case RouteId::restore_outcome:
      return respond(ok(encode(restore_)));
    case RouteId::stop:
      respond(ok("{}"));
      hooks_.stop();
      return;
    case RouteId::job_log:
    case RouteId::follow_log:
    case RouteId::job_usage:
    case RouteId::batches:
    case RouteId::batch:
    case RouteId::queues:
    case RouteId::rules_preview:
    case RouteId::rules_history:
    case RouteId::gpu_history:
    case RouteId::timeline:
    case RouteId::stream:
    case RouteId::check_file:
    case RouteId::submit_file:
    case RouteId::results:
    case RouteId::found_runs:
    case RouteId::write_files:
    case RouteId::take_snapshot:
    case RouteId::metrics:
    case RouteId::health:
    case RouteId::openapi:
    case RouteId::docs:
      return resources_.handle(match, std::move(request), std::move(respond));
    case RouteId::session:
    case RouteId::login:
    case RouteId::logout:
    case RouteId::tokens:
    case RouteId::add_token:
    case RouteId::remove_token:
    case RouteId::listen:
    case RouteId::open_ui:
    case RouteId::close_ui:
      return hooks_.access(match, request, std::move(respond));
  }
}

}  // namespace berth
