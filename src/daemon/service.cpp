#include "daemon/service.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/reason.hpp"
#include "daemon/stream_submit.hpp"
#include "daemon/views.hpp"

namespace berth {

namespace {

/// Decoding a larger body takes long enough to be noticed by others.
constexpr std::size_t kDecodeHere = 64 * 1024;
/// A task of the loop is done with in a few milliseconds if it looks at no more than so many.
constexpr std::size_t kExplained = 200;
constexpr std::size_t kKilled = 200;
constexpr std::uint64_t kIdsChecked = 10'000;
/// Beyond these, requests are told to come back.
constexpr std::size_t kReadsWaiting = 200;
constexpr std::size_t kStreams = 4;
constexpr Millis kListenPace{50};
constexpr Millis kGpuAgeShown{1'000};

HttpResponse ok(std::string body) {
  HttpResponse response;
  response.body = std::move(body);
  return response;
}

Error no_such_job(std::uint64_t id) {
  return {ErrorCode::not_found, fmt::format("there is no job {}; `berth ls --all` lists them", id)};
}

}  // namespace

Service::Service(Loop& loop, Engine& engine, Worker& readers, StoreReader reader, Keeper& keeper,
                 ServiceConfig config, Hooks hooks)
    : loop_(loop),
      engine_(engine),
      keeper_(keeper),
      readers_(readers),
      reader_(std::move(reader)),
      config_(std::move(config)),
      hooks_(std::move(hooks)),
      started_(read_clock().mono) {}

void Service::handle(HttpRequest request, Respond respond) {
  if (request.peer_uid != config_.owner && request.peer_uid != 0) {
    respond(error_response({ErrorCode::refused, "this instance belongs to another user"}));
    return;
  }
  const RouteMatch match = match_route(request.method, request.path);
  if (match.route == nullptr) {
    HttpResponse response = error_response(
        {ErrorCode::not_found, fmt::format("nothing at {} {}", request.method, request.path)});
    response.status = match.path_exists ? 405 : 404;
    respond(std::move(response));
    return;
  }
  if (overloaded(match.route->id)) {
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
    case RouteId::rules:
      return rules(std::move(respond));
    case RouteId::set_rules:
      return set_rules(request, std::move(respond));
    case RouteId::remove:
      return remove(request, std::move(respond));
    case RouteId::show_job:
      return show_job(match.job_id, std::move(respond));
    case RouteId::why:
      return why(match.job_id, std::move(respond));
    case RouteId::wait:
      return wait(request, std::move(respond));
    case RouteId::gpus:
      return gpus(std::move(respond));
    case RouteId::status:
      return status(std::move(respond));
    case RouteId::events:
      return events(request, std::move(respond));
    case RouteId::backup:
      return backup(request, std::move(respond));
    case RouteId::backup_progress:
      return respond(ok(encode(keeper_.backup_view())));
    case RouteId::stop:
      respond(ok("{}"));
      hooks_.stop();
      return;
  }
}

bool Service::overloaded(RouteId route) {
  switch (route) {
    case RouteId::stop:
    case RouteId::kill:
      return false;  // they make things better
    case RouteId::submit:
      return streams_ >= kStreams || readers_.backlog() > kReadsWaiting;
    default:
      return readers_.backlog() > kReadsWaiting;
  }
}

void Service::submit(HttpRequest request, Respond respond) {
  if (request.stream) {
    ++streams_;
    StreamSubmit::start(loop_, engine_, readers_, std::move(request), std::move(respond),
                        [this] { --streams_; });
    return;
  }
  const std::uint32_t owner = request.peer_uid;
  if (request.body.size() <= kDecodeHere) {
    submit_decoded(decode_submit(request.body), owner, std::move(respond));
    return;
  }
  read_store(
      [body = std::move(request.body)](StoreReader&) {
        auto decoded = decode_submit(body);
        if (decoded) {
          if (Status checked = check_submission(decoded->jobs); !checked) {
            decoded = std::unexpected(std::move(checked.error()));
          }
        }
        return decoded;
      },
      [this, owner, respond = std::move(respond)](Result<event::Submit> decoded) mutable {
        submit_decoded(std::move(decoded), owner, std::move(respond));
      });
}

void Service::submit_decoded(Result<event::Submit> decoded, std::uint32_t owner, Respond respond) {
  if (!decoded) {
    respond(error_response(decoded.error()));
    return;
  }
  decoded->owner = owner;
  Engine::Reply reply = [respond = std::move(respond)](const Result<Answer>& answer) {
    if (!answer) {
      respond(error_response(answer.error()));
      return;
    }
    const auto& submitted = std::get<Submitted>(*answer);
    respond(ok(encode(SubmitAnswer{submitted.batch.value, submitted.first.value,
                                   submitted.first.value + submitted.count - 1})));
  };
  if (decoded->jobs.size() <= kPartJobs) {
    engine_.handle(std::move(*decoded), std::move(reply));
  } else {
    submit_in_parts(
        engine_, std::move(*decoded), [this](Loop::Task task) { loop_.post(std::move(task)); },
        std::move(reply));
  }
}

JobView Service::view(const JobRow& row) const {
  return job_view(row, config_.node, config_.logs);
}

void Service::explain_all(std::shared_ptr<std::vector<JobView>> jobs, std::size_t from,
                          std::function<void()> then) {
  const Room room(engine_.state(), read_clock());
  std::size_t explained = 0;
  for (; from < jobs->size() && explained < kExplained; ++from) {
    JobView& job = (*jobs)[from];
    if (job.state != JobState::queued && job.state != JobState::paused) {
      continue;
    }
    ++explained;
    if (const Job* live = engine_.state().job(JobId{job.id})) {
      const auto reasons = explain(engine_.state(), *live, room);
      job.reason = reasons.empty() ? std::string{} : reasons.front().text;
    }
  }
  if (from == jobs->size()) {
    // What was seen of the State must be durable before it is told.
    engine_.read([](const State&) { return 0; }, [then = std::move(then)](int) { then(); });
    return;
  }
  loop_.post([this, jobs = std::move(jobs), from, then = std::move(then)]() mutable {
    explain_all(std::move(jobs), from, std::move(then));
  });
}

void Service::list_jobs(const HttpRequest& request, Respond respond) {
  const auto query = parse_job_query(request.query);
  if (!query) {
    respond(error_response(query.error()));
    return;
  }
  read_store(
      [this, query = *query](StoreReader& reader) {
        return read_page(reader, query, config_.node, config_.logs);
      },
      [this, respond = std::move(respond)](Result<JobPage> page) mutable {
        if (!page) {
          respond(error_response(page.error()));
          return;
        }
        const auto jobs = std::make_shared<std::vector<JobView>>(std::move(page->jobs));
        explain_all(
            jobs, 0, [this, jobs, next = page->next, respond = std::move(respond)]() mutable {
              // Pages can be long: they become text away from the loop.
              read_store(
                  [jobs, next](StoreReader&) { return encode(JobPage{std::move(*jobs), next}); },
                  [respond = std::move(respond)](std::string body) {
                    respond(ok(std::move(body)));
                  });
            });
      });
}

void Service::with_detail(std::uint64_t id, Respond respond,
                          std::function<void(JobDetail, Respond)> then) {
  read_store(
      [this, id](StoreReader& reader) {
        return read_detail(reader, JobId{id}, config_.node, config_.logs, config_.dir);
      },
      [id, respond = std::move(respond),
       then = std::move(then)](Result<std::optional<JobDetail>> detail) mutable {
        if (!detail) {
          respond(error_response(detail.error()));
        } else if (!*detail) {
          respond(error_response(no_such_job(id)));
        } else {
          then(std::move(**detail), std::move(respond));
        }
      });
}

void Service::show_job(std::uint64_t id, Respond respond) {
  with_detail(id, std::move(respond), [this](JobDetail detail, Respond reply) {
    const auto one = std::make_shared<std::vector<JobView>>(1, std::move(detail.job));
    explain_all(one, 0, [one, reply = std::move(reply), detail = std::move(detail)]() mutable {
      detail.job = std::move(one->front());
      reply(ok(encode(detail)));
    });
  });
}

void Service::why(std::uint64_t id, Respond respond) {
  with_detail(id, std::move(respond), [this, id](JobDetail detail, Respond reply) {
    WhyView why_view;
    why_view.job = std::move(detail.job);
    if (const Job* live = engine_.state().job(JobId{id})) {
      why_view.job.state = live->state;
      for (const Reason& reason : explain(engine_.state(), *live, read_clock())) {
        why_view.reasons.push_back({std::string(to_string(reason.kind)), reason.text});
      }
      if (!why_view.reasons.empty()) {
        why_view.job.reason = why_view.reasons.front().text;
      }
    }
    engine_.read([](const State&) { return 0; },
                 [reply = std::move(reply), why_view = std::move(why_view)](int) {
                   reply(ok(encode(why_view)));
                 });
  });
}

/// A kill of many, on its way through them.
struct Service::KillWork {
  std::uint32_t by_uid = 0;
  std::optional<Millis> grace;
  bool all = false;
  std::uint64_t next = 1;  ///< of all: the next id to look at
  std::uint64_t last = 0;
  std::vector<std::uint64_t> ids;
  std::size_t taken = 0;  ///< of ids
  KillAnswer result;
  std::vector<JobId> unknown;
  Respond respond;
};

void Service::kill(const HttpRequest& request, Respond respond) {
  const auto asked = decode_kill(request.body);
  if (!asked) {
    respond(error_response(asked.error()));
    return;
  }
  auto work = std::make_shared<KillWork>();
  work->by_uid = request.peer_uid;
  work->grace = asked->grace;
  work->all = asked->all;
  work->last = engine_.state().last_job.value;
  work->ids = asked->ids;
  work->respond = std::move(respond);
  kill_on(work);
}

void Service::kill_on(const std::shared_ptr<KillWork>& work) {
  event::Kill event;
  event.by_uid = work->by_uid;
  event.grace = work->grace;
  while (work->taken < work->ids.size() && event.jobs.size() < kKilled) {
    event.jobs.push_back(JobId{work->ids[work->taken++]});
  }
  for (std::uint64_t looked = 0;
       work->all && work->next <= work->last && looked < kIdsChecked && event.jobs.size() < kKilled;
       ++looked, ++work->next) {
    if (engine_.state().jobs.contains(JobId{work->next})) {
      event.jobs.push_back(JobId{work->next});
    }
  }
  engine_.handle(std::move(event), [this, work](const Result<Answer>& answer) {
    if (!answer) {
      work->respond(error_response(answer.error()));
      return;
    }
    const auto& killed = std::get<Killed>(*answer);
    for (const JobId id : killed.killed) {
      work->result.killed.push_back(id.value);
    }
    for (const JobId id : killed.cancelled) {
      work->result.cancelled.push_back(id.value);
    }
    work->unknown.insert(work->unknown.end(), killed.unknown.begin(), killed.unknown.end());
    if (work->taken < work->ids.size() || (work->all && work->next <= work->last)) {
      loop_.post([this, work] { kill_on(work); });
      return;
    }
    // Not alive: either it has ended, or it never was.
    read_store(
        [work](StoreReader& reader) {
          for (const JobId id : work->unknown) {
            const auto row = reader.job(id);
            (row && row->has_value() ? work->result.finished : work->result.unknown)
                .push_back(id.value);
          }
          return encode(work->result);
        },
        [work](std::string body) { work->respond(ok(std::move(body))); });
  });
}

void Service::wait(const HttpRequest& request, Respond respond) {
  auto query = parse_wait_query(request.query);
  if (!query) {
    respond(error_response(query.error()));
    return;
  }
  auto waiter = std::make_shared<Waiter>();
  waiter->query = std::move(*query);
  waiter->respond = std::move(respond);
  waiter->timeout = loop_.after(waiter->query.timeout, [this, weak = std::weak_ptr(waiter)] {
    if (const auto alive = weak.lock(); alive && !alive->answering) {
      answer(alive, false);
    }
  });
  waiters_.push_back(waiter);
  check(waiter);
}

void Service::check(const std::shared_ptr<Waiter>& waiter) {
  if (waiter->answering || waiter->checking) {
    return;
  }
  const auto alive = [this](std::uint64_t id) { return engine_.state().jobs.contains(JobId{id}); };
  if (waiter->live != 0 && alive(waiter->live)) {
    return;
  }
  // From the last one found alive: those before it have ended, and stay so.
  std::uint64_t looked = 0;
  for (const auto& [first, last] : waiter->query.ids.ranges()) {
    const std::uint64_t end = std::min(last, engine_.state().last_job.value);
    for (std::uint64_t id = std::max(first, waiter->checked + 1); id <= end; ++id) {
      if (alive(id)) {
        waiter->live = id;
        return;
      }
      waiter->checked = id;
      if (++looked == kIdsChecked) {
        waiter->checking = true;
        loop_.post([this, waiter] {
          waiter->checking = false;
          check(waiter);
        });
        return;
      }
    }
  }
  answer(waiter, true);
}

void Service::answer(const std::shared_ptr<Waiter>& waiter, bool done) {
  waiter->answering = true;
  waiter->timeout.reset();
  waiters_.remove(waiter);
  engine_.read(
      [](const State&) { return 0; },
      [this, waiter, done](int) {
        read_store(
            [this, done, ids = waiter->query.ids](StoreReader& reader) -> Result<std::string> {
              berth::JobQuery query;
              query.ids = ids;
              query.limit = kPageLimitMax;
              TRY_ASSIGN(JobPage page, read_page(reader, query, config_.node, config_.logs));
              return encode(WaitAnswer{done, std::move(page.jobs)});
            },
            [waiter](const Result<std::string>& body) {
              waiter->respond(body ? ok(*body) : error_response(body.error()));
            });
      });
}

std::vector<GpuView> Service::gpu_views() const {
  return make_gpu_views(engine_.state(), config_.node, read_clock());
}

void Service::gpus(Respond respond) {
  const auto& seen = engine_.state().seen;
  const auto now = [this, respond = std::move(respond)] {
    engine_.read([this](const State&) { return gpu_views(); },
                 [respond](const std::vector<GpuView>& views) { respond(ok(encode(views))); });
  };
  if (seen && read_clock().mono - *seen < kGpuAgeShown) {
    now();
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
               for (const auto& [id, queue] : state.queues) {
                 status.queues.push_back({queue.name, queue.limit, queue.running, queue.paused});
               }
               status.problems = config_.settings.problems;
               engine_.read([](const State&) { return 0; },
                            [respond = std::move(respond), status = std::move(status)](int) {
                              respond(ok(encode(status)));
                            });
             });
}

void Service::events(const HttpRequest& request, Respond respond) {
  const auto query = parse_event_query(request.query);
  if (!query) {
    respond(error_response(query.error()));
    return;
  }
  auto listener = std::make_shared<Listener>();
  listener->query = *query;
  listener->respond = std::move(respond);
  listener->timeout = loop_.after(query->wait, [this, weak = std::weak_ptr(listener)] {
    if (const auto alive = weak.lock()) {
      alive->last_look = true;
      look(alive);
    }
  });
  listeners_.push_back(listener);
  look(listener);
}

void Service::look(const std::shared_ptr<Listener>& listener) {
  if (listener->looking) {
    listener->again = true;  // that look may have begun too early to see it
    return;
  }
  listener->looking = true;
  const bool last = listener->last_look;
  read_store([query = listener->query](
                 StoreReader& reader) { return reader.history_page(history_query(query)); },
             [this, listener, last](Result<HistoryPage> found) {
               listener->looking = false;
               if (!found) {
                 listeners_.remove(listener);
                 listener->respond(error_response(found.error()));
                 return;
               }
               if (found->rows.empty() && found->more) {
                 listener->query.after = found->last;  // nothing that matches up to there
                 look(listener);
                 return;
               }
               if (found->rows.empty() && !last && !listener->query.descending) {
                 if (std::exchange(listener->again, false) || listener->last_look) {
                   look(listener);
                 }
                 return;
               }
               EventPage page;
               page.last = found->last;
               page.more = found->more;
               for (const HistoryRow& row : found->rows) {
                 page.events.push_back(event_view(row));
               }
               listener->timeout.reset();
               listeners_.remove(listener);
               listener->respond(ok(encode(page)));
             });
}

void Service::on_durable() {
  for (auto it = waiters_.begin(); it != waiters_.end();) {
    const auto waiter = *it++;  // it may remove itself
    check(waiter);
  }
  if (!listeners_.empty() && !listeners_timer_) {
    listeners_timer_ = loop_.after(kListenPace, [this] {
      listeners_timer_.reset();
      const auto listeners = listeners_;
      for (const auto& listener : listeners) {
        look(listener);
      }
    });
  }
}

void Service::close() {
  const Error going{
      ErrorCode::unavailable,
      "the daemon was stopped; running jobs go on, and the next command starts it again"};
  for (const auto& waiter : std::exchange(waiters_, {})) {
    waiter->respond(error_response(going));
  }
  for (const auto& listener : std::exchange(listeners_, {})) {
    listener->respond(error_response(going));
  }
}

}  // namespace berth
