// Requests and answers of api/control.hpp.

#include <array>

#include "api/archive.hpp"
#include "api/control.hpp"
#include "api/wire.hpp"

namespace berth {
namespace {

constexpr Millis kTimeMax = std::chrono::hours(24 * 3660);
constexpr std::size_t kNameMax = 1024;

constexpr std::array kPlaces = {
    std::pair{event::Move::To::first, "first"}, std::pair{event::Move::To::last, "last"},
    std::pair{event::Move::To::before, "before"}, std::pair{event::Move::To::queue, "queue"},
    std::pair{event::Move::To::priority, "priority"}};

/// The jobs stand among the other fields of a request.
template <class A>
void describe_selection(A& a, wire::Ref<A, Selection> jobs) {
  a.unless("all", jobs.all, false);
  if constexpr (A::kWriting) {
    a.unless("ids", jobs.ids.to_string(), {});
  } else {
    std::string ids;
    a.field("ids", ids);
    if (!ids.empty()) {
      auto parsed = IdSet::parse(ids);
      a.check(parsed.has_value(), "ids", parsed ? "" : parsed.error().message);
      jobs.ids = parsed ? std::move(*parsed) : IdSet();
    }
    a.check(jobs.ids.size() <= kSelectedMax, "ids",
            "more than 1000000 ids; name fewer, or give \"all\": true");
  }
}

template <class A>
void check_selected(A& a, const Selection& jobs) {
  a.check(jobs.all != !jobs.ids.empty(), "ids", "give either ids, as \"3,5-9\", or \"all\": true");
}

}  // namespace

template <class A>
void describe(A& a, wire::Ref<A, ControlRequest> request) {
  describe_selection(a, request.jobs);
  a.unless("queue", request.queue, {});
  a.unless("instance", request.instance, false);
  a.unless("gpu", request.gpu, {});
  a.unless("why", request.why, {});
  const int others =
      int{!request.queue.empty()} + int{request.instance} + int{!request.gpu.empty()};
  if (others == 0) {
    check_selected(a, request.jobs);
  } else {
    a.check(others == 1 && !request.jobs.all && request.jobs.ids.empty(), "queue",
            "give jobs, a queue, a GPU or the instance, and only one of them");
  }
  a.check(request.why.size() <= kNameMax, "why", "is longer than 1024 bytes");
}

template <class A>
void describe(A& a, wire::Ref<A, MoveRequest> request) {
  describe_selection(a, request.jobs);
  check_selected(a, request.jobs);
  std::string to;
  if constexpr (A::kWriting) {
    for (const auto& [place, name] : kPlaces) {
      to = place == request.to ? name : to;
    }
    a.need("to", to);
  } else {
    a.need("to", to);
    bool known = false;
    for (const auto& [place, name] : kPlaces) {
      if (to == name) {
        request.to = place;
        known = true;
      }
    }
    a.check(known, "to", "expected first, last, before, queue or priority");
  }
  a.unless("before", request.before, 0);
  a.unless("queue", request.queue, {});
  using To = event::Move::To;
  if (request.to == To::priority) {
    a.need("priority", request.priority);
  } else {
    a.unless("priority", request.priority, 5);
  }
  a.check(request.to != To::before || request.before != 0, "before", "name the job");
  a.check(request.queue.size() <= kNameMax && (request.to != To::queue || !request.queue.empty()),
          "queue", "must have 1 to 1024 bytes");
  a.check(!request.jobs.all || request.to == To::queue || request.to == To::priority, "all",
          "all jobs have no place among themselves; name those to move");
}

template <class A>
void describe(A& a, wire::Ref<A, RetryRequest> request) {
  bool failed = request.ids.empty();
  if constexpr (A::kWriting) {
    a.unless("ids", request.ids.to_string(), {});
  } else {
    std::string ids;
    a.field("ids", ids);
    if (!ids.empty()) {
      auto parsed = IdSet::parse(ids);
      a.check(parsed.has_value(), "ids", parsed ? "" : parsed.error().message);
      request.ids = parsed ? std::move(*parsed) : IdSet();
    }
    failed = false;
  }
  a.unless("failed", failed, false);
  a.unless("batch", request.batch, 0);
  a.unless("succeeded", request.succeeded, false);
  a.check(failed != !request.ids.empty(), "ids",
          "give either ids, as \"3,5-9\", or \"failed\": true");
  a.check(request.ids.size() <= kSelectedMax, "ids", "more than 1000000 ids; name fewer");
}

template <class A>
void describe(A& a, wire::Ref<A, SetJobsRequest> request) {
  describe_selection(a, request.jobs);
  check_selected(a, request.jobs);
  auto& patch = request.patch;
  a.unless("name", patch.name, {});
  a.unless("queue", patch.queue, {});
  a.unless("priority", patch.priority, {});
  a.unless("gpus", patch.gpus, {});
  std::optional<Bytes> gpu_memory;  // 0: whole cards
  if constexpr (A::kWriting) {
    if (patch.gpu_memory) {
      gpu_memory = patch.gpu_memory->value_or(0);
    }
    a.unless("gpu_memory", gpu_memory, {});
  } else {
    a.field("gpu_memory", gpu_memory);
    if (gpu_memory) {
      patch.gpu_memory.emplace();
      if (*gpu_memory != 0) {
        *patch.gpu_memory = gpu_memory;
      }
    }
  }
  a.unless("cpus", patch.cpus, {});
  a.unless("memory", patch.memory, {});
  a.unless("retries", patch.retries, {});
  a.unless("time_ms", patch.time_limit, {});
  a.unless("grace_ms", patch.grace, {});
  a.unless("rules", patch.rules, {});
  a.unless("unset", patch.unset, {});
  const auto in_range = [](const std::optional<Millis>& time) {
    return !time || (*time >= Millis(0) && *time <= kTimeMax);
  };
  a.check(!patch.name || patch.name->size() <= kNameMax, "name", "is longer than 1024 bytes");
  a.check(!patch.queue || (!patch.queue->empty() && patch.queue->size() <= kNameMax), "queue",
          "must have 1 to 1024 bytes");
  a.check(in_range(patch.time_limit), "time_ms", "must be 0 to ten years");
  a.check(in_range(patch.grace), "grace_ms", "must be 0 to ten years");
}

template <class A>
void describe(A& a, wire::Ref<A, ControlAnswer::Refused> refused) {
  a.need("why", refused.why);
  a.need("ids", refused.ids);
}

template <class A>
void describe(A& a, wire::Ref<A, ControlAnswer> answer) {
  a.unless("paused", answer.paused, {});
  a.unless("held", answer.held, {});
  a.unless("resumed", answer.resumed, {});
  a.unless("released", answer.released, {});
  a.unless("moved", answer.moved, {});
  a.unless("expedited", answer.expedited, {});
  a.unless("changed", answer.changed, {});
  a.unless("revived", answer.revived, {});
  a.unless("unchanged", answer.unchanged, {});
  a.unless("refused", answer.refused, {});
  a.field("finished", answer.finished);
  a.field("unknown", answer.unknown);
  a.unless("queue", answer.queue, {});
  a.unless("instance", answer.instance, false);
  a.unless("gpu", answer.gpu, {});
}

template <class A>
void describe(A& a, wire::Ref<A, RuleView> rule) {
  a.need("key", rule.key);
  a.need("value", rule.value);
  a.or_null("default", rule.usual);
  a.field("source", rule.source);
  a.field("type", rule.type);
  a.field("help", rule.help);
}

template <class A>
void describe(A& a, wire::Ref<A, RulesView> view) {
  a.need("rules", view.rules);
  a.field("problems", view.problems);
}

namespace {

struct Assignment {
  std::string key;
  std::string value;
};

template <class A>
void describe(A& a, wire::Ref<A, Assignment> assignment) {
  a.need("key", assignment.key);
  a.need("value", assignment.value);
}

struct SetRulesBody {
  std::vector<Assignment> set;
  std::vector<std::string> unset;
  bool save = false;
  std::string queue;
  std::uint64_t batch = 0;
};

template <class A>
void describe(A& a, wire::Ref<A, SetRulesBody> body) {
  a.field("set", body.set);
  a.unless("unset", body.unset, {});
  a.unless("save", body.save, false);
  a.unless("queue", body.queue, {});
  a.unless("batch", body.batch, 0);
  a.check(!body.set.empty() || !body.unset.empty(), "set", "there must be at least one");
  a.check(body.queue.empty() || body.batch == 0, "queue", "give either a queue or a batch");
  a.check(!body.save || (body.queue.empty() && body.batch == 0), "save",
          "berth.yaml is for the instance; rules of queues and batches are kept anyway");
}

template <class T>
std::string write(const T& value) {
  return wire::Writer::text(value);
}

}  // namespace

std::vector<std::uint64_t>& ControlAnswer::list(Controlled::What what) {
  using What = Controlled::What;
  switch (what) {
    case What::paused:
      return paused;
    case What::held:
      return held;
    case What::resumed:
      return resumed;
    case What::released:
      return released;
    case What::moved:
      return moved;
    case What::expedited:
      return expedited;
    case What::changed:
      return changed;
    case What::revived:
      return revived;
    case What::unchanged:
      break;
  }
  return unchanged;
}

void ControlAnswer::add(const Controlled& part) {
  for (const auto& [what, ids] : part.jobs) {
    auto& out = list(what);
    for (const JobId id : ids) {
      out.push_back(id.value);
    }
  }
  for (const auto& [why, ids] : part.refused) {
    auto it = std::ranges::find(refused, why, &Refused::why);
    if (it == refused.end()) {
      it = refused.insert(it, Refused{why, {}});
    }
    for (const JobId id : ids) {
      it->ids.push_back(id.value);
    }
  }
  for (const JobId id : part.absent) {
    finished.push_back(id.value);
  }
}

std::string encode(const ControlRequest& request) {
  return write(request);
}
std::string encode(const MoveRequest& request) {
  return write(request);
}
std::string encode(const RetryRequest& request) {
  return write(request);
}
Result<RetryRequest> decode_retry_request(std::string_view body) {
  return wire::read<RetryRequest>(body, wire::Unknown::error);
}

std::string encode(const SetJobsRequest& request) {
  return write(request);
}
std::string encode(const ControlAnswer& answer) {
  return write(answer);
}
std::string encode(const RulesView& rules) {
  return write(rules);
}
std::string encode(const SetRulesRequest& request) {
  SetRulesBody body;
  body.unset = request.unset;
  body.save = request.save;
  body.queue = request.queue;
  body.batch = request.batch;
  for (const auto& [key, value] : request.values) {
    body.set.push_back({key, value});
  }
  return write(body);
}

Result<ControlRequest> decode_control_request(std::string_view body) {
  return wire::read<ControlRequest>(body, wire::Unknown::error);
}
Result<MoveRequest> decode_move_request(std::string_view body) {
  return wire::read<MoveRequest>(body, wire::Unknown::error);
}
Result<SetJobsRequest> decode_set_jobs_request(std::string_view body) {
  return wire::read<SetJobsRequest>(body, wire::Unknown::error);
}
Result<SetRulesRequest> decode_set_rules_request(std::string_view text) {
  TRY_ASSIGN(SetRulesBody body, wire::read<SetRulesBody>(text, wire::Unknown::error));
  SetRulesRequest request;
  request.unset = std::move(body.unset);
  request.save = body.save;
  request.queue = std::move(body.queue);
  request.batch = body.batch;
  for (Assignment& assignment : body.set) {
    request.values.emplace_back(std::move(assignment.key), std::move(assignment.value));
  }
  return request;
}

template <>
Result<ControlAnswer> decode(std::string_view body) {
  return wire::read<ControlAnswer>(body, wire::Unknown::ignored);
}
template <>
Result<RulesView> decode(std::string_view body) {
  return wire::read<RulesView>(body, wire::Unknown::ignored);
}

}  // namespace berth
