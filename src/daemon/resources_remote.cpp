// What commands on other machines cannot do with files of their own: metrics out of logs,
// configuration files, snapshots.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "access/gate.hpp"
#include "api/remote.hpp"
#include "daemon/resources.hpp"
#include "daemon/run_results.hpp"
#include "daemon/views.hpp"
#include "snapshot/snapshot.hpp"
#include "snapshot/snapshot_store.hpp"
#include "submit/submission.hpp"

namespace berth {
namespace {

constexpr std::uint32_t kRunsAtOnce = 500;
constexpr Millis kRunsEnough{5'000};
constexpr Millis kRunsEnd{20'000};
/// In which a snapshot gets its jobs; later it counts as forgotten.
constexpr Millis kSnapshotHeld{10 * 60'000};

bool may_change(const HttpRequest& request) {
  return !request.caller || request.caller->scope == Scope::full;
}

}  // namespace

struct Resources::Taken {
  SnapshotAnswer answer;
  std::shared_ptr<TreeSnapshot> snapshot;  ///< none: it is in hand already
};

Result<Resources::Taken> Resources::take(const SnapshotRequest& asked) {
  const Millis now = read_clock().mono;
  std::erase_if(known_snapshots_, [now](const auto& known) { return known.second.until <= now; });
  // Whoever repeats a request has not heard the answer.
  if (const auto known = known_snapshots_.find(asked.key); known != known_snapshots_.end()) {
    if (known->second.asked == asked) {
      return Taken{known->second.answer, nullptr};
    }
    return fail(ErrorCode::conflict, fmt::format("there is a snapshot of other directories under "
                                                 "the key '{}'; take another key",
                                                 asked.key));
  }
  TRY_ASSIGN(TreeSnapshot begun, TreeSnapshot::begin(snapshots_in(needs_.config.dir), asked.key));
  auto snapshot = std::make_shared<TreeSnapshot>(std::move(begun));
  const SnapshotLimit limit = asked.limit ? SnapshotLimit::of(*asked.limit) : SnapshotLimit{};
  Taken taken;
  for (const std::string& dir : asked.dirs) {
    TRY_ASSIGN(std::string place, snapshot->place_of(dir, limit));
    taken.answer.places.push_back(std::move(place));
  }
  taken.answer.roots = snapshot->roots();
  taken.answer.warnings = snapshot->warnings();
  snapshot->keep();
  taken.snapshot = std::move(snapshot);
  known_snapshots_[asked.key] = {asked, taken.answer, now + kSnapshotHeld};
  return taken;
}

void Resources::found_runs(const HttpRequest& request, Respond respond) {
  auto asked = decode_runs_request(request.body);
  if (!asked) {
    respond(error_response(asked.error()));
    return;
  }
  // Of files that are no logs, only who may run commands anyway.
  if (!asked->files.empty() && !may_change(request)) {
    respond(error_response(
        {ErrorCode::refused, "this token may only look, at logs and not at other files"}));
    return;
  }
  if (refuses_long(respond)) {
    return;
  }
  JobQuery query;
  query.ids = asked->ids;
  query.after = {JobId{asked->after}};
  query.limit = kRunsAtOnce;
  read_store(
      [this, query = std::move(query)](StoreReader& reader) {
        return read_page(reader, query, needs_.config.node, needs_.config.log_places());
      },
      [this, asked = std::move(*asked),
       respond = std::move(respond)](Result<JobPage> page) mutable {
        if (!page) {
          respond(error_response(page.error()));
          return;
        }
        work_long(
            [this, asked = std::move(asked), page = std::move(*page)] {
              const Millis now = read_clock().mono;
              return tell_runs(page.jobs, page.next.has_value(), asked,
                               {needs_.config.logs, needs_.config.shown_files()},
                               {now + kRunsEnough, now + kRunsEnd, heavy_.token()});
            },
            [respond = std::move(respond)](Result<std::string> body) {
              respond(body ? ok(std::move(*body)) : error_response(body.error()));
            });
      });
}

void Resources::write_files(HttpRequest request, Respond respond) {
  if (refuses_long(respond)) {
    return;
  }
  work_long(
      [body = std::move(request.body)]() -> Status {
        TRY_ASSIGN(FilesRequest asked, decode_files_request(body));
        std::vector<DerivedFile> files;
        for (FilesRequest::File& file : asked.files) {
          files.push_back({std::move(file.path), std::move(file.content)});
        }
        TRY(write_derived(files));
        prepare_state_directory(asked.state_dir);
        return {};
      },
      [respond = std::move(respond)](const Status& written) {
        respond(written ? ok("{}") : error_response(written.error()));
      });
}

void Resources::take_snapshot(HttpRequest request, Respond respond) {
  if (refuses_long(respond)) {
    return;
  }
  work_long(
      [this, body = std::move(request.body)]() -> Result<Taken> {
        TRY_ASSIGN(const SnapshotRequest asked, decode_snapshot_request(body));
        return take(asked);
      },
      [this, respond = std::move(respond)](Result<Taken> taken) {
        if (!taken) {
          respond(error_response(taken.error()));
          return;
        }
        // Who has one in hand is not taken for having forgotten it.
        if (taken->snapshot) {
          held_snapshots_.push_back(needs_.loop.after(
              kSnapshotHeld,
              [this, snapshot = std::move(taken->snapshot)] { held_snapshots_.pop_front(); }));
        }
        respond(ok(encode(taken->answer)));
      });
}

}  // namespace berth
