// When there is too much to do, and for whom.

#include "daemon/service.hpp"

namespace berth {
namespace {

/// Beyond these, requests are told to come back.
constexpr std::size_t kReadsWaiting = 200;
constexpr std::size_t kStreams = 4;

}  // namespace

bool Service::needs_reader(RouteId route, const HttpRequest& request) {
  switch (route) {
    case RouteId::submit:
      return request.stream != nullptr || request.body.size() > kDecodeHere;
    case RouteId::kill:    // only to tell what has ended already; and it makes things better
    case RouteId::stream:  // has a limit of its own, and many come at once after a restart
    case RouteId::stop:
    case RouteId::gpus:
    case RouteId::backlog:
    case RouteId::rules:
    case RouteId::rules_preview:
    case RouteId::queues:
    case RouteId::backup:
    case RouteId::backup_progress:
    case RouteId::restore:
    case RouteId::restore_outcome:
    case RouteId::health:
    case RouteId::gpu_history:
    // These have threads of their own.
    case RouteId::check_file:
    case RouteId::write_files:
    case RouteId::take_snapshot:
    case RouteId::openapi:
    case RouteId::docs:
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
    case RouteId::session:
    case RouteId::login:
    case RouteId::logout:
    case RouteId::tokens:
    case RouteId::add_token:
    case RouteId::remove_token:
    case RouteId::listen:
    case RouteId::open_ui:
    case RouteId::close_ui:
      return false;
    case RouteId::list_jobs:
    case RouteId::show_job:
    case RouteId::why:
    case RouteId::wait:
    case RouteId::status:
    case RouteId::events:
    case RouteId::done:
    case RouteId::remove:
    case RouteId::pause:
    case RouteId::resume:
    case RouteId::move:
    case RouteId::start:
    case RouteId::set_jobs:
    case RouteId::retry:
    case RouteId::set_rules:
    case RouteId::job_log:
    case RouteId::follow_log:
    case RouteId::job_usage:
    case RouteId::batches:
    case RouteId::batch:
    case RouteId::rules_history:
    case RouteId::timeline:
    case RouteId::submit_file:
    case RouteId::results:
    case RouteId::found_runs:
    case RouteId::metrics:
      return true;
  }
  return true;
}

bool Service::overloaded(RouteId route, const HttpRequest& request) {
  if (route == RouteId::submit && request.stream && streams_ >= kStreams) {
    return true;
  }
  return needs_reader(route, request) && readers_.backlog() > kReadsWaiting;
}

}  // namespace berth
