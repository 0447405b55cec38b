#include "sim/sim_daemon.hpp"

#include <utility>

#include "engine/part_submission.hpp"

namespace berth::sim {

using Of = Timeline::Of;

SimDaemon::SimDaemon(Timeline& timeline, Random random, Observer& observer, SimStore& store,
                     Machine& machine, Gpus& gpus, Rules rules, HostCapacity host, Plant plant)
    : timeline_(timeline),
      random_(random),
      observer_(observer),
      store_(store),
      machine_(machine),
      gpus_(gpus),
      rules_(std::move(rules)),
      host_(host),
      plant_(plant) {
  machine_.tell_daemon = [this](Event event) { handle(std::move(event)); };
  gpus_.tell_daemon = machine_.tell_daemon;
  gpus_.wanted = [this] { return engine_ && engine_->state().wants_samples(); };
}

void SimDaemon::start() {
  ++life_;
  store_.set_boot_id(machine_.boot_id());
  const Snapshot snapshot = store_.snapshot();
  observer_.restarted(snapshot);
  engine_ = std::make_unique<Engine>(restore(snapshot, rules_, host_, timeline_.now()), store_,
                                     *this, timeline_);
  // The engine is on the stack when it says so; it is taken down a moment later.
  engine_->on_broken = [this](const Error&) {
    timeline_.after(Millis{0}, Of::daemon, [this] { crash(random_.millis(50, 1'000)); });
  };
  machine_.recover(snapshot);
  engine_->repeat_orders();
  gpus_.daemon_started();
  watch_space();
  handle(event::Tick{});
}

void SimDaemon::crash(Millis down) {
  if (!engine_) {
    return;
  }
  observer_.crashed(false);
  engine_.reset();
  timeline_.daemon_died();
  store_.daemon_died();
  machine_.daemon_died();
  gpus_.daemon_died();
  timeline_.after(down, Of::world, [this] { start(); });
}

void SimDaemon::power_cut(Millis down) {
  if (!engine_) {
    return;
  }
  observer_.crashed(true);
  engine_.reset();
  timeline_.daemon_died();
  store_.daemon_died();
  machine_.daemon_died();
  gpus_.daemon_died();
  machine_.power_cut();
  timeline_.rebooted();
  timeline_.after(down, Of::world, [this] { start(); });
}

void SimDaemon::handle(Event event, Engine::Reply reply) {
  if (!engine_) {
    return;
  }
  observer_.handling(event);
  AttemptId leaking;
  if (const auto* exited = std::get_if<event::AttemptExited>(&event);
      exited && plant_ == Plant::leaked_claim && random_.percent(10)) {
    leaking = exited->attempt;
  }
  if (auto* submit = std::get_if<event::Submit>(&event);
      submit && submit->jobs.size() > 1 && random_.percent(30)) {
    // As a large one would arrive.
    const Later later = [this](std::function<void()> task) {
      timeline_.after(random_.millis(0, 20), Of::daemon, std::move(task));
    };
    if (const Status checked = check_submission(submit->jobs); !checked) {
      reply(std::unexpected(checked.error()));
      return;
    }
    submit_in_parts(*engine_, std::move(*submit), later, std::move(reply), 1);
    return;
  }
  engine_->handle(std::move(event), std::move(reply));
  if (leaking && leak_claims(engine_->state(), leaking)) {
    ++struck_;
  }
}

void SimDaemon::run(const Effect& effect) {
  observer_.effect(effect);
  struct Runner {
    SimDaemon& daemon;
    void operator()(const effect::Start& start) {
      daemon.timeline_.after(daemon.random_.millis(1, 15), Of::daemon, [d = &daemon, start] {
        d->machine_.spawn(start, d->store_.spec(start.job));
      });
    }
    void operator()(const effect::Kill& kill) {
      daemon.timeline_.after(daemon.random_.millis(0, 5), Of::daemon,
                             [d = &daemon, kill] { d->machine_.kill(kill.attempt, kill.grace); });
    }
    void operator()(const effect::Pause& pause) {
      daemon.timeline_.after(Millis{1}, Of::daemon,
                             [d = &daemon, pause] { d->machine_.pause(pause.attempt); });
    }
    void operator()(const effect::Resume& resume) {
      daemon.timeline_.after(Millis{1}, Of::daemon,
                             [d = &daemon, resume] { d->machine_.resume(resume.attempt); });
    }
    void operator()(const effect::Forget& forget) {
      daemon.timeline_.after(daemon.random_.millis(0, 50), Of::daemon,
                             [d = &daemon, forget] { d->machine_.forget(forget.attempt); });
    }
    void operator()(const effect::Sample&) { daemon.gpus_.look(); }
    void operator()(const effect::Wake& wake) {
      const Millis now = daemon.timeline_.now().mono;
      daemon.timeline_.after(std::max(wake.at, now) - now, Of::daemon,
                             [d = &daemon] { d->handle(event::Tick{}); });
    }
    void operator()(const effect::Continue&) {
      daemon.timeline_.after(daemon.random_.millis(0, 2), Of::daemon,
                             [d = &daemon] { d->handle(event::Continue{}); });
    }
  };
  std::visit(Runner{*this}, effect);
}

void SimDaemon::watch_space() {
  timeline_.after(Millis{1'000}, Of::daemon, [this] {
    const bool low = store_.disk() != SimStore::Disk::roomy;
    if (engine_->state().low_space != low) {
      handle(event::SpaceChanged{low, low ? "the disk is nearly full" : ""});
    }
    watch_space();
  });
}

}  // namespace berth::sim
