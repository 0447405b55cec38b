// Pausing, moving, starting out of turn and changing jobs.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "daemon/answers.hpp"
#include "daemon/service.hpp"

namespace berth {
namespace {

/// A request about a million jobs is done in parts, with everybody else's work in between. A part
/// ends at so many jobs, or at so many ids looked up.
constexpr std::size_t kJobsAtOnce = 200;
constexpr std::size_t kLookupsAtOnce = 10'000;
/// Text of a longer answer is made away from the loop.
constexpr std::size_t kEncodeHere = 2'000;

/// The ids of a selection, one after the other, from either end.
class IdWalk {
 public:
  IdWalk(const Selection& jobs, std::uint64_t last_job, bool backwards) : backwards_(backwards) {
    if (jobs.all) {
      ranges_ = {{1, last_job}};
    } else {
      ranges_ = jobs.ids.ranges();
    }
    std::erase_if(ranges_, [](const auto& range) { return range.first > range.second; });
    if (backwards) {
      std::ranges::reverse(ranges_);
    }
    for (const auto& [first, last] : ranges_) {
      left_ += last - first + 1;
    }
  }

  [[nodiscard]] std::uint64_t left() const { return left_; }
  std::uint64_t next() {
    auto& [first, last] = ranges_[at_];
    const std::uint64_t id = backwards_ ? last : first;
    if (first == last) {
      ++at_;
    } else {
      backwards_ ? --last : ++first;
    }
    --left_;
    return id;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
  bool backwards_;
  std::size_t at_ = 0;
  std::uint64_t left_ = 0;
};

}  // namespace

struct Service::ControlRun {
  IdWalk ids;
  bool all = false;
  bool backwards = false;
  bool ended = false;  ///< it is about jobs that have ended
  /// The event for some of the jobs, with the number of ids still to come.
  std::function<Event(std::vector<JobId>, std::uint64_t)> make;
  Respond respond;
  ControlAnswer answer;
  std::size_t unanswered = 0;
  bool sent_all = false;
  std::optional<Error> error;
};

void Service::control(const std::shared_ptr<ControlRun>& run) {
  const State& state = engine_.state();
  std::vector<JobId> part;
  std::size_t lookups = 0;
  while (run->ids.left() > 0 && part.size() < kJobsAtOnce && lookups++ < kLookupsAtOnce) {
    const JobId id{run->ids.next()};
    if (run->ended ? id <= state.last_job : state.jobs.contains(id)) {
      part.push_back(id);
    } else if (!run->all) {
      // Ids are issued one after the other: what is not alive has ended, or is still to come.
      const bool to_come =
          id > state.last_job || std::ranges::any_of(state.submissions, [id](const auto& open) {
            const OpenSubmission& submission = open.second;
            return id >= submission.first &&
                   id.value < submission.first.value + submission.head.count;
          });
      (to_come ? run->answer.unknown : run->answer.finished).push_back(id.value);
    }
  }
  run->sent_all = run->ids.left() == 0;
  if (!part.empty()) {
    if (run->backwards) {
      std::ranges::reverse(part);
    }
    ++run->unanswered;
    engine_.handle(run->make(std::move(part), run->ids.left()),
                   [this, run](const Result<Answer>& answer) {
                     --run->unanswered;
                     if (!answer) {
                       run->error = run->error.value_or(answer.error());
                       run->sent_all = true;
                     } else {
                       const auto& done = std::get<Controlled>(*answer);
                       run->answer.add(done);
                       for (const JobId id : done.absent) {
                         run->answer.unknown.push_back(id.value);
                       }
                     }
                     control_done(run);
                   });
  } else {
    control_done(run);
  }
  if (!run->sent_all) {
    loop_.post([this, run] {
      if (!run->error) {
        control(run);
      }
    });
  }
}

void Service::control_done(const std::shared_ptr<ControlRun>& run) {
  if (!run->sent_all || run->unanswered > 0 || !run->respond) {
    return;
  }
  const Respond respond = std::exchange(run->respond, {});
  if (run->error) {
    respond(error_response(*run->error));
    return;
  }
  ControlAnswer answer = std::move(run->answer);
  std::size_t size = 0;
  const auto tidy = [&size](std::vector<std::uint64_t>& ids) {
    size += ids.size();
    if (!std::ranges::is_sorted(ids)) {
      std::ranges::sort(ids);
    }
  };
  for (auto* ids : {&answer.moved, &answer.unchanged, &answer.finished, &answer.unknown}) {
    tidy(*ids);  // parts may have been done from the end
  }
  for (const auto* ids : {&answer.paused, &answer.held, &answer.resumed, &answer.released,
                          &answer.expedited, &answer.changed, &answer.revived}) {
    size += ids->size();
  }
  for (auto& refused : answer.refused) {
    tidy(refused.ids);
  }
  if (size <= kEncodeHere) {
    respond(ok(encode(answer)));
    return;
  }
  read_store([answer = std::move(answer)](StoreReader&) { return encode(answer); },
             [respond](std::string body) { respond(ok(std::move(body))); });
}

void Service::pause_other(const ControlRequest& asked, bool paused, Respond respond) {
  Event event = event::PauseInstance{paused};
  if (!asked.queue.empty()) {
    event = event::PauseQueue{asked.queue, paused};
  } else if (!asked.gpu.empty()) {
    event = event::DrainGpu{asked.gpu, paused, asked.why};
  }
  engine_.handle(std::move(event),
                 [asked, respond = std::move(respond)](const Result<Answer>& answer) {
                   if (!answer) {
                     respond(error_response(answer.error()));
                     return;
                   }
                   ControlAnswer result;
                   result.queue = asked.queue;
                   result.instance = asked.instance;
                   result.gpu = asked.gpu;
                   respond(ok(encode(result)));
                 });
}

void Service::pause(const HttpRequest& request, bool paused, Respond respond) {
  const auto asked = decode_control_request(request.body);
  if (!asked) {
    respond(error_response(asked.error()));
    return;
  }
  if (!asked->gpu.empty() && engine_.state().gpus.empty()) {
    hooks_.after_fresh_look([this, asked = *asked, paused, respond = std::move(respond)]() mutable {
      pause_other(asked, paused, std::move(respond));
    });
    return;
  }
  if (!asked->queue.empty() || !asked->gpu.empty() || asked->instance) {
    pause_other(*asked, paused, std::move(respond));
    return;
  }
  const auto make = [paused](std::vector<JobId> jobs, std::uint64_t) -> Event {
    if (paused) {
      return event::Pause{std::move(jobs)};
    }
    return event::Resume{std::move(jobs)};
  };
  control(std::make_shared<ControlRun>(
      ControlRun{IdWalk(asked->jobs, engine_.state().last_job.value, false),
                 asked->jobs.all,
                 false,
                 false,
                 make,
                 std::move(respond),
                 {},
                 0,
                 false,
                 {}}));
}

void Service::start(const HttpRequest& request, Respond respond) {
  const auto asked = decode_control_request(request.body);
  if (!asked || !asked->queue.empty() || !asked->gpu.empty() || asked->instance) {
    respond(error_response(asked ? Error{ErrorCode::invalid, "ids: name the jobs to start"}
                                 : asked.error()));
    return;
  }
  control(std::make_shared<ControlRun>(ControlRun{
      IdWalk(asked->jobs, engine_.state().last_job.value, false),
      asked->jobs.all,
      false,
      false,
      [](std::vector<JobId> jobs, std::uint64_t) { return event::Expedite{std::move(jobs)}; },
      std::move(respond),
      {},
      0,
      false,
      {}}));
}

void Service::move(const HttpRequest& request, Respond respond) {
  auto asked = decode_move_request(request.body);
  if (!asked) {
    respond(error_response(asked.error()));
    return;
  }
  // Each part goes before all others, so the last ids have to go first.
  const bool backwards = asked->to == event::Move::To::first;
  const IdWalk ids(asked->jobs, engine_.state().last_job.value, backwards);
  const bool all = asked->jobs.all;
  control(std::make_shared<ControlRun>(
      ControlRun{ids,
                 all,
                 backwards,
                 false,
                 [asked = std::move(*asked)](std::vector<JobId> jobs, std::uint64_t following) {
                   event::Move move;
                   move.jobs = std::move(jobs);
                   move.to = asked.to;
                   move.before = JobId{asked.before};
                   move.queue = asked.queue;
                   move.priority = asked.priority;
                   move.following = following;
                   return move;
                 },
                 std::move(respond),
                 {},
                 0,
                 false,
                 {}}));
}

void Service::set_jobs(const HttpRequest& request, Respond respond) {
  auto asked = decode_set_jobs_request(request.body);
  if (!asked) {
    respond(error_response(asked.error()));
    return;
  }
  const IdWalk ids(asked->jobs, engine_.state().last_job.value, false);
  control(std::make_shared<ControlRun>(
      ControlRun{ids,
                 asked->jobs.all,
                 false,
                 false,
                 [patch = asked->patch](std::vector<JobId> jobs, std::uint64_t) {
                   return event::SetJobs{std::move(jobs), patch};
                 },
                 std::move(respond),
                 {},
                 0,
                 false,
                 {}}));
}

void Service::retry_ids(const RetryRequest& asked, IdSet ids, Respond respond) {
  Selection jobs;
  jobs.ids = std::move(ids);
  control(std::make_shared<ControlRun>(
      ControlRun{IdWalk(jobs, engine_.state().last_job.value, false),
                 false,
                 false,
                 true,
                 [succeeded = asked.succeeded](std::vector<JobId> part, std::uint64_t) -> Event {
                   event::Revive revive;
                   revive.jobs = std::move(part);
                   revive.succeeded = succeeded;
                   return revive;
                 },
                 std::move(respond),
                 {},
                 0,
                 false,
                 {}}));
}

void Service::retry(const HttpRequest& request, Respond respond) {
  auto asked = decode_retry_request(request.body);
  if (!asked) {
    respond(error_response(asked.error()));
    return;
  }
  if (!asked->ids.empty() && asked->batch == 0) {
    retry_ids(*asked, asked->ids, std::move(respond));
    return;
  }
  // Which they are only the store knows. What is ending now is not among them.
  read_store(
      [asked = *asked](StoreReader& reader) -> Result<IdSet> {
        JobFilter filter;
        filter.batch = BatchId{asked.batch};
        filter.limit = kSelectedMax;
        if (asked.ids.empty()) {
          filter.states = {JobState::failed};
        }
        for (const auto& [first, last] : asked.ids.ranges()) {
          filter.ids.emplace_back(JobId{first}, JobId{last});
        }
        TRY_ASSIGN(const auto found, reader.job_ids(filter));
        IdSet ids;
        for (const JobId id : found) {
          ids.add(id.value, id.value);
        }
        return ids;
      },
      [this, asked = *asked, respond = std::move(respond)](Result<IdSet> ids) mutable {
        if (!ids) {
          respond(error_response(ids.error()));
          return;
        }
        retry_ids(asked, std::move(*ids), std::move(respond));
      });
}

}  // namespace berth
