#include "sim/observer.hpp"

namespace berth::sim {

void Observers::moment(Now now) {
  for (Observer* o : all_) {
    o->moment(now);
  }
}
void Observers::handling(const Event& event) {
  for (Observer* o : all_) {
    o->handling(event);
  }
}
void Observers::handed(const Transaction& transaction) {
  for (Observer* o : all_) {
    o->handed(transaction);
  }
}
void Observers::unprepared(AttemptId attempt, const Error& error) {
  for (Observer* o : all_) {
    o->unprepared(attempt, error);
  }
}
void Observers::durable(const Changes& changes) {
  for (Observer* o : all_) {
    o->durable(changes);
  }
}
void Observers::commit_failed(const Error& error) {
  for (Observer* o : all_) {
    o->commit_failed(error);
  }
}
void Observers::effect(const Effect& effect) {
  for (Observer* o : all_) {
    o->effect(effect);
  }
}
void Observers::submit_answered(const event::Submit& submit, const Result<Answer>& answer) {
  for (Observer* o : all_) {
    o->submit_answered(submit, answer);
  }
}
void Observers::kill_answered(const event::Kill& kill, const Result<Answer>& answer) {
  for (Observer* o : all_) {
    o->kill_answered(kill, answer);
  }
}
void Observers::control_answered(const Event& event, const Result<Answer>& answer) {
  for (Observer* o : all_) {
    o->control_answered(event, answer);
  }
}
void Observers::read_answered(const std::vector<Seen>& seen) {
  for (Observer* o : all_) {
    o->read_answered(seen);
  }
}
void Observers::run_started(AttemptId attempt, JobId job) {
  for (Observer* o : all_) {
    o->run_started(attempt, job);
  }
}
void Observers::run_ended(AttemptId attempt, const Verdict& verdict) {
  for (Observer* o : all_) {
    o->run_ended(attempt, verdict);
  }
}
void Observers::run_vanished(AttemptId attempt) {
  for (Observer* o : all_) {
    o->run_vanished(attempt);
  }
}
void Observers::exit_forgotten(AttemptId attempt) {
  for (Observer* o : all_) {
    o->exit_forgotten(attempt);
  }
}
void Observers::crashed(bool machine) {
  for (Observer* o : all_) {
    o->crashed(machine);
  }
}
void Observers::restarted(const Snapshot& snapshot) {
  for (Observer* o : all_) {
    o->restarted(snapshot);
  }
}
void Observers::stepped(const Engine* engine, Now now, bool idle) {
  for (Observer* o : all_) {
    o->stepped(engine, now, idle);
  }
}

}  // namespace berth::sim
