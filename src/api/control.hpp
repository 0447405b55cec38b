#pragma once
// Pausing, moving, starting out of turn, changing: what the API is asked and what it answers.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/idset.hpp"
#include "base/result.hpp"
#include "core/apply.hpp"
#include "core/event.hpp"

namespace berth {

/// How many ids one request may name; all jobs are named by `all`.
inline constexpr std::uint64_t kSelectedMax = 1'000'000;

/// Which jobs.
struct Selection {
  bool all = false;  ///< every job that has not ended
  IdSet ids;         ///< "3,5-9"

  friend bool operator==(const Selection&, const Selection&) = default;
};

/// Pause, resume and start.
struct ControlRequest {
  Selection jobs;
  std::string queue;      ///< instead of jobs; not for start
  bool instance = false;  ///< likewise: nothing starts, what runs goes on
  std::string gpu = {};   ///< likewise: an index or UUID; nothing starts on this card
  std::string why = {};   ///< with gpu, for people

  friend bool operator==(const ControlRequest&, const ControlRequest&) = default;
};
[[nodiscard]] std::string encode(const ControlRequest& request);
[[nodiscard]] Result<ControlRequest> decode_control_request(std::string_view body);

struct MoveRequest {
  Selection jobs;
  event::Move::To to = event::Move::To::first;
  std::uint64_t before = 0;
  std::string queue;
  std::int32_t priority = 5;

  friend bool operator==(const MoveRequest&, const MoveRequest&) = default;
};
[[nodiscard]] std::string encode(const MoveRequest& request);
[[nodiscard]] Result<MoveRequest> decode_move_request(std::string_view body);

struct SetJobsRequest {
  Selection jobs;
  event::JobPatch patch;

  friend bool operator==(const SetJobsRequest&, const SetJobsRequest&) = default;
};
[[nodiscard]] std::string encode(const SetJobsRequest& request);
[[nodiscard]] Result<SetJobsRequest> decode_set_jobs_request(std::string_view body);

/// Jobs that have ended and are to run again.
struct RetryRequest {
  IdSet ids;                ///< empty: all that failed
  std::uint64_t batch = 0;  ///< only of this one; 0: any
  bool succeeded = false;   ///< with ids: those that succeeded, too

  friend bool operator==(const RetryRequest&, const RetryRequest&) = default;
};
[[nodiscard]] std::string encode(const RetryRequest& request);
[[nodiscard]] Result<RetryRequest> decode_retry_request(std::string_view body);

/// Every id asked for appears in exactly one list.
struct ControlAnswer {
  struct Refused {
    std::string why;
    std::vector<std::uint64_t> ids;
    friend bool operator==(const Refused&, const Refused&) = default;
  };
  std::vector<std::uint64_t> paused, held, resumed, released, moved, expedited, changed, revived,
      unchanged;
  std::vector<Refused> refused;
  std::vector<std::uint64_t> finished;  ///< had ended before
  std::vector<std::uint64_t> unknown;
  std::string queue;      ///< the queue that was paused or resumed
  bool instance = false;  ///< the instance was
  std::string gpu = {};   ///< the card that was

  /// Takes in the answer about some of the jobs.
  void add(const Controlled& part);
  [[nodiscard]] std::vector<std::uint64_t>& list(Controlled::What what);

  friend bool operator==(const ControlAnswer&, const ControlAnswer&) = default;
};
[[nodiscard]] std::string encode(const ControlAnswer& answer);

struct RuleView {
  std::string key;
  std::string value;
  std::string usual;  ///< its default; empty: it has none
  /// "default", "berth.yaml", "this run", "the store"; of a queue, batch or job also "queue NAME",
  /// "batch N", "job N".
  std::string source;
  std::string type;
  std::string help;

  friend bool operator==(const RuleView&, const RuleView&) = default;
};

struct RulesView {
  std::vector<RuleView> rules;
  std::vector<std::string> problems;  ///< with berth.yaml

  friend bool operator==(const RulesView&, const RulesView&) = default;
};
[[nodiscard]] std::string encode(const RulesView& rules);

/// Whose rules are asked for; nothing set: the instance's.
struct RulesQuery {
  std::string queue;
  std::uint64_t batch = 0;
  std::uint64_t job = 0;

  friend bool operator==(const RulesQuery&, const RulesQuery&) = default;
};
[[nodiscard]] std::string rules_query_target(const RulesQuery& query);  ///< "/api/rules?…"
[[nodiscard]] Result<RulesQuery> parse_rules_query(const std::map<std::string, std::string>& query);

struct SetRulesRequest {
  std::vector<std::pair<std::string, std::string>> values;
  bool save = false;                    ///< in berth.yaml; only for the instance
  std::vector<std::string> unset = {};  ///< keys that are no longer to be said anything of
  std::string queue = {};               ///< instead of the instance
  std::uint64_t batch = 0;              ///< likewise

  friend bool operator==(const SetRulesRequest&, const SetRulesRequest&) = default;
};
[[nodiscard]] std::string encode(const SetRulesRequest& request);
[[nodiscard]] Result<SetRulesRequest> decode_set_rules_request(std::string_view body);

}  // namespace berth
