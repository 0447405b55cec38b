#pragma once
// A simulation as text, one line per happening. Equal seeds give equal bytes.

#include <cstdint>
#include <string>

#include "sim/observer.hpp"

namespace berth::sim {

class Trace final : public Observer {
 public:
  enum class Keep : std::uint8_t { hash, text };
  explicit Trace(Keep keep) : keep_(keep) {}

  void moment(Now now) override;
  void handling(const Event& event) override;
  void handed(const Transaction& transaction) override;
  void unprepared(AttemptId attempt, const Error& error) override;
  void durable(const Changes& changes) override;
  void commit_failed(const Error& error) override;
  void effect(const Effect& effect) override;
  void submit_answered(const event::Submit& submit, const Result<Answer>& answer) override;
  void kill_answered(const event::Kill& kill, const Result<Answer>& answer) override;
  void control_answered(const Event& event, const Result<Answer>& answer) override;
  void read_answered(const std::vector<Seen>& seen) override;
  void run_started(AttemptId attempt, JobId job) override;
  void run_ended(AttemptId attempt, const Verdict& verdict) override;
  void run_vanished(AttemptId attempt) override;
  void exit_forgotten(AttemptId attempt) override;
  void crashed(bool machine) override;
  void restarted(const Snapshot& snapshot) override;

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::uint64_t hash() const { return hash_; }

 private:
  void line(const std::string& what);

  Keep keep_;
  Now now_;
  std::string text_;
  std::uint64_t hash_ = 0xCBF29CE484222325U;  // FNV-1a
};

}  // namespace berth::sim
