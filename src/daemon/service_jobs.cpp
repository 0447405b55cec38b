// Jobs as they are told: in pages and one by one, with why they wait.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "access/gate.hpp"
#include "core/reason.hpp"
#include "daemon/answers.hpp"
#include "daemon/service.hpp"
#include "daemon/views.hpp"

namespace berth {
namespace {

/// A task of the loop is done with in a few milliseconds if it looks at no more than so many.
constexpr std::size_t kExplained = 200;

/// Whether there is something to explain about it.
bool is_waiting(const JobView& job) {
  return job.state == JobState::queued || job.state == JobState::paused;
}

Error no_such_job(std::uint64_t id) {
  return {ErrorCode::not_found, fmt::format("there is no job {}; `berth ls --all` lists them", id)};
}

}  // namespace

JobView Service::view(const JobRow& row) const {
  return job_view(row, config_.node, config_.log_places());
}

void Service::explain_all(std::shared_ptr<std::vector<JobView>> jobs, std::size_t from,
                          std::function<void()> then) {
  const Room room = room_to_explain(engine_.state(), read_clock());
  std::size_t explained = 0;
  for (; from < jobs->size() && explained < kExplained; ++from) {
    JobView& job = (*jobs)[from];
    if (!is_waiting(job)) {
      continue;
    }
    ++explained;
    if (const Job* live = engine_.state().job(JobId{job.id})) {
      const auto reasons = explain(engine_.state(), *live, room);
      if (!reasons.empty()) {
        job.reason = reasons.front().text;
        job.why = cause_view(reasons.front());
      }
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
  struct Read {
    JobPage page;
    std::string body;  ///< empty: the State has to say why some of them wait
  };
  read_store(
      [this, query = *query](StoreReader& reader) -> Result<Read> {
        Read read;
        TRY_ASSIGN(read.page, read_page(reader, query, config_.node, config_.log_places()));
        const bool reasons =
            query.fields.empty() || std::ranges::any_of(query.fields, [](const std::string& field) {
              return field == "reason" || field == "why";
            });
        if (!reasons || std::ranges::none_of(read.page.jobs, is_waiting)) {
          read.body = encode(read.page, query.fields);
        }
        return read;
      },
      [this, fields = query->fields, respond = std::move(respond)](Result<Read> read) mutable {
        if (!read) {
          respond(error_response(read.error()));
          return;
        }
        if (!read->body.empty()) {
          respond(ok(std::move(read->body)));
          return;
        }
        const auto jobs = std::make_shared<std::vector<JobView>>(std::move(read->page.jobs));
        explain_all(jobs, 0,
                    [this, jobs, next = read->page.next, fields = std::move(fields),
                     respond = std::move(respond)]() mutable {
                      // Pages can be long: they become text away from the loop.
                      read_store(
                          [jobs, next, fields = std::move(fields)](StoreReader&) {
                            return encode(JobPage{std::move(*jobs), next}, fields);
                          },
                          [respond = std::move(respond)](std::string body) {
                            respond(ok(std::move(body)));
                          });
                    });
      });  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): it loses functions moved into
           // functions
}

void Service::with_detail(std::uint64_t id, Respond respond,
                          std::function<void(JobDetail, Respond)> then) {
  read_store(
      [this, id](StoreReader& reader) {
        return read_detail(reader, JobId{id}, config_.node, config_.log_places(), config_.dir);
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

void Service::show_job(std::uint64_t id, const HttpRequest& request, Respond respond) {
  const bool only_reads = request.caller && request.caller->scope != Scope::full;
  with_detail(id, std::move(respond), [this, only_reads](JobDetail detail, Respond reply) {
    if (only_reads) {
      withhold_values(detail);
    }
    const auto one = std::make_shared<std::vector<JobView>>(1, std::move(detail.job));
    explain_all(one, 0, [one, reply = std::move(reply), detail = std::move(detail)]() mutable {
      detail.job = std::move(one->front());
      reply(ok(encode(detail)));
    });
  });  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): likewise
}

}  // namespace berth
