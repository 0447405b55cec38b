#include "handshake_model.hpp"

#include <algorithm>
#include <deque>
#include <unordered_map>

namespace berth::model {
namespace {

void append(Attempt& attempt, Content what) {
  if (!attempt.file) {
    return;  // unlinked: the bytes go where nobody looks
  }
  if (what == Content::start) {
    attempt.content = attempt.content == Content::empty ? Content::start : Content::mixed;
  } else if (what == Content::start_exit) {
    attempt.content = attempt.content == Content::start ? Content::start_exit : attempt.content;
  } else {
    attempt.content = attempt.content == Content::empty ? Content::revoked : Content::mixed;
  }
}

/// All steps of one state, collected.
class Stepper {
 public:
  Stepper(const State& state, const Guards& guards) : from_(state), guards_(guards) {}

  std::vector<Step> run() {
    daemon_steps();
    for (std::size_t i = 0; i < kAttemptsMax; ++i) {
      shim_steps(i);
      child_steps(i);
    }
    failures();
    return std::move(steps_);
  }

 private:
  template <class Change>
  void add(std::string name, bool crash, Change change) {
    Step step{std::move(name), crash, from_};
    change(step.next);
    steps_.push_back(std::move(step));
  }
  void daemon(const std::string& name, const std::function<void(State&, Attempt&)>& change) {
    add("daemon: " + name, false, [&](State& s) { change(s, s.attempts[s.current]); });
  }

  static void decide(State& s, Db outcome) {
    s.outcome = outcome;
    s.daemon = DaemonStep::commit_end;
  }
  void give_up(State& s) const {
    if (guards_.survivors_are_ended) {
      s.daemon = DaemonStep::end_survivors;
    } else {
      decide(s, Db::lost);
    }
  }

  void daemon_steps() {
    switch (from_.daemon) {
      case DaemonStep::dead:
        add("daemon: restart", false, [](State& s) {
          s.daemon = DaemonStep::recover;
          s.outcome = Db::none;
          s.current = 0;
        });
        break;
      case DaemonStep::recover:
        recover();
        break;
      case DaemonStep::settle:
        settle();
        break;
      case DaemonStep::append_revoked:
        daemon("append REVOKED", [](State& s, Attempt& a) {
          append(a, Content::revoked);
          decide(s, Db::revoked);
        });
        break;
      case DaemonStep::end_survivors:
        daemon("end survivors", [](State& s, Attempt& a) {
          // Found by their environment, which a child before exec does not have yet.
          if (a.child == ChildStep::alive) {
            a.child = ChildStep::dead;
          }
          decide(s, Db::lost);
        });
        break;
      case DaemonStep::commit_end:
        commit_end();
        break;
      case DaemonStep::forget:
        daemon("unlink record", [this](State& s, Attempt& a) {
          a.file = false;
          a.content = Content::empty;
          s.daemon = guards_.commit_before_forget ? DaemonStep::idle : DaemonStep::commit_end;
        });
        break;
      case DaemonStep::idle:
        if (from_.job_queued != 0 && from_.next < kAttemptsMax) {
          daemon("decide to start", [this](State& s, Attempt&) {
            s.current = s.next++;
            s.daemon =
                guards_.record_before_commit ? DaemonStep::prepare : DaemonStep::commit_start;
          });
        }
        break;
      case DaemonStep::prepare:
        daemon("create and lock record", [this](State& s, Attempt& a) {
          a.file = true;
          a.lock_daemon = true;
          if (!guards_.record_before_commit) {
            s.daemon = DaemonStep::spawn;
          } else {
            s.daemon = guards_.commit_before_spawn ? DaemonStep::commit_start : DaemonStep::spawn;
          }
        });
        break;
      case DaemonStep::commit_start:
        daemon("commit starting", [this](State& s, Attempt& a) {
          a.db = Db::starting;
          a.same_boot = true;
          s.job_queued = 0;
          if (!guards_.record_before_commit) {
            s.daemon = DaemonStep::prepare;
          } else {
            s.daemon = guards_.commit_before_spawn ? DaemonStep::spawn : DaemonStep::close_record;
          }
        });
        break;
      case DaemonStep::spawn:
        daemon("spawn", [this](State& s, Attempt& a) {
          a.shim = ShimStep::born;
          a.lock_shim = guards_.lock_inherited;
          s.daemon =
              guards_.commit_before_spawn ? DaemonStep::close_record : DaemonStep::commit_start;
        });
        break;
      case DaemonStep::close_record:
        daemon("close its copy of the record", [](State& s, Attempt& a) {
          a.lock_daemon = false;
          s.daemon = DaemonStep::watch;
        });
        break;
      case DaemonStep::watch:
        watch();
        break;
    }
  }

  void recover() {
    for (std::size_t i = 0; i < kAttemptsMax; ++i) {
      if (from_.attempts[i].db == Db::starting) {
        add("daemon: inspect", false, [&](State& s) {
          s.current = static_cast<std::uint8_t>(i);
          inspect(s, s.attempts[i]);
        });
        return;
      }
    }
    add("daemon: recovered", false, [](State& s) {
      // Records the store has never heard of were never spawned; ids go on above all of them.
      s.next = 0;
      for (std::size_t i = 0; i < kAttemptsMax; ++i) {
        if (s.attempts[i].db != Db::none || s.attempts[i].file) {
          s.next = static_cast<std::uint8_t>(i + 1);
        }
        s.attempts[i].file = s.attempts[i].file && s.attempts[i].shim_alive();
        if (!s.attempts[i].file) {
          s.attempts[i].content = Content::empty;
        }
      }
      s.daemon = DaemonStep::idle;
    });
  }

  void inspect(State& s, const Attempt& a) const {
    if (!a.file) {
      if (guards_.missing_is_lost) {
        give_up(s);
      } else {
        decide(s, Db::revoked);
      }
      return;
    }
    if (guards_.boot_is_checked && !a.same_boot) {
      decide(s, a.content == Content::start_exit ? Db::ended
                : a.content == Content::revoked  ? Db::revoked
                                                 : Db::lost);
      return;
    }
    if (!guards_.recovery_takes_lock) {
      s.daemon =
          a.shim_alive() && a.content != Content::empty ? DaemonStep::watch : DaemonStep::settle;
      return;
    }
    if (!a.locked()) {
      s.attempts[s.current].lock_daemon = true;
      s.daemon = DaemonStep::settle;
    } else if (a.content != Content::empty && a.shim_alive()) {
      s.daemon = DaemonStep::watch;  // adopted
    }
    // Otherwise it is being born, or a child is on the way to exec: asked again.
  }

  void settle() {
    daemon("look into the record", [this](State& s, Attempt& a) {
      switch (a.content) {
        case Content::start_exit:
          decide(s, Db::ended);
          break;
        case Content::revoked:
        case Content::mixed:
          decide(s, Db::revoked);
          break;
        case Content::start:
          give_up(s);
          break;
        case Content::empty:
          s.daemon = DaemonStep::append_revoked;
          break;
      }
    });
  }

  void watch() {
    if (from_.attempts[from_.current].shim_alive()) {
      return;
    }
    if (!from_.attempts[from_.current].file) {
      daemon("collect, record missing", [this](State& s, Attempt&) { give_up(s); });
    } else if (from_.attempts[from_.current].content == Content::start_exit) {
      daemon("collect a verdict", [this](State& s, Attempt&) {
        decide(s, Db::ended);
        if (!guards_.commit_before_forget) {
          s.daemon = DaemonStep::forget;
        }
      });
    } else if (!from_.attempts[from_.current].locked() || !guards_.recovery_takes_lock) {
      daemon("collect without a verdict", [](State& s, Attempt& a) {
        a.lock_daemon = true;
        s.daemon = DaemonStep::settle;
      });
    }
  }

  void commit_end() {
    daemon("commit the end", [this](State& s, Attempt& a) {
      a.db = s.outcome;
      a.lock_daemon = false;
      s.job_queued = s.outcome == Db::revoked ? 1 : 0;
      s.job_terminal = s.outcome == Db::revoked ? 0 : 1;
      s.outcome = Db::none;
      s.daemon = a.file && guards_.commit_before_forget ? DaemonStep::forget : DaemonStep::idle;
      // After a recovery the counter comes from what is durable or on disk.
      s.next = std::max(s.next, static_cast<std::uint8_t>(s.current + 1));
    });
  }

  void shim_steps(std::size_t i) {
    const Attempt& a = from_.attempts[i];
    const auto shim = [&](const char* name, const std::function<void(Attempt&)>& change) {
      add("shim " + std::to_string(i) + ": " + name, false,
          [&](State& s) { change(s.attempts[i]); });
    };
    const auto launch = [this](Attempt& x) {
      x.child = ChildStep::before_exec;
      x.lock_child = guards_.lock_inherited && guards_.child_keeps_lock;
    };
    switch (a.shim) {
      case ShimStep::none:
      case ShimStep::gone:
        break;
      case ShimStep::born:
        shim("see whether the record is empty", [](Attempt& x) {
          x.shim = x.content == Content::empty ? ShimStep::checked : ShimStep::gone;
          x.lock_shim = x.lock_shim && x.shim != ShimStep::gone;
        });
        break;
      case ShimStep::checked:
        if (guards_.start_before_run) {
          shim("append START", [](Attempt& x) {
            append(x, Content::start);
            x.shim = ShimStep::started;
          });
        } else {
          shim("fork", [&](Attempt& x) {
            launch(x);
            x.shim = ShimStep::started;
          });
        }
        break;
      case ShimStep::started:
        if (guards_.start_before_run) {
          shim("fork", [&](Attempt& x) {
            launch(x);
            x.shim = ShimStep::launched;
          });
        } else {
          shim("append START", [](Attempt& x) {
            append(x, Content::start);
            x.shim = ShimStep::launched;
          });
        }
        break;
      case ShimStep::launched:
        if (a.child == ChildStep::dead) {
          shim("reap", [](Attempt& x) { x.shim = ShimStep::ended; });
        }
        break;
      case ShimStep::ended:
        shim("append EXIT", [this](Attempt& x) {
          append(x, Content::start_exit);
          x.exit_written = true;
          // Synced only when no daemon listens.
          x.file_durable = x.file_durable || from_.daemon == DaemonStep::dead;
          x.shim = ShimStep::recorded;
        });
        break;
      case ShimStep::recorded:
        shim("end", [](Attempt& x) {
          x.shim = ShimStep::gone;
          x.lock_shim = false;
        });
        break;
    }
  }

  void child_steps(std::size_t i) {
    const ChildStep child = from_.attempts[i].child;
    if (child == ChildStep::before_exec) {
      add("child " + std::to_string(i) + ": exec", false, [i](State& s) {
        Attempt& x = s.attempts[i];
        x.child = ChildStep::alive;
        x.lock_child = false;
        ++x.runs;
      });
    } else if (child == ChildStep::alive) {
      add("child " + std::to_string(i) + ": end", false,
          [i](State& s) { s.attempts[i].child = ChildStep::dead; });
    }
  }

  void failures() {
    if (from_.daemon != DaemonStep::dead) {
      add("daemon: CRASH", true, kill_daemon);
    }
    for (std::size_t i = 0; i < kAttemptsMax; ++i) {
      if (from_.attempts[i].shim_alive()) {
        add("shim " + std::to_string(i) + ": CRASH", true, [i](State& s) {
          Attempt& x = s.attempts[i];
          x.shim = ShimStep::gone;
          x.lock_shim = false;
          x.shim_crashed = true;
        });
      }
    }
    // Each record survives a power cut whole, as a shorter one, or not at all.
    cut_power(0, from_, "POWER CUT");
  }

  static void kill_daemon(State& s) {
    s.daemon = DaemonStep::dead;
    s.current = 0;
    s.next = 0;
    s.outcome = Db::none;
    for (Attempt& x : s.attempts) {
      x.lock_daemon = false;
    }
  }

  void cut_power(std::size_t i, State so_far, const std::string& name) {
    if (i == kAttemptsMax) {
      kill_daemon(so_far);
      steps_.push_back({name, true, so_far});
      return;
    }
    Attempt& x = so_far.attempts[i];
    x.same_boot = false;
    x.lock_shim = x.lock_child = false;
    if (x.shim_alive()) {
      x.shim = ShimStep::gone;
    }
    if (x.child == ChildStep::before_exec || x.child == ChildStep::alive) {
      x.child = ChildStep::dead;
    }
    x.power_lost = x.power_lost || x.db == Db::starting;
    cut_power(i + 1, so_far, name);
    if (!x.file || x.file_durable) {
      return;
    }
    const Content full = x.content;
    for (const Content shorter : {Content::empty, Content::start}) {
      if (full != shorter && (shorter == Content::empty || full == Content::start_exit)) {
        x.content = shorter;
        cut_power(i + 1, so_far, name + ", record " + std::to_string(i) + " shortened");
      }
    }
    x.content = Content::empty;
    x.file = false;
    cut_power(i + 1, so_far, name + ", record " + std::to_string(i) + " missing");
  }

  const State& from_;
  const Guards& guards_;
  std::vector<Step> steps_;
};

bool settled(const State& s) {
  const bool out_of_ids =
      s.job_queued != 0 && s.daemon == DaemonStep::idle && s.next == kAttemptsMax;
  return s.job_terminal != 0 || out_of_ids;
}

}  // namespace

std::string State::key() const {
  std::string key;
  const auto put = [&key](auto value) { key.push_back(static_cast<char>(value)); };
  for (const Attempt& a : attempts) {
    put(a.db);
    put(a.content);
    put(a.shim);
    put(a.child);
    put(a.runs);
    put(a.same_boot + 2 * a.file + 4 * a.file_durable + 8 * a.lock_daemon + 16 * a.lock_shim +
        32 * a.lock_child);
    put(a.exit_written + 2 * a.shim_crashed + 4 * a.power_lost);
  }
  put(daemon);
  put(current);
  put(next);
  put(outcome);
  put(job_queued);
  put(job_terminal);
  return key;
}

std::vector<Step> steps(const State& state, const Guards& guards) {
  return Stepper(state, guards).run();
}

std::string violation(const State& before, const Step& step) {
  const State& now = step.next;
  unsigned runs = 0;
  for (std::size_t i = 0; i < kAttemptsMax; ++i) {
    const Attempt& was = before.attempts[i];
    const Attempt& is = now.attempts[i];
    runs += is.runs;
    if (is.content == Content::mixed) {
      return "START and REVOKED in one record";
    }
    if (was.db != Db::none && is.db == Db::starting && was.db != Db::starting) {
      return "an attempt id was used again";
    }
    const bool over = is.db == Db::ended || is.db == Db::lost || is.db == Db::revoked;
    if (over && (is.child == ChildStep::alive || is.child == ChildStep::before_exec)) {
      return "a process of an attempt outlives its end";
    }
    if (is.db == Db::lost && was.db != Db::lost) {
      if (is.exit_written && !is.power_lost) {
        return "an exit code was lost";
      }
      if (!is.shim_crashed && !is.power_lost) {
        return "a crash of the daemon alone cost the job its attempt";
      }
    }
  }
  if (runs > 1) {
    return "the command ran twice";
  }
  if (now.job_queued == 0 && now.job_terminal == 0) {
    const bool open =
        std::ranges::any_of(now.attempts, [](const Attempt& a) { return a.db == Db::starting; });
    if (!open) {
      return "the job is neither waiting, nor running, nor over";
    }
  }
  return {};
}

Exploration explore(const Guards& guards) {
  struct Node {
    State state;
    std::size_t parent;
    std::string by;
    std::vector<std::size_t> progress_from;  ///< predecessors by steps that are not failures
  };
  Exploration result;
  std::vector<Node> nodes;
  std::unordered_map<std::string, std::size_t> index;
  const auto trace_to = [&nodes](std::size_t at) {
    std::vector<std::string> names;
    for (; at != 0; at = nodes[at].parent) {
      names.push_back(nodes[at].by);
    }
    std::ranges::reverse(names);
    return names;
  };

  nodes.push_back({State{}, 0, {}, {}});
  index.emplace(nodes[0].state.key(), 0);
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    const State state = nodes[at].state;
    for (Step& step : steps(state, guards)) {
      ++result.transitions;
      if (std::string wrong = violation(state, step); !wrong.empty()) {
        result.states = nodes.size();
        result.violation = std::move(wrong);
        result.trace = trace_to(at);
        result.trace.push_back(step.name);
        return result;
      }
      const auto [found, fresh] = index.emplace(step.next.key(), nodes.size());
      if (fresh) {
        nodes.push_back({step.next, at, step.name, {}});
      }
      if (!step.crash) {
        nodes[found->second].progress_from.push_back(at);
      }
    }
  }
  result.states = nodes.size();

  // Backwards from every settled state, along progress alone.
  std::vector<bool> hopeful(nodes.size(), false);
  std::deque<std::size_t> open;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (settled(nodes[i].state)) {
      hopeful[i] = true;
      open.push_back(i);
    }
  }
  for (; !open.empty(); open.pop_front()) {
    for (const std::size_t before : nodes[open.front()].progress_from) {
      if (!hopeful[before]) {
        hopeful[before] = true;
        open.push_back(before);
      }
    }
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!hopeful[i]) {
      result.violation = "the job can no longer come to an end";
      result.trace = trace_to(i);
      break;
    }
  }
  return result;
}

}  // namespace berth::model
