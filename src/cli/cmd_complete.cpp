// berth __complete: what a shell offers behind `berth show` and the like. A person waits at a
// prompt, so it asks a daemon that is there, briefly, and is silent about everything that fails.

#include <fmt/format.h>

#include <set>

#include "api/http.hpp"
#include "api/paths.hpp"
#include "api/wire.hpp"
#include "cli/commands.hpp"
#include "cli/describe.hpp"

namespace berth::cli {
namespace {

constexpr Millis kPatience{300};
constexpr std::uint32_t kJobs = 200;  ///< the newest

Result<JobPage> newest_jobs() {
  TRY_ASSIGN(const InstancePaths paths, find_instance());
  TRY_ASSIGN(HttpClient client, HttpClient::connect(paths.socket));
  JobQuery query;
  query.descending = true;
  query.limit = kJobs;
  TRY_ASSIGN(HttpResponse response, client.request("GET", job_query_target(query), {}, kPatience));
  TRY_ASSIGN(const std::string body, body_or_error(std::move(response)));
  return decode<JobPage>(body);
}

}  // namespace

Outcome run_complete(const std::string& what) {
  const auto page = newest_jobs();
  if (!page) {
    return 0;
  }
  std::set<std::string> queues;
  for (const JobView& job : page->jobs) {
    if (what == "jobs") {
      print(fmt::format("{}\t{}, {}\n", job.id, shorten(label(job), 40), to_string(job.state)));
    } else if (what == "queues" && queues.insert(job.queue).second) {
      print(fmt::format("{}\tqueue\n", printable(job.queue)));
    }
  }
  return 0;
}

}  // namespace berth::cli
