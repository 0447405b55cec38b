// Jobs on their way in.

#include <utility>

#include "daemon/answers.hpp"
#include "daemon/service.hpp"
#include "daemon/stream_submit.hpp"

namespace berth {

void Service::submit(HttpRequest request, Respond respond) {
  if (request.stream) {
    ++streams_;
    StreamSubmit::start(loop_, engine_, readers_, std::move(request), std::move(respond),
                        [this] { --streams_; });
    return;
  }
  const std::uint32_t owner = request.peer_uid;
  if (request.body.size() <= kDecodeHere) {
    submit_decoded(decode_submit(request.body), owner, std::move(respond));
    return;
  }
  read_store(
      [body = std::move(request.body)](StoreReader&) {
        auto decoded = decode_submit(body);
        if (decoded) {
          if (Status checked = check_submission(decoded->jobs); !checked) {
            decoded = std::unexpected(std::move(checked.error()));
          }
        }
        return decoded;
      },
      [this, owner, respond = std::move(respond)](Result<event::Submit> decoded) mutable {
        submit_decoded(std::move(decoded), owner, std::move(respond));
      });
}

void Service::submit_decoded(Result<event::Submit> decoded, std::uint32_t owner, Respond respond) {
  if (!decoded) {
    respond(error_response(decoded.error()));
    return;
  }
  decoded->owner = owner;
  Engine::Reply reply = [respond = std::move(respond)](const Result<Answer>& answer) {
    if (!answer) {
      respond(error_response(answer.error()));
      return;
    }
    const auto& submitted = std::get<Submitted>(*answer);
    respond(ok(encode(SubmitAnswer{submitted.batch.value, submitted.first.value,
                                   submitted.first.value + submitted.count - 1})));
  };
  if (decoded->jobs.size() <= kPartJobs) {
    engine_.handle(std::move(*decoded), std::move(reply));
  } else {
    submit_in_parts(
        engine_, std::move(*decoded), [this](Loop::Task task) { loop_.post(std::move(task)); },
        std::move(reply));
  }
}

}  // namespace berth
