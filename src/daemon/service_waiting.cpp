// Whoever waits for something to happen: for the end of jobs, or for news.

#include <algorithm>
#include <utility>

#include "daemon/answers.hpp"
#include "daemon/service.hpp"
#include "daemon/views.hpp"

namespace berth {
namespace {

/// A task of the loop is done with in a few milliseconds if it looks at no more than so many.
constexpr std::uint64_t kIdsChecked = 10'000;
constexpr Millis kListenPace{50};

/// Ids of no job, or of one that was removed. Not looked for where there are more than a page
/// holds.
std::vector<std::uint64_t> not_among(const IdSet& ids, const std::vector<JobView>& jobs) {
  std::vector<std::uint64_t> missing;
  if (ids.size() > kPageLimitMax) {
    return missing;
  }
  for (const auto& [first, last] : ids.ranges()) {
    for (std::uint64_t id = first; id <= last; ++id) {
      if (!std::ranges::binary_search(jobs, id, {}, &JobView::id)) {
        missing.push_back(id);
      }
    }
  }
  return missing;
}

}  // namespace

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
            [this, done, ids = waiter->query.ids](StoreReader& reader) -> Result<WaitAnswer> {
              berth::JobQuery query;
              query.ids = ids;
              query.limit = kPageLimitMax;
              TRY_ASSIGN(JobPage page,
                         read_page(reader, query, config_.node, config_.log_places()));
              auto unknown = not_among(ids, page.jobs);
              return WaitAnswer{done, std::move(page.jobs), std::move(unknown)};
            },
            [this, waiter](Result<WaitAnswer> found) {
              if (!found) {
                waiter->respond(error_response(found.error()));
                return;
              }
              tell(waiter, std::move(*found));
            });
      });
}

/// Those that still wait tell why, as in a page.
void Service::tell(const std::shared_ptr<Waiter>& waiter, WaitAnswer found) {
  const auto jobs = std::make_shared<std::vector<JobView>>(std::move(found.jobs));
  explain_all(jobs, 0, [this, waiter, jobs, found = std::move(found)]() mutable {
    found.jobs = std::move(*jobs);
    read_store([found = std::move(found)](StoreReader&) { return encode(found); },
               [waiter](std::string body) { waiter->respond(ok(std::move(body))); });
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
  resources_.on_durable();
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
  resources_.close();
}

}  // namespace berth
