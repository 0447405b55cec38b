#pragma once
// The routes of the API, as a table: the daemon dispatches by it and its description is checked
// against it.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace berth {

enum class RouteId : std::uint8_t {
  submit,
  list_jobs,
  kill,
  pause,
  resume,
  move,
  start,
  set_jobs,
  rules,
  set_rules,
  remove,
  show_job,
  why,
  wait,
  gpus,
  status,
  events,
  backup,
  backup_progress,
  stop,
};

struct Route {
  RouteId id;
  std::string_view method;
  std::string_view path;  ///< "{id}" stands for a job id
  std::string_view summary;
};

inline constexpr std::array kRoutes{
    Route{RouteId::submit, "POST", "/api/jobs", "Submit jobs, all or none"},
    Route{RouteId::list_jobs, "GET", "/api/jobs", "List jobs, a page at a time"},
    Route{RouteId::kill, "POST", "/api/jobs/kill", "End running jobs and cancel waiting ones"},
    Route{RouteId::pause, "POST", "/api/jobs/pause",
          "Stop running jobs, hold waiting ones, or pause a queue"},
    Route{RouteId::resume, "POST", "/api/jobs/resume", "The reverse of pause"},
    Route{RouteId::move, "POST", "/api/jobs/move", "Change where waiting jobs stand"},
    Route{RouteId::start, "POST", "/api/jobs/start", "Start jobs before all others"},
    Route{RouteId::set_jobs, "POST", "/api/jobs/set", "Change what jobs ask for"},
    Route{RouteId::rules, "GET", "/api/rules",
          "The rules of the instance and where they come from"},
    Route{RouteId::set_rules, "POST", "/api/rules", "Change rules of the instance"},
    Route{RouteId::remove, "POST", "/api/jobs/remove", "Forget jobs, a part at a time"},
    Route{RouteId::show_job, "GET", "/api/jobs/{id}", "Everything about one job"},
    Route{RouteId::why, "GET", "/api/jobs/{id}/why", "Why a job waits"},
    Route{RouteId::wait, "GET", "/api/wait", "Wait until jobs have ended"},
    Route{RouteId::gpus, "GET", "/api/gpus", "The GPUs and what holds them"},
    Route{RouteId::status, "GET", "/api/status", "The daemon and what it knows"},
    Route{RouteId::events, "GET", "/api/events", "History from a position on, waiting for more"},
    Route{RouteId::backup, "POST", "/api/backup", "Begin to copy the store to a file"},
    Route{RouteId::backup_progress, "GET", "/api/backup", "How far the last backup has got"},
    Route{RouteId::stop, "POST", "/api/stop", "Stop the daemon; jobs keep running"},
};

struct RouteMatch {
  const Route* route = nullptr;  ///< null: no such path, or not with this method
  bool path_exists = false;      ///< with another method: answer 405 instead of 404
  std::uint64_t job_id = 0;      ///< where the path has "{id}"
};

[[nodiscard]] RouteMatch match_route(std::string_view method, std::string_view path);

}  // namespace berth
