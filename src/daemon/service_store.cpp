// The part of the API that is about the store itself: removing jobs, backups.

#include <utility>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "daemon/answers.hpp"
#include "daemon/service.hpp"
#include "daemon/views.hpp"

namespace berth {

void Service::remove(const HttpRequest& request, Respond respond) {
  const auto asked = decode_remove(request.body);
  if (!asked) {
    respond(error_response(asked.error()));
    return;
  }
  keeper_.remove(*asked, [respond = std::move(respond)](const Result<RemoveAnswer>& answer) {
    respond(answer ? ok(encode(*answer)) : error_response(answer.error()));
  });
}

void Service::done(HttpRequest request, Respond respond) {
  read_store(
      [this, body = std::move(request.body)](StoreReader& reader) -> Result<std::string> {
        TRY_ASSIGN(const DoneRequest asked, decode_done(body));
        TRY_ASSIGN(const DoneAnswer answer,
                   read_done(reader, asked, config_.node, config_.log_places()));
        return encode(answer);
      },
      [respond = std::move(respond)](const Result<std::string>& body) {
        respond(body ? ok(*body) : error_response(body.error()));
      });
}

void Service::backup(const HttpRequest& request, const Respond& respond) {
  const auto asked = decode_backup(request.body);
  if (!asked) {
    respond(error_response(asked.error()));
    return;
  }
  const auto begun = keeper_.backup(*asked);
  respond(begun ? ok(encode(*begun)) : error_response(begun.error()));
}

/// The answer says that it has begun: it is done by a daemon that is no longer this one, and the
/// next one tells how it went.
void Service::restore(const HttpRequest& request, Respond respond) {
  const auto asked = decode_restore(request.body);
  if (!asked) {
    respond(error_response(asked.error()));
    return;
  }
  if (restore_.key == asked->key) {  // the answer was lost on its way
    respond(ok(encode(restore_)));
    return;
  }
  if (restore_.running) {
    respond(error_response({ErrorCode::conflict, fmt::format("{} is being restored already",
                                                             printable(restore_.path))}));
    return;
  }
  if (const auto open = engine_.state().attempts.size(); open > 0) {
    respond(error_response(
        {ErrorCode::conflict,
         fmt::format("{} running; wait for {} or end {} first: berth wait --all, or berth kill all",
                     open == 1 ? "a job is" : fmt::format("{} jobs are", open),
                     open == 1 ? "it" : "them", open == 1 ? "it" : "them")}));
    return;
  }
  const RestoreView before = std::exchange(restore_, {asked->path, asked->key, true, {}, {}, {}});
  keeper_.inspect(asked->path,
                  [this, asked = *asked, before, respond = std::move(respond)](const Status& fine) {
                    if (!fine) {
                      restore_ = before;
                      respond(error_response(fine.error()));
                      return;
                    }
                    respond(ok(encode(restore_)));
                    hooks_.restore(asked);
                  });
}

}  // namespace berth
