// The queries of reading routes.

#include <algorithm>
#include <array>
#include <cctype>
#include <ranges>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/archive.hpp"
#include "api/control.hpp"
#include "api/query_reader.hpp"
#include "api/target.hpp"
#include "api/wire.hpp"

namespace berth {
namespace {

/// Builds "path?a=b&c=d".
class TargetBuilder {
 public:
  explicit TargetBuilder(std::string path) : target_(std::move(path)) {}
  void add(std::string_view name, std::string_view value) {
    target_ += first_ ? '?' : '&';
    first_ = false;
    target_ += name;
    target_ += '=';
    target_ += percent_encode(value);
  }
  template <class T>
  void add_unless(std::string_view name, T value, T usual) {
    if (value != usual) {
      add(name, fmt::format("{}", value));
    }
  }
  std::string take() { return std::move(target_); }

 private:
  std::string target_;
  bool first_ = true;
};

}  // namespace

std::string job_query_target(const JobQuery& query) {
  TargetBuilder target("/api/jobs");
  if (!query.states.empty()) {
    std::string states;
    for (const JobState state : query.states) {
      states += states.empty() ? "" : ",";
      states += to_string(state);
    }
    target.add("state", states);
  }
  if (!query.queue.empty()) {
    target.add("queue", query.queue);
  }
  target.add_unless<std::uint64_t>("batch", query.batch, 0);
  if (query.ids) {
    target.add("ids", query.ids->to_string());
  }
  if (query.since) {
    target.add("since", std::to_string(query.since->count()));
  }
  if (query.after != ListPlace{}) {
    target.add("after", to_string(query.after));
  }
  target.add_unless<std::uint32_t>("limit", query.limit, JobQuery().limit);
  if (query.sort != JobSort::id) {
    target.add("sort", fmt::format("{}{}", query.descending ? "-" : "", to_string(query.sort)));
  } else if (query.descending) {
    target.add("order", "desc");
  }
  if (!query.name.empty()) {
    target.add("name", query.name);
  }
  if (!query.fields.empty()) {
    target.add("fields", fmt::format("{}", fmt::join(query.fields, ",")));
  }
  return target.take();
}

namespace {

/// A pattern for names that contain a text, whatever the case of its letters.
std::string containing(std::string_view text) {
  std::string pattern = "*";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalpha(byte) != 0) {
      pattern += fmt::format("[{}{}]", static_cast<char>(std::tolower(byte)),
                             static_cast<char>(std::toupper(byte)));
    } else if (c == '*' || c == '?' || c == '[') {
      pattern += fmt::format("[{}]", c);
    } else {
      pattern += c;
    }
  }
  return pattern + "*";
}

/// How many stars of a pattern stand for any text; one in brackets is itself.
std::size_t stars_of(std::string_view pattern) {
  std::size_t stars = 0;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '[') {
      at += at + 1 < pattern.size() && pattern[at + 1] == '^' ? 2 : 1;
      // A bracket that comes first is one of the characters.
      at = pattern.find(']', at + 1);
      if (at == std::string_view::npos) {
        break;
      }
    }
    stars += pattern[at] == '*' ? 1 : 0;
  }
  return stars;
}

void read_name(QueryReader& in, JobQuery& out) {
  constexpr std::size_t kTextMax = 200;
  constexpr std::size_t kPatternMax = 4 * kTextMax + 2;  // any text that `q` may have, as a pattern
  constexpr std::size_t kStarsMax = 8;
  const auto pattern = in.text("name");
  const auto text = in.text("q");
  if (pattern && text) {
    in.failed("q", "give either name or q");
  }
  if (text && text->size() > kTextMax) {
    in.failed("q", fmt::format("is longer than {} bytes", kTextMax));
  }
  if (pattern && pattern->size() > kPatternMax) {
    in.failed("name", fmt::format("is longer than {} bytes", kPatternMax));
  }
  if (pattern && stars_of(*pattern) > kStarsMax) {
    in.failed("name",
              fmt::format("has more than {} stars, which takes too long to look for", kStarsMax));
  }
  if (text && !text->empty()) {
    out.name = containing(*text);
  } else {
    out.name = pattern.value_or("");
  }
}

std::vector<std::string_view> state_names() {
  std::vector<std::string_view> names;
  for (const JobState state :
       {JobState::queued, JobState::running, JobState::paused, JobState::succeeded,
        JobState::failed, JobState::killed, JobState::cancelled}) {
    names.push_back(to_string(state));
  }
  return names;
}

/// Whether such a page may have told this place: every job has a priority and a state, though not
/// all have started or ended.
bool fits(const ListPlace& place, JobSort sort) {
  return place == ListPlace{} || place.key || (sort != JobSort::priority && sort != JobSort::state);
}

}  // namespace

Result<JobQuery> parse_job_query(const Query& query) {
  JobQuery out;
  QueryReader in(query);
  if (const auto states = in.text("state")) {
    std::string_view rest = *states;
    while (true) {
      const std::string_view word = rest.substr(0, rest.find(','));
      if (const auto state = job_state_from(word)) {
        out.states.push_back(*state);
      } else {
        in.failed("state", fmt::format("there is no job state \"{}\"; there are {}", word,
                                       fmt::join(state_names(), ", ")));
      }
      if (word.size() == rest.size()) {
        break;
      }
      rest.remove_prefix(word.size() + 1);
    }
  }
  out.queue = in.text("queue").value_or("");
  in.number("batch", out.batch);
  if (const auto ids = in.text("ids")) {
    auto parsed = IdSet::parse(*ids);
    parsed ? void(out.ids = std::move(*parsed)) : in.failed("ids", parsed.error().message);
  }
  read_name(in, out);
  in.wall_time("since", out.since);
  if (const auto after = in.text("after")) {
    const auto place = list_place_from(*after);
    place ? void(out.after = *place)
          : in.failed("after", fmt::format("expected the next of a page, got \"{}\"", *after));
  }
  in.count("limit", out.limit, kPageLimitMax);
  out.descending = in.word("order", {"asc", "desc"}).value_or("asc") == "desc";
  if (const auto sort = in.text("sort")) {
    if (const auto known = job_sort_from(*sort)) {
      std::tie(out.sort, out.descending) = *known;
    } else {
      in.failed("sort", fmt::format("expected {}, or one of these with a - before it, got \"{}\"",
                                    fmt::join(kJobSorts | std::views::keys, ", "), *sort));
    }
  }
  if (!fits(out.after, out.sort)) {
    in.failed("after", fmt::format("is no `next` of a page by {}; go on with the same sort",
                                   to_string(out.sort)));
  }
  out.fields = in.words("fields");
  for (const std::string& field : out.fields) {
    if (!is_job_field(field)) {
      in.failed("fields", fmt::format("a job has no field \"{}\"; there are {}", field,
                                      fmt::join(job_fields(), ", ")));
    }
  }
  TRY(in.finish());
  return out;
}

std::string rules_query_target(const RulesQuery& query) {
  TargetBuilder target("/api/rules");
  if (!query.queue.empty()) {
    target.add("queue", query.queue);
  }
  target.add_unless<std::uint64_t>("batch", query.batch, 0);
  target.add_unless<std::uint64_t>("job", query.job, 0);
  return target.take();
}

Result<RulesQuery> parse_rules_query(const Query& query) {
  RulesQuery out;
  QueryReader in(query);
  out.queue = in.text("queue").value_or("");
  in.number("batch", out.batch);
  in.number("job", out.job);
  if (int{!out.queue.empty()} + int{out.batch != 0} + int{out.job != 0} > 1) {
    in.failed("queue", "give one of queue, batch and job");
  }
  TRY(in.finish());
  return out;
}

std::string wait_query_target(const WaitQuery& query) {
  TargetBuilder target("/api/wait");
  target.add("ids", query.ids.to_string());
  target.add("timeout_ms", std::to_string(query.timeout.count()));
  return target.take();
}

Result<WaitQuery> parse_wait_query(const Query& query) {
  WaitQuery out;
  QueryReader in(query);
  if (const auto ids = in.text("ids")) {
    auto parsed = IdSet::parse(*ids);
    parsed ? void(out.ids = std::move(*parsed)) : in.failed("ids", parsed.error().message);
  } else {
    in.failed("ids", "is missing");
  }
  in.time("timeout_ms", out.timeout);
  TRY(in.finish());
  return out;
}

std::string event_query_target(const EventQuery& query) {
  TargetBuilder target("/api/events");
  target.add("after", std::to_string(query.after));
  target.add_unless<std::uint64_t>("batch", query.batch, 0);
  target.add_unless<std::uint64_t>("job", query.job, 0);
  target.add_unless<std::int64_t>("wait_ms", query.wait.count(), 0);
  target.add_unless<std::uint32_t>("limit", query.limit, EventQuery().limit);
  if (query.ids) {
    target.add("ids", query.ids->to_string());
  }
  if (!query.kinds.empty()) {
    target.add("kind", fmt::format("{}", fmt::join(query.kinds, ",")));
  }
  if (query.since) {
    target.add("since", std::to_string(query.since->count()));
  }
  if (query.descending) {
    target.add("order", "desc");
  }
  return target.take();
}

namespace {

/// What history has lines of.
constexpr std::array<std::string_view, 23> kEventKinds{
    "submitted",      "started",   "succeeded", "failed",    "killed",    "cancelled",
    "kill_requested", "retried",   "requeued",  "revoked",   "revived",   "paused",
    "resumed",        "expedited", "moved",     "changed",   "gives_way", "parked",
    "unparked",       "stray",     "drained",   "undrained", "removed"};

}  // namespace

Result<EventQuery> parse_event_query(const Query& query) {
  EventQuery out;
  QueryReader in(query);
  in.number("after", out.after);
  in.number("batch", out.batch);
  in.number("job", out.job);
  in.time("wait_ms", out.wait);
  in.count("limit", out.limit, kPageLimitMax);
  if (const auto ids = in.text("ids")) {
    auto parsed = IdSet::parse(*ids);
    parsed ? void(out.ids = std::move(*parsed)) : in.failed("ids", parsed.error().message);
  }
  if (const auto kinds = in.text("kind")) {
    for (std::size_t at = 0; at <= kinds->size();) {
      const std::size_t comma = std::min(kinds->find(',', at), kinds->size());
      std::string kind = kinds->substr(at, comma - at);
      if (std::ranges::find(kEventKinds, kind) == kEventKinds.end()) {
        in.failed("kind", fmt::format("there are no events \"{}\"; there are {}", kind,
                                      fmt::join(kEventKinds, ", ")));
      }
      out.kinds.push_back(std::move(kind));
      at = comma + 1;
    }
  }
  in.wall_time("since", out.since);
  out.descending = in.word("order", {"asc", "desc"}).value_or("asc") == "desc";
  TRY(in.finish());
  return out;
}

}  // namespace berth
