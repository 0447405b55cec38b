// berth rm and berth clean.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/commands.hpp"
#include "cli/daemon.hpp"

namespace berth::cli {
namespace {

IdSet set_of(const std::vector<std::uint64_t>& ids) {
  IdSet set;
  for (const std::uint64_t id : ids) {
    set.add(id);
  }
  return set;
}

/// "job 3", "jobs 3,5-9", "12345 jobs".
std::string jobs_text(const std::vector<std::uint64_t>& ids) {
  if (ids.size() == 1) {
    return fmt::format("job {}", ids.front());
  }
  const std::string list = set_of(ids).to_string();
  return list.size() > 60 ? fmt::format("{} jobs", ids.size()) : "jobs " + list;
}

void append(std::vector<std::uint64_t>& to, const std::vector<std::uint64_t>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// All parts of the removal, one after the other.
Status remove_all(Daemon& daemon, RemoveRequest request, RemoveAnswer& all) {
  const bool show = ::isatty(STDERR_FILENO) == 1;
  request.after = 0;
  while (true) {
    TRY_ASSIGN(const std::string body,
               daemon.call("POST", "/api/jobs/remove", encode_remove(request)));
    TRY_ASSIGN(const RemoveAnswer part, decode<RemoveAnswer>(body));
    append(all.removed, part.removed);
    append(all.cancelled, part.cancelled);
    append(all.running, part.running);
    append(all.needed, part.needed);
    all.logs += part.logs;
    if (!part.next) {
      break;
    }
    request.after = *part.next;
    if (show && !request.dry_run) {
      fmt::print(stderr, "\r{} removed", all.removed.size());
    }
  }
  if (show && request.after != 0 && !request.dry_run) {
    fmt::print(stderr, "\r\x1b[K");
  }
  return {};
}

std::vector<std::uint64_t> unknown(const IdSet& asked, const RemoveAnswer& answer) {
  std::vector<std::uint64_t> seen;
  for (const auto* list : {&answer.removed, &answer.running, &answer.needed}) {
    append(seen, *list);
  }
  std::ranges::sort(seen);
  std::vector<std::uint64_t> missing;
  for (const auto& [first, last] : asked.ranges()) {
    // Ids that were named one by one must be there.
    if (first == last && !std::ranges::binary_search(seen, first)) {
      missing.push_back(first);
    }
  }
  return missing;
}

}  // namespace

Outcome run_remove(const RemoveOptions& options) {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  RemoveRequest request;
  request.states = options.states;
  request.queue = options.queue;
  request.older = options.older;
  request.keep = options.keep;
  request.dry_run = options.dry_run;
  request.all = !options.ids && request.states.empty() && request.queue.empty() &&
                request.older == Millis(0) && request.keep == 0;
  RemoveAnswer answer;
  if (options.ids) {
    for (IdSet& part : in_parts(*options.ids)) {
      request.ids = std::move(part);
      TRY(remove_all(daemon, request, answer));
    }
  } else {
    TRY(remove_all(daemon, request, answer));
  }
  for (auto* list : {&answer.removed, &answer.cancelled, &answer.running, &answer.needed}) {
    std::ranges::sort(*list);
  }
  if (options.json) {
    print(encode(answer) + "\n");
  } else if (answer.removed.empty()) {
    if (!options.ids) {
      print("there is nothing to remove\n");
    }
  } else {
    print(fmt::format("{} {}{}{}\n", options.dry_run ? "would remove" : "removed",
                      jobs_text(answer.removed),
                      answer.logs == 0   ? std::string()
                      : answer.logs == 1 ? std::string(" and 1 log")
                                         : fmt::format(" and {} logs", answer.logs),
                      answer.cancelled.empty()
                          ? std::string()
                          : fmt::format(" ({} had been waiting)", jobs_text(answer.cancelled))));
  }
  std::string trouble;
  const auto add = [&](const std::string& text) {
    trouble += (trouble.empty() ? "" : "\n") + text;
  };
  if (!answer.running.empty()) {
    add(fmt::format("{} {}; kill it first: berth kill {}", jobs_text(answer.running),
                    answer.running.size() == 1 ? "is running" : "are running",
                    set_of(answer.running).to_string()));
  }
  if (!answer.needed.empty()) {
    add(fmt::format("{} {} followed by waiting jobs; remove or cancel those first",
                    jobs_text(answer.needed), answer.needed.size() == 1 ? "is" : "are"));
  }
  if (options.ids) {
    if (const auto missing = unknown(*options.ids, answer); !missing.empty()) {
      add(fmt::format("there {} {}; berth ls --all lists them",
                      missing.size() == 1 ? "is no" : "are no", jobs_text(missing)));
    } else if (answer.removed.empty() && trouble.empty()) {
      add(fmt::format("there are no jobs {}; berth ls --all lists them", options.ids->to_string()));
    }
  }
  if (!trouble.empty()) {
    return fail(ErrorCode::conflict, trouble);
  }
  return 0;
}

}  // namespace berth::cli
