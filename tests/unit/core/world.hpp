#pragma once
// A State to play with: events in, decisions out, as short texts that read well in a table.
//
// Every event and decision is checked against the invariants, and its changes go to a Ledger, so
// that a restart can be tried at any point.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/apply.hpp"
#include "core/reason.hpp"
#include "unit/core/builders.hpp"
#include "unit/core/ledger.hpp"

namespace berth::testing {

class World {
 public:
  State state;
  Now now{Millis{100'000}, Millis{1'700'000'000'000}};
  Ledger ledger;
  Step last;                            ///< of the last event or decision
  std::optional<Bytes> host_available;  ///< as the next look will show it

  Result<Answer> apply(Event event);

  /// Job ids are numbered from 1 in the order of submission.
  Submitted submit(std::vector<JobSpec> jobs);
  Submitted submit(event::Submit submission);
  Result<Answer> try_submit(std::vector<JobSpec> jobs);
  void set_queue(const std::string& name, std::uint32_t limit) { limits_[name] = limit; }
  void set_resource(const std::string& name, std::uint64_t total) { resources_[name] = total; }

  /// A look at the GPUs that begins now.
  void see(std::vector<GpuFacts> gpus);
  /// The same cards as last time, seen again now.
  void see_again() { see(seen_); }
  /// `count` idle cards of 24 GiB.
  void see_idle(std::uint32_t count);

  void succeed(std::uint64_t job);
  void fail(std::uint64_t job, FailureClass failure = FailureClass::exit);
  void end(std::uint64_t job, Verdict verdict);
  void revoke(std::uint64_t job);
  Killed kill(std::initializer_list<std::uint64_t> jobs);
  void wait(Millis duration);
  /// The same, and everything that time alone brings about.
  void pass(Millis duration);
  /// A rule of the instance, as `berth set` would.
  void rule(const std::string& key, const std::string& value);
  void queue_rule(const std::string& queue, const std::string& key, const std::string& value);
  void batch_rule(std::uint64_t batch, const std::string& key, const std::string& value);
  /// `berth start`.
  void force(std::uint64_t job);
  void fill_disk(bool low = true);
  /// Continues as long as the State asks for it; how often that was.
  int go_on();

  /// Decides and applies. "1:0 2:1+2 3:-" means: job 1 on GPU 0, then job 2 on GPUs 1 and 2, then
  /// job 3 without any; " ?" at the end: a fresh sample is wanted.
  std::string decide();

  /// The jobs that the last decision displaced, and for whom: "1<3 2<3".
  [[nodiscard]] const std::string& displaced() const { return displaced_; }
  /// Kinds of what the last step wrote into the history: "gives_way started".
  [[nodiscard]] std::string told() const;

  /// Why each queued job waits, by id: "3:queue_limit 4:gpu(claimed,memory)".
  [[nodiscard]] std::string waits() const;
  [[nodiscard]] std::string why(std::uint64_t job) const;
  /// The first reason in words.
  [[nodiscard]] std::string said(std::uint64_t job) const;
  /// "1:running 2:queued": all that are alive, by id.
  [[nodiscard]] std::string alive() const;
  [[nodiscard]] AttemptId attempt_of(std::uint64_t job) const;
  /// What the store knows of a job.
  [[nodiscard]] std::string stored(std::uint64_t job) const;
  /// Kinds of the last step's effects: "start kill forget sample".
  [[nodiscard]] std::string effects() const;

 private:
  void record();

  std::map<std::string, std::uint32_t> limits_;
  std::map<std::string, std::uint64_t> resources_;
  std::vector<GpuFacts> seen_;
  std::string displaced_;
};

/// One row of a policy table. `given` brings the world to the point of the decision.
struct Case {
  const char* name;
  std::function<void(World&)> given;
  std::string starts;
  std::string waits;
};

inline void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

[[nodiscard]] std::vector<JobSpec> copies(std::size_t count, const JobSpec& job);

}  // namespace berth::testing
