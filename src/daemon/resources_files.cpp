// What takes long and is done elsewhere: job files and results on a thread of their own, previews
// in a process.

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "api/control.hpp"
#include "core/preview.hpp"
#include "daemon/job_text.hpp"
#include "daemon/resources.hpp"
#include "daemon/run_results.hpp"
#include "daemon/views.hpp"
#include "submit/array_jobs.hpp"
#include "submit/leave_out.hpp"

namespace berth {
namespace {

constexpr std::size_t kPreviewWaits = 100;
constexpr std::size_t kResultRuns = 10'000;
constexpr Millis kResultsTime{20'000};
constexpr int kOk = 200;

HttpResponse refused_file(const std::vector<ProblemView>& problems) {
  const Error error{ErrorCode::invalid,
                    fmt::format("the file has {} mistake{}; nothing was submitted", problems.size(),
                                problems.size() == 1 ? "" : "s")};
  HttpResponse response;
  response.status = 422;
  response.body = encode_refused_file(error, problems);
  return response;
}

event::SetRules to_event(const SetRulesRequest& asked) {
  event::SetRules event{asked.values};
  event.unset = asked.unset;
  event.queue = asked.queue;
  event.batch = BatchId{asked.batch};
  event.layer = !asked.queue.empty() ? event::SetRules::Layer::queue
                : asked.batch != 0   ? event::SetRules::Layer::batch
                                     : event::SetRules::Layer::instance;
  return event;
}

/// Of two reasons only the cards of which they differ.
void keep_differing(std::vector<ObstacleView>& one, std::vector<ObstacleView>& other) {
  const auto is_in = [](const std::vector<ObstacleView>& cards) {
    return [&cards](const ObstacleView& card) {
      return std::ranges::find(cards, card) != cards.end();
    };
  };
  std::vector<ObstacleView> kept;
  std::ranges::remove_copy_if(one, std::back_inserter(kept), is_in(other));
  std::erase_if(other, is_in(one));
  one = std::move(kept);
}

std::string encode_preview(const Result<Preview>& preview) {
  PreviewView view;
  if (!preview) {
    view.problems.push_back(preview.error().message);
    return encode(view);
  }
  for (const JobId id : preview->starts) {
    view.starts.push_back(id.value);
  }
  for (const Preview::Wait& wait : preview->waits) {
    PreviewWait told{wait.id.value, wait.jobs, {}, {}};
    if (wait.before) {
      told.before = wait.before->text;
      told.why_before = cause_view(*wait.before);
      told.gpus_before = reason_view(*wait.before).gpus;
    }
    if (wait.after) {
      told.after = wait.after->text;
      told.why_after = cause_view(*wait.after);
      told.gpus_after = reason_view(*wait.after).gpus;
    }
    keep_differing(told.gpus_before, told.gpus_after);
    view.waits.push_back(std::move(told));
  }
  view.more = preview->more;
  return encode(view);
}

/// The jobs that results are asked of, in pages.
Result<std::vector<JobView>> runs_asked_for(StoreReader& reader, const ResultsQuery& query,
                                            const ServiceConfig& config) {
  JobQuery asked;
  asked.batch = query.batch;
  asked.ids = query.ids;
  if (asked.batch == 0 && !asked.ids) {
    TRY_ASSIGN(const auto last, reader.batches({}, 1, true));
    if (last.empty()) {
      return fail(ErrorCode::not_found, "nothing was submitted as a batch; name jobs with ids=");
    }
    asked.batch = last.front().id.value;
  }
  std::vector<JobView> jobs;
  while (true) {
    TRY_ASSIGN(JobPage page, read_page(reader, asked, config.node, config.log_places()));
    std::ranges::move(page.jobs, std::back_inserter(jobs));
    if (jobs.size() > kResultRuns) {
      return fail(ErrorCode::invalid, "more than 10000 runs; name fewer, or use `berth results`");
    }
    if (!page.next) {
      break;
    }
    asked.after = *page.next;
  }
  if (jobs.empty()) {
    return fail(ErrorCode::not_found, "there are no such jobs; `berth ls --all` lists them");
  }
  return jobs;
}

}  // namespace

void Resources::check_file(HttpRequest request, Respond respond) {
  if (refuses_long(respond)) {
    return;
  }
  work_long(
      [body = std::move(request.body)]() -> Result<std::string> {
        TRY_ASSIGN(const FileRequest asked, decode_check_request(body));
        TRY(check_dialect(asked));
        return encode(check_text(asked));
      },
      [respond = std::move(respond)](Result<std::string> body) {
        respond(body ? ok(std::move(*body)) : error_response(body.error()));
      });
}

namespace {

/// A file on its way to the jobs it asks for.
struct FileOnItsWay {
  FileRequest asked;
  JobFile file;
};

bool leaves_out(const FileOnItsWay& way) {
  return way.asked.leave_out_done.value_or(way.file.skip_done);
}

/// The jobs of the array that begins with this one, if one does.
Result<std::vector<JobView>> array_tasks(StoreReader& reader, std::uint64_t first,
                                         const ServiceConfig& config) {
  std::vector<JobView> tasks;
  TRY_ASSIGN(const auto row, reader.job(JobId{first}));
  TRY_ASSIGN(const auto payload, reader.payload(JobId{first}));
  if (!row || !row->batch || !payload || !begins_array(payload->extra_env)) {
    return tasks;
  }
  JobQuery query;
  query.batch = row->batch.value;
  while (true) {
    TRY_ASSIGN(JobPage page, read_page(reader, query, config.node, config.log_places()));
    std::ranges::move(page.jobs, std::back_inserter(tasks));
    if (!page.next) {
      return tasks;
    }
    query.after = *page.next;
  }
}

std::vector<SkippedJob> skip(JobFile& file, const std::vector<DoneView>& known) {
  std::vector<std::string> names;
  for (const JobSpec& job : file.jobs) {
    names.push_back(job.name);
  }
  const LeftOut out = leave_out(file, known, [](const std::string& log) {
    std::error_code error;
    return log.empty() || std::filesystem::exists(log, error);
  });
  std::vector<SkippedJob> skipped;
  for (const LeftOut::One& one : out.jobs) {
    skipped.push_back({names[one.index], one.job, one.succeeded});
  }
  return skipped;
}

/// With what was skipped in the answer to a submission.
Respond telling(std::vector<SkippedJob> skipped, Respond respond) {
  return [skipped = std::move(skipped), respond = std::move(respond)](HttpResponse response) {
    if (response.status == kOk) {
      if (const auto answer = decode<SubmitAnswer>(response.body)) {
        response.body = encode_submitted_file(*answer, skipped);
      }
    }
    respond(std::move(response));
  };
}

}  // namespace

void Resources::submit_file(HttpRequest request, Respond respond) {
  if (refuses_long(respond)) {
    return;
  }
  using Way = std::expected<FileOnItsWay, HttpResponse>;
  work_long(
      [body = std::move(request.body)]() -> Way {
        auto asked = decode_file_request(body);
        if (!asked) {
          return std::unexpected(error_response(asked.error()));
        }
        auto file = file_of(*asked);
        if (!file) {
          return std::unexpected(refused_file(file.error()));
        }
        return FileOnItsWay{std::move(*asked), std::move(*file)};
      },
      [this, owner = request.peer_uid, respond = std::move(respond)](Way way) mutable {
        if (!way) {
          respond(std::move(way.error()));
          return;
        }
        if (!leaves_out(*way) && way->file.after_arrays.empty()) {
          submit_read_file(std::move(way->file), {}, way->asked.key, owner, std::move(respond));
          return;
        }
        auto shared = std::make_shared<FileOnItsWay>(std::move(*way));
        read_store(
            [this, shared](StoreReader& reader) -> Result<DoneAnswer> {
              TRY(resolve_arrays(shared->file, [&](std::uint64_t first) {
                return array_tasks(reader, first, needs_.config);
              }));
              if (!leaves_out(*shared)) {
                return DoneAnswer{};
              }
              return read_done(reader, {questions_of(shared->file)}, needs_.config.node,
                               needs_.config.log_places());
            },
            [this, shared, owner, respond = std::move(respond)](Result<DoneAnswer> done) mutable {
              if (!done) {
                respond(error_response(done.error()));
                return;
              }
              submit_read_file(std::move(shared->file), std::move(done->jobs), shared->asked.key,
                               owner, std::move(respond));
            });
      });
}

void Resources::submit_read_file(JobFile file, std::vector<DoneView> known, std::string key,
                                 std::uint32_t owner, Respond respond) {
  struct Made {
    std::expected<std::optional<event::Submit>, HttpResponse> submit;
    std::vector<SkippedJob> skipped;
  };
  auto shared = std::make_shared<JobFile>(std::move(file));
  work_long(
      [this, shared, known = std::move(known), key = std::move(key)]() -> Made {
        Made made;
        if (!known.empty()) {
          made.skipped = skip(*shared, known);
        }
        if (shared->jobs.empty() && !made.skipped.empty()) {
          return made;  // all of it has been done
        }
        auto submit = submission_of(std::move(*shared), key, needs_.config.dir);
        if (submit) {
          made.submit = std::move(*submit);
        } else {
          made.submit = std::unexpected(refused_file(submit.error()));
        }
        return made;
      },
      [this, owner, respond = std::move(respond)](Made made) mutable {
        if (!made.submit) {
          respond(std::move(made.submit.error()));
        } else if (!*made.submit) {
          respond(ok(encode_submitted_file({}, made.skipped)));
        } else {
          needs_.submit(std::move(**made.submit), owner,
                        telling(std::move(made.skipped), std::move(respond)));
        }
      });
}

void Resources::results(const HttpRequest& request, Respond respond) {
  const auto query = parse_results_query(request.query);
  if (!query) {
    respond(error_response(query.error()));
    return;
  }
  if (refuses_long(respond)) {
    return;
  }
  read_store(
      [this, query = *query](StoreReader& reader) {
        return runs_asked_for(reader, query, needs_.config);
      },
      [this, query = *query,
       respond = std::move(respond)](Result<std::vector<JobView>> jobs) mutable {
        if (!jobs) {
          respond(error_response(jobs.error()));
          return;
        }
        work_long(
            [this, query, jobs = std::move(*jobs)] {
              const Millis end = read_clock().mono + kResultsTime;
              return make_results(jobs, query, {needs_.config.logs, needs_.config.shown_files()},
                                  {end, end, heavy_.token()});
            },
            [respond = std::move(respond)](Result<std::string> body) {
              respond(body ? ok(std::move(*body)) : error_response(body.error()));
            });
      });
}

void Resources::preview(const HttpRequest& request, Respond respond) {
  const auto asked = decode_set_rules_request(request.body);
  if (!asked) {
    respond(error_response(asked.error()));
    return;
  }
  previews_.run(
      [this, set = to_event(*asked)] {
        return encode_preview(
            preview_rules(needs_.engine.state(), set, read_clock(), kPreviewWaits));
      },
      [this, respond = std::move(respond)](Result<std::string> body) mutable {
        if (!body) {
          respond(error_response(body.error()));
          return;
        }
        // What was seen of the State must be durable before it is told.
        needs_.engine.read([](const State&) { return 0; },
                           [respond = std::move(respond), body = std::move(*body)](int) mutable {
                             respond(ok(std::move(body)));
                           });
      });
}

}  // namespace berth
