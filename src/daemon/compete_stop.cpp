// Stopping what a command file has started: nothing more of it starts. What waits is cancelled, for
// starting the file again begins anew; what runs goes on, but is not tried again, or is ended too.

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "api/wire.hpp"
#include "base/failpoint.hpp"
#include "base/utf8.hpp"
#include "daemon/answers.hpp"
#include "daemon/compete_api.hpp"
#include "daemon/compete_json.hpp"

namespace berth {
namespace {

/// A task of the loop is done with in a few milliseconds if it is about no more jobs than these.
constexpr std::size_t kAtOnce = 200;

/// Rules of a batch whose jobs are not tried again, whatever they end with.
std::vector<std::pair<std::string, std::string>> no_more_tries() {
  return {{"retry_config.not_its_fault", "0"}, {"retry_config.requeue_on_timeout", "false"},
          {"retry_config.exit", "0"},          {"retry_config.gpu_oom", "0"},
          {"retry_config.host_oom", "0"},      {"retry_config.timeout", "0"},
          {"retry_config.cannot_start", "0"},  {"retry_config.gpu_lost", "0"},
          {"retry_config.node_lost", "0"},     {"retry_config.preempted", "0"}};
}

/// By the number that berth has for every batch, or by what it was started as.
bool is_called(const FoundBatch& batch, std::uint64_t pid) {
  return batch.traits.pid == pid || kSchedulerPids + batch.id.value == pid;
}

/// Processes have numbers again that others had before them.
std::unexpected<Error> several(const std::vector<FoundBatch>& batches, std::uint64_t pid) {
  std::string all;
  for (const FoundBatch& batch : batches) {
    all += fmt::format("{}batch {} ('{}') as {}", all.empty() ? "" : ", ", batch.id.value,
                       printable(batch.traits.config_file), kSchedulerPids + batch.id.value);
  }
  return fail(ErrorCode::conflict,
              fmt::format("{} batches were started as {}; stop one by its own number: {}",
                          batches.size(), pid, all));
}

}  // namespace

struct CompeteApi::StopWork {
  FoundBatch batch;
  bool kill = false;
  std::uint32_t by_uid = 0;
  std::vector<JobId> jobs;        ///< those that had not ended; taken from the end
  std::vector<std::string> held;  ///< queues that start nothing until this is done
  StoppedConfig result;
  std::optional<Error> error;
  std::size_t unanswered = 0;
  bool noted = false;  ///< the next daemon would complete it
  Respond respond;     ///< none: whoever asked had a daemon that is no more
};

void CompeteApi::stop(compete::Cards mode, const HttpRequest& request, Respond respond) {
  const auto query = CompeteQuery::read(request, {"config_index", "kill"});
  const auto index = query ? query->config_index() : std::unexpected(query.error());
  if (!index) {
    respond(error_response(index.error()));
    return;
  }
  const std::string file = places().config(mode, *index).native();
  stop_found(
      request,
      [file, index = *index](StoreReader& reader, std::vector<BatchId> live) -> Result<FoundBatch> {
        TRY_ASSIGN(auto batches, command_batches(reader, std::move(live)));
        const auto found = std::ranges::find_if(
            batches, [&](const FoundBatch& batch) { return batch.traits.config_file == file; });
        if (found == batches.end()) {
          return fail(ErrorCode::conflict,
                      fmt::format("nothing of configuration {} ('{}') waits or runs", index,
                                  printable(file)));
        }
        return std::move(*found);
      },
      std::move(respond));
}

void CompeteApi::stop_pid(const RouteMatch& match, const HttpRequest& request, Respond respond) {
  const std::string_view text = match.param("pid");
  std::uint64_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc() || end != text.data() + text.size()) {
    respond(error_response(
        {ErrorCode::invalid, fmt::format("pid: expected a number, got '{}'", printable(text))}));
    return;
  }
  stop_found(
      request,
      [pid](StoreReader& reader, std::vector<BatchId> live) -> Result<FoundBatch> {
        TRY_ASSIGN(auto batches, command_batches(reader, std::move(live)));
        std::erase_if(batches, [&](const FoundBatch& batch) { return !is_called(batch, pid); });
        if (batches.empty()) {
          return fail(ErrorCode::not_found,
                      fmt::format("nothing that was started as {} waits or runs; GET "
                                  "/api/scheduler/running tells what does",
                                  pid));
        }
        if (batches.size() > 1) {
          return several(batches, pid);
        }
        return std::move(batches.front());
      },
      std::move(respond));
}

void CompeteApi::stop_found(const HttpRequest& request, FindBatch find, Respond respond) {
  const auto query = CompeteQuery::read(request, {"config_index", "kill"});
  const auto kill = query ? query->flag("kill") : std::unexpected(query.error());
  if (!kill) {
    respond(error_response(kill.error()));
    return;
  }
  auto work = std::make_shared<StopWork>();
  work->kill = *kill;
  work->by_uid = request.peer_uid;
  work->respond = std::move(respond);
  on_files(
      [this, find = std::move(find), live = live_batches(), work]() -> Status {
        TRY_ASSIGN(work->batch, find(reader_, live));
        return find_jobs(*work);
      },
      [this, work](const Status& found) {
        if (!found) {
          work->respond(error_response(found.error()));
          return;
        }
        work->result.pid = work->batch.traits.pid;
        work->result.batch = work->batch.id.value;
        begin_stop(work);
      });
}

Status CompeteApi::find_jobs(StopWork& work) {
  JobFilter filter;
  filter.batch = work.batch.id;
  filter.states = {JobState::queued, JobState::running, JobState::paused};
  TRY_ASSIGN(const StateCounts counts, reader_.counts(work.batch.id));
  for (const JobState state : filter.states) {
    filter.limit += counts[static_cast<std::size_t>(state)];
  }
  filter.limit += kAtOnce;
  TRY_ASSIGN(work.jobs, reader_.job_ids(filter));
  std::ranges::sort(work.jobs);
  return {};
}

void CompeteApi::begin_stop(const std::shared_ptr<StopWork>& work) {
  forbid_tries(work);
  if (work->jobs.size() > kAtOnce) {
    hold_queues(work);
  } else {
    stop_on(work);
  }
}

void CompeteApi::forbid_tries(const std::shared_ptr<StopWork>& work) {
  event::SetRules rules{no_more_tries()};
  rules.layer = event::SetRules::Layer::batch;
  rules.batch = work->batch.id;
  ++work->unanswered;
  engine_.handle(std::move(rules), [this, work](const Result<berth::Answer>&) {
    --work->unanswered;  // an error means that all has ended meanwhile
    end_stop(work);
  });
}

/// More than one event can deal with: until the last of them is cancelled, none may start. That is
/// written down first, or a crash in between would leave the queues paused for good.
void CompeteApi::hold_queues(const std::shared_ptr<StopWork>& work) {
  std::set<QueueId> queues;
  for (const JobId id : work->jobs) {
    if (const Job* job = engine_.state().job(id)) {
      queues.insert(job->queue);
    }
  }
  std::vector<std::string> names;
  for (const QueueId id : queues) {
    // One that another stop has paused must not go on when that one is done.
    if (const Queue& queue = engine_.state().queues.at(id);
        !queue.paused || held_queues_.contains(queue.name)) {
      names.push_back(queue.name);
    }
  }
  hold(work, std::move(names));
  on_files([this, note = StopNote{work->batch.id, work->kill, work->by_uid,
                                  work->held}] { return stop_notes_.write(note); },
           [this, work](const Status&) {
             failpoint("stop_noted");
             pause_held(work);  // noted or not: on a full disk, too, what was asked for is done
           });
}

void CompeteApi::hold(const std::shared_ptr<StopWork>& work, std::vector<std::string> queues) {
  work->held = std::move(queues);
  work->noted = true;
  ++stopping_[work->batch.id];
  for (const std::string& queue : work->held) {
    ++held_queues_[queue];
  }
}

void CompeteApi::pause_held(const std::shared_ptr<StopWork>& work) {
  for (const std::string& queue : work->held) {
    engine_.handle(event::PauseQueue{queue, true}, [](const Result<berth::Answer>&) {});
  }
  stop_on(work);
}

void CompeteApi::release_held(const std::shared_ptr<StopWork>& work) {
  if (!std::exchange(work->noted, false)) {
    return;
  }
  for (const std::string& queue : std::exchange(work->held, {})) {
    if (const auto held = held_queues_.find(queue); --held->second == 0) {
      held_queues_.erase(held);
      engine_.handle(event::PauseQueue{queue, false}, [](const Result<berth::Answer>&) {});
    }
  }
  const auto stopping = stopping_.find(work->batch.id);
  if (--stopping->second > 0) {
    return;  // another stop of it is under way, and needs the note
  }
  stopping_.erase(stopping);
  engine_.read([](const State&) { return 0; },
               [this, batch = work->batch.id](int) {
                 failpoint("stop_done");
                 if (stopping_.contains(batch)) {
                   return;  // again, meanwhile
                 }
                 on_files([this, batch] { return stop_notes_.remove(batch); },
                          [this](const Status& removed) {
                            if (!removed) {
                              complain_(removed.error().message);
                            }
                          });
               });
}

void CompeteApi::complete_stops() {
  struct Found {
    std::vector<std::shared_ptr<StopWork>> works;
    std::vector<std::string> problems;
  };
  on_files(
      [this] {
        StopNotes::Found notes = stop_notes_.read();
        Found found{{}, std::move(notes.problems)};
        for (StopNote& note : notes.notes) {
          auto work = std::make_shared<StopWork>();
          work->batch.id = note.batch;
          work->kill = note.kill;
          work->by_uid = note.by_uid;
          work->held = std::move(note.queues);
          if (const Status read = find_jobs(*work); read) {
            found.works.push_back(std::move(work));
          } else {
            found.problems.push_back(read.error().message);
          }
        }
        return found;
      },
      [this](const Found& found) {
        for (const std::string& problem : found.problems) {
          complain_(problem);
        }
        // All of them before the first is done: they may hold the same queue.
        for (const auto& work : found.works) {
          hold(work, std::move(work->held));
        }
        for (const auto& work : found.works) {
          forbid_tries(work);
          pause_held(work);
        }
      });
}

void CompeteApi::stop_on(const std::shared_ptr<StopWork>& work) {
  event::Kill event;
  event.by_uid = work->by_uid;
  failpoint("stop_slice");
  for (std::size_t looked = 0; !work->jobs.empty() && looked < kAtOnce; ++looked) {
    const JobId id = work->jobs.back();
    work->jobs.pop_back();
    const Job* job = engine_.state().job(id);
    if (job != nullptr && (work->kill || job->waits())) {
      event.jobs.push_back(id);
    } else if (job != nullptr) {
      work->result.running.push_back(id.value);
    }
  }
  std::ranges::sort(event.jobs);
  ++work->unanswered;
  engine_.handle(std::move(event), [this, work](const Result<berth::Answer>& answer) {
    --work->unanswered;
    if (answer) {
      const auto& killed = std::get<Killed>(*answer);
      for (const JobId id : killed.killed) {
        work->result.killed.push_back(id.value);
      }
      for (const JobId id : killed.cancelled) {
        work->result.cancelled.push_back(id.value);
      }
    } else {
      work->error = answer.error();
    }
    end_stop(work);
  });
  if (!work->jobs.empty()) {
    loop_.post([this, work] { stop_on(work); });
    return;
  }
  release_held(work);
}

void CompeteApi::end_stop(const std::shared_ptr<StopWork>& work) {
  if (work->unanswered > 0 || !work->jobs.empty() || !work->respond) {
    return;
  }
  const Respond respond = std::exchange(work->respond, {});
  if (work->error) {
    respond(error_response(*work->error));
    return;
  }
  for (auto* ids : {&work->result.cancelled, &work->result.killed, &work->result.running}) {
    std::ranges::sort(*ids);
  }
  // A long answer becomes text away from the loop.
  on_files([work] { return encode_stopped(work->result); },
           [respond](std::string body) { respond(ok(std::move(body))); });
}

}  // namespace berth
