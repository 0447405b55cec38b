// Requests, queries and answers. The first byte chooses which, the rest is the text. What is
// accepted is written the same once it has been read again; what is refused says why.

#include <array>
#include <map>

#include "api/control.hpp"
#include "api/remote.hpp"
#include "api/target.hpp"
#include "api/wire.hpp"
#include "support.hpp"

namespace {

using namespace berth;

template <class Decode, class Encode>
void check(std::string_view text, Decode read, Encode write) {
  const auto value = read(text);
  if (!value) {
    return fuzz::check_error(value.error());
  }
  const std::string written = write(*value);
  BERTH_ASSERT(is_utf8(written));
  const auto again = read(written);
  BERTH_ASSERT(again.has_value());
  BERTH_ASSERT(write(*again) == written);
}

template <class T>
void check_answer(std::string_view text) {
  check(text, decode<T>, [](const T& value) { return encode(value); });
}

template <class Decode>
void check_request(std::string_view text, Decode read) {
  check(text, read, [](const auto& value) { return encode(value); });
}

/// A query is read out of a target and becomes one again.
template <class Parse, class Write>
void check_query(std::string_view text, Parse parse, Write write) {
  const auto target = parse_target(text);
  if (!target) {
    return;
  }
  const auto query = parse(target->query);
  if (!query) {
    return fuzz::check_error(query.error());
  }
  const auto again_target = parse_target(write(*query));
  BERTH_ASSERT(again_target.has_value());
  const auto again = parse(again_target->query);
  BERTH_ASSERT(again && *again == *query);
}

void check_ids(std::string_view text) {
  const auto ids = IdSet::parse(text);
  if (!ids) {
    return fuzz::check_error(ids.error());
  }
  const auto again = IdSet::parse(ids->to_string());
  BERTH_ASSERT(ids->empty() || (again && *again == *ids));
  if (const auto all = ids->expand(1000)) {
    BERTH_ASSERT(all->size() == ids->size());
    for (const auto id : *all) {
      BERTH_ASSERT(ids->contains(id));
    }
  }
}

void check_response(std::string_view text) {
  HttpResponse response;
  response.status = 400;
  response.body = text;
  const auto body = body_or_error(std::move(response));
  BERTH_ASSERT(!body && !body.error().message.empty());
}

using Check = void (*)(std::string_view);
constexpr std::array<Check, 30> kChecks = {
    [](std::string_view text) { check(text, decode_submit, encode_submit); },
    [](std::string_view text) { check(text, decode_kill, encode_kill); },
    [](std::string_view text) { check(text, decode_remove, encode_remove); },
    [](std::string_view text) { check(text, decode_backup, encode_backup); },
    [](std::string_view text) { check_request(text, decode_control_request); },
    [](std::string_view text) { check_request(text, decode_move_request); },
    [](std::string_view text) { check_request(text, decode_set_jobs_request); },
    [](std::string_view text) { check_request(text, decode_set_rules_request); },
    [](std::string_view text) { check_query(text, parse_job_query, job_query_target); },
    [](std::string_view text) { check_query(text, parse_wait_query, wait_query_target); },
    [](std::string_view text) { check_query(text, parse_event_query, event_query_target); },
    check_ids,
    check_response,
    check_answer<SubmitAnswer>,
    check_answer<JobPage>,
    check_answer<JobDetail>,
    check_answer<WhyView>,
    check_answer<KillAnswer>,
    check_answer<WaitAnswer>,
    check_answer<std::vector<GpuView>>,
    check_answer<StatusView>,
    check_answer<EventPage>,
    check_answer<RemoveAnswer>,
    check_answer<BackupView>,
    check_answer<ControlAnswer>,
    check_answer<RulesView>,
    // a to d
    [](std::string_view text) { check_request(text, decode_files_request); },
    [](std::string_view text) { check_request(text, decode_snapshot_request); },
    [](std::string_view text) { check_request(text, decode_snapshot_answer); },
    [](std::string_view text) { check_request(text, decode_runs_request); },
};

/// Letters, so that a corpus can be written by hand: A is a submission, a follows Z.
std::size_t choice_of(unsigned char byte) {
  const std::size_t choice = byte >= 'a' && byte <= 'z' ? byte - 'a' + 26
                             : byte >= 'A'              ? byte - 'A'
                                                        : byte;
  return choice % kChecks.size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  kChecks[choice_of(data[0])](fuzz::text_of(data + 1, size - 1));
  return 0;
}
