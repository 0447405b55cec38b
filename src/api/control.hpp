#pragma once
// Pausing, moving, starting out of turn, changing: what the API is asked and what it answers.

#include <cstdint>
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
  std::string queue;  ///< instead of jobs; not for start

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

/// Every id asked for appears in exactly one list.
struct ControlAnswer {
  struct Refused {
    std::string why;
    std::vector<std::uint64_t> ids;
    friend bool operator==(const Refused&, const Refused&) = default;
  };
  std::vector<std::uint64_t> paused, held, resumed, released, moved, expedited, changed, unchanged;
  std::vector<Refused> refused;
  std::vector<std::uint64_t> finished;  ///< had ended before
  std::vector<std::uint64_t> unknown;
  std::string queue;  ///< the queue that was paused or resumed

  /// Takes in the answer about some of the jobs.
  void add(const Controlled& part);
  [[nodiscard]] std::vector<std::uint64_t>& list(Controlled::What what);

  friend bool operator==(const ControlAnswer&, const ControlAnswer&) = default;
};
[[nodiscard]] std::string encode(const ControlAnswer& answer);

struct RuleView {
  std::string key;
  std::string value;
  std::string usual;   ///< its default; empty: it has none
  std::string source;  ///< "default", "berth.yaml", "this run", "the store"
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

struct SetRulesRequest {
  std::vector<std::pair<std::string, std::string>> values;
  bool save = false;

  friend bool operator==(const SetRulesRequest&, const SetRulesRequest&) = default;
};
[[nodiscard]] std::string encode(const SetRulesRequest& request);
[[nodiscard]] Result<SetRulesRequest> decode_set_rules_request(std::string_view body);

}  // namespace berth
