#pragma once
// The routes of the API, as a table: the daemon dispatches by it and its description is checked
// against it.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
  retry,
  done,
  // The console of compete_gpu_retry.
  list_configs,
  all_configs,
  new_config,
  show_config,
  write_config,
  delete_config,
  running_configs,
  stop_pid,
  start_config,
  stop_config,
  config_state,
  bind_log,
  unbind_log,
  log_bindings,
  bound_log,
  read_log,
  console_settings,
  set_console_settings,
  rules,
  set_rules,
  remove,
  show_job,
  why,
  backlog,
  wait,
  gpus,
  status,
  events,
  backup,
  backup_progress,
  restore,
  restore_outcome,
  stop,
  // Of daemon/resources.cpp.
  job_log,
  follow_log,
  job_usage,
  batches,
  batch,
  queues,
  rules_preview,
  rules_history,
  gpu_history,
  timeline,
  stream,
  check_file,
  submit_file,
  results,
  found_runs,
  write_files,
  take_snapshot,
  metrics,
  health,
  openapi,
  docs,
  session,
  login,
  logout,
  tokens,
  add_token,
  remove_token,
  listen,
  open_ui,
  close_ui,
};

/// What a caller must hold to use a route.
enum class Scope : std::uint8_t {
  open,  ///< nothing
  read,  ///< a token that may look
  full,  ///< a token that may change things
};

struct Route {
  RouteId id;
  std::string_view method;
  /// "{id}" stands for a number from 1 on, any other "{name}" for one segment. Of two paths that
  /// fit the first in the table counts.
  std::string_view path;
  Scope scope;
  std::string_view summary;
};

inline constexpr std::array kRoutes{
    Route{RouteId::submit, "POST", "/api/jobs", Scope::full, "Submit jobs, all or none"},
    Route{RouteId::list_jobs, "GET", "/api/jobs", Scope::read, "List jobs, a page at a time"},
    Route{RouteId::kill, "POST", "/api/jobs/kill", Scope::full,
          "End running jobs and cancel waiting ones"},
    Route{RouteId::pause, "POST", "/api/jobs/pause", Scope::full,
          "Stop running jobs, hold waiting ones, or pause a queue"},
    Route{RouteId::resume, "POST", "/api/jobs/resume", Scope::full, "The reverse of pause"},
    Route{RouteId::move, "POST", "/api/jobs/move", Scope::full, "Change where waiting jobs stand"},
    Route{RouteId::start, "POST", "/api/jobs/start", Scope::full, "Start jobs before all others"},
    Route{RouteId::set_jobs, "POST", "/api/jobs/set", Scope::full, "Change what jobs ask for"},
    Route{RouteId::retry, "POST", "/api/jobs/retry", Scope::full,
          "Run ended jobs again under their ids"},
    Route{RouteId::done, "POST", "/api/done", Scope::read,
          "Which experiments have been done before"},
    Route{RouteId::list_configs, "GET", "/api/commands/{mode}/list", Scope::read,
          "The command files of a mode"},
    Route{RouteId::all_configs, "GET", "/api/commands/{mode}/all", Scope::read,
          "All command files of a mode with what is in them"},
    Route{RouteId::new_config, "POST", "/api/commands/{mode}/new", Scope::full,
          "Make a command file"},
    Route{RouteId::show_config, "GET", "/api/commands/{mode}", Scope::read,
          "What is in a command file"},
    Route{RouteId::write_config, "PUT", "/api/commands/{mode}", Scope::full,
          "Replace what is in a command file"},
    Route{RouteId::delete_config, "DELETE", "/api/commands/{mode}/{index}", Scope::full,
          "Delete a command file"},
    Route{RouteId::running_configs, "GET", "/api/scheduler/running", Scope::read,
          "The state of all batches of command files that run"},
    Route{RouteId::stop_pid, "POST", "/api/scheduler/stop/{pid}", Scope::full,
          "Stop a batch of a command file by its number"},
    Route{RouteId::start_config, "POST", "/api/scheduler/{mode}/start", Scope::full,
          "Submit what is in a command file"},
    Route{RouteId::stop_config, "POST", "/api/scheduler/{mode}/stop", Scope::full,
          "Stop what a command file has started"},
    Route{RouteId::config_state, "GET", "/api/scheduler/{mode}/state", Scope::read,
          "How far a command file has got"},
    Route{RouteId::bind_log, "POST", "/api/log/bind", Scope::full,
          "Say which log belongs to a process of a command file"},
    Route{RouteId::unbind_log, "DELETE", "/api/log/bind", Scope::full, "Take that back"},
    Route{RouteId::log_bindings, "GET", "/api/log/bindings", Scope::read,
          "Which logs belong to which processes"},
    Route{RouteId::bound_log, "GET", "/api/log/content", Scope::read,
          "A piece of the log that belongs to a process"},
    Route{RouteId::read_log, "GET", "/api/log/read", Scope::read, "A piece of a log, by its path"},
    Route{RouteId::console_settings, "GET", "/api/settings", Scope::read,
          "What control_setting.yaml says"},
    Route{RouteId::set_console_settings, "PUT", "/api/settings", Scope::full,
          "Change values in control_setting.yaml"},
    Route{RouteId::rules, "GET", "/api/rules", Scope::read,
          "The rules of the instance and where they come from"},
    Route{RouteId::set_rules, "POST", "/api/rules", Scope::full, "Change rules of the instance"},
    Route{RouteId::remove, "POST", "/api/jobs/remove", Scope::full,
          "Forget jobs, a part at a time"},
    Route{RouteId::show_job, "GET", "/api/jobs/{id}", Scope::read, "Everything about one job"},
    Route{RouteId::backlog, "GET", "/api/why", Scope::read, "What holds up all that waits"},
    Route{RouteId::why, "GET", "/api/jobs/{id}/why", Scope::read, "Why a job waits"},
    Route{RouteId::wait, "GET", "/api/wait", Scope::read, "Wait until jobs have ended"},
    Route{RouteId::gpus, "GET", "/api/gpus", Scope::read, "The GPUs and what holds them"},
    Route{RouteId::status, "GET", "/api/status", Scope::read, "The daemon and what it knows"},
    Route{RouteId::events, "GET", "/api/events", Scope::read,
          "History from a position on, waiting for more"},
    Route{RouteId::backup, "POST", "/api/backup", Scope::full, "Begin to copy the store to a file"},
    Route{RouteId::backup_progress, "GET", "/api/backup", Scope::read,
          "How far the last backup has got"},
    Route{RouteId::restore, "POST", "/api/restore", Scope::full, "Start again from a backup"},
    Route{RouteId::restore_outcome, "GET", "/api/restore", Scope::read,
          "What became of the last restoring"},
    Route{RouteId::stop, "POST", "/api/stop", Scope::full, "Stop the daemon; jobs keep running"},
    Route{RouteId::job_log, "GET", "/api/jobs/{id}/log", Scope::read,
          "What an attempt has printed"},
    Route{RouteId::follow_log, "GET", "/api/jobs/{id}/log/stream", Scope::read,
          "What a job prints, as it prints it"},
    Route{RouteId::job_usage, "GET", "/api/jobs/{id}/usage", Scope::read,
          "What an attempt has used of its GPUs"},
    Route{RouteId::batches, "GET", "/api/batches", Scope::read, "List batches, a page at a time"},
    Route{RouteId::batch, "GET", "/api/batches/{id}", Scope::read, "One batch"},
    Route{RouteId::queues, "GET", "/api/queues", Scope::read,
          "Queues, how full they are and who waits in them"},
    Route{RouteId::rules_preview, "POST", "/api/rules/preview", Scope::read,
          "What a change of rules would do, without doing it"},
    Route{RouteId::rules_history, "GET", "/api/rules/history", Scope::read,
          "Changes of rules, the newest first"},
    Route{RouteId::gpu_history, "GET", "/api/gpus/history", Scope::read,
          "What a GPU did in the last week"},
    Route{RouteId::timeline, "GET", "/api/timeline", Scope::read,
          "Which attempts ran when, and on which GPUs"},
    Route{RouteId::stream, "GET", "/api/stream", Scope::read, "What happens, as it happens"},
    Route{RouteId::check_file, "POST", "/api/check", Scope::full, "What a job file would make"},
    Route{RouteId::submit_file, "POST", "/api/jobfiles", Scope::full,
          "Submit the jobs of a job file, all or none"},
    Route{RouteId::results, "GET", "/api/results", Scope::read,
          "Metrics of runs, grouped over seeds"},
    Route{RouteId::found_runs, "POST", "/api/results/runs", Scope::read,
          "What each run has told of its metrics"},
    Route{RouteId::write_files, "POST", "/api/files", Scope::full,
          "Write configuration files that jobs will read"},
    Route{RouteId::take_snapshot, "POST", "/api/snapshots", Scope::full,
          "Copy working trees for jobs to run in"},
    Route{RouteId::metrics, "GET", "/metrics", Scope::read, "Numbers for Prometheus"},
    Route{RouteId::health, "GET", "/health", Scope::read, "Whether all is well, and if not, why"},
    Route{RouteId::openapi, "GET", "/api/openapi.json", Scope::read, "This description"},
    Route{RouteId::docs, "GET", "/api/docs", Scope::read, "This description, to be read"},
    Route{RouteId::session, "GET", "/api/session", Scope::read, "Who is asking, and as what"},
    Route{RouteId::login, "GET", "/login", Scope::open,
          "Log a browser in with the code of a one-time link"},
    Route{RouteId::logout, "POST", "/api/logout", Scope::read, "Log this browser out"},
    Route{RouteId::tokens, "GET", "/api/tokens", Scope::full, "Tokens and browsers that get in"},
    Route{RouteId::add_token, "POST", "/api/tokens", Scope::full, "Make a token"},
    Route{RouteId::remove_token, "DELETE", "/api/tokens/{id}", Scope::full,
          "Revoke a token or log a browser out"},
    Route{RouteId::listen, "GET", "/api/listen", Scope::read, "Where the instance listens"},
    Route{RouteId::open_ui, "POST", "/api/ui", Scope::full,
          "Listen, if it does not yet, and give a one-time link"},
    Route{RouteId::close_ui, "POST", "/api/ui/stop", Scope::full, "Listen no longer"},
};

struct PathParam {
  std::string_view name;  ///< without the braces
  std::string value;
};

struct RouteMatch {
  const Route* route = nullptr;   ///< null: no such path, or not with this method
  std::string allowed;            ///< no route, but with these methods: "GET, HEAD, PUT"
  std::uint64_t id = 0;           ///< where the path has "{id}"
  std::vector<PathParam> params;  ///< in the order of the path

  /// Empty if the path has no such part; a part of a path never is.
  [[nodiscard]] std::string_view param(std::string_view name) const;
};

/// `path` is percent-decoded. HEAD finds what GET does; that the body is not sent is for the
/// connection to see to.
[[nodiscard]] RouteMatch match_route(std::string_view method, std::string_view path);

}  // namespace berth
