// The part of the API that is about the store itself: removing jobs, backups.

#include "daemon/service.hpp"

namespace berth {
namespace {

HttpResponse ok(std::string body) {
  HttpResponse response;
  response.body = std::move(body);
  return response;
}

}  // namespace

void Service::remove(const HttpRequest& request, Respond respond) {
  auto asked = decode_remove(request.body);
  if (!asked) {
    respond(error_response(asked.error()));
    return;
  }
  keeper_.remove(std::move(*asked),
                 [respond = std::move(respond)](const Result<RemoveAnswer>& answer) {
                   respond(answer ? ok(encode(*answer)) : error_response(answer.error()));
                 });
}

void Service::backup(const HttpRequest& request, Respond respond) {
  const auto asked = decode_backup(request.body);
  if (!asked) {
    respond(error_response(asked.error()));
    return;
  }
  const auto begun = keeper_.backup(*asked);
  respond(begun ? ok(encode(*begun)) : error_response(begun.error()));
}

}  // namespace berth
