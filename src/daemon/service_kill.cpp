// Ending jobs, as many as are named.

#include <utility>

#include "daemon/answers.hpp"
#include "daemon/service.hpp"

namespace berth {
namespace {

/// A task of the loop is done with in a few milliseconds if it looks at no more than so many.
constexpr std::size_t kKilled = 200;
constexpr std::uint64_t kIdsChecked = 10'000;

}  // namespace

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

}  // namespace berth
