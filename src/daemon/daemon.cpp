#include "daemon/daemon.hpp"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "daemon/daemon_impl.hpp"
#include "daemon/log.hpp"
#include "daemon/machine.hpp"
#include "gpu/host_facts.hpp"
#include "submit/submission.hpp"

namespace berth {
namespace {

constexpr Millis kSpaceCheck{5'000};
constexpr Millis kLookAwaited{1'000};      ///< by those to whom an older one can be told
constexpr Millis kFailedLookAwaited{250};  ///< the same, where the one before has failed

}  // namespace

void complain_about_settings(const std::string& problem) {
  spdlog::warn("event=settings_problem what={}", log_value(problem));
}

void Daemon::Impl::emit(Event event) {
  if (stopping) {
    return;  // the next daemon finds it again
  }
  log_event(event);
  const bool ended = std::holds_alternative<event::AttemptExited>(event);
  const bool sampled = std::holds_alternative<event::Sampled>(event);
  engine->handle(std::move(event));
  if (sampled) {
    service->on_sampled();
  }
  if (sampled && board) {
    board->claims_changed();
    board->sampled();
  }
  if (ended) {
    keeper->job_ended();
  }
}

void Daemon::Impl::log_event(const Event& event) {
  if (const auto* exited = std::get_if<event::AttemptExited>(&event)) {
    const Verdict& verdict = exited->verdict;
    const auto attempt = engine->state().attempts.find(exited->attempt);
    spdlog::info("event=exited attempt={} job={} class={} code={} message={}",
                 exited->attempt.value,
                 attempt == engine->state().attempts.end() ? 0 : attempt->second.job.value,
                 verdict.failure ? to_string(*verdict.failure) : "ok",
                 verdict.exit_code.value_or(-1), log_value(verdict.message));
  } else if (const auto* failed = std::get_if<event::ProbeFailed>(&event)) {
    if (engine->state().probe_error != failed->why) {
      spdlog::warn("event=probe_failed why={}", log_value(failed->why));
    }
  } else if (const auto* space = std::get_if<event::SpaceChanged>(&event)) {
    spdlog::warn("event=space low={} detail={}", space->low, log_value(space->detail));
  }
}

void Daemon::Impl::find_papers(AttemptId id, std::function<void(EvidencePlaces)> then) {
  constexpr std::size_t kKept = 10'000;
  EvidencePlaces papers;
  const auto attempt = engine->state().attempts.find(id);
  if (attempt == engine->state().attempts.end()) {
    then(std::move(papers));
    return;
  }
  const JobId job = attempt->second.job;
  papers.report = report_path(paths.logs, job.value, attempt->second.number);
  papers.uni_id = attempt_marker(store->instance_id(), id);
  const BatchId batch = engine->state().jobs.at(job).batch;
  const auto known = state_files.find(batch);
  if (!batch || known != state_files.end()) {
    papers.state_file = batch ? known->second : std::string();
    then(std::move(papers));
    return;
  }
  readers->post([this, batch, papers = std::move(papers), then = std::move(then)]() mutable {
    const auto found = traits->traits(batch);
    const bool has = found && *found && has_state_files(**found);
    papers.state_file = has ? uni_id_file((*found)->state_dir) : std::string();
    loop.post([this, batch, papers = std::move(papers), then = std::move(then)]() mutable {
      if (state_files.size() >= kKept) {
        state_files.clear();
      }
      state_files[batch] = papers.state_file;
      then(std::move(papers));
    });
  });
}

void Daemon::Impl::wake(Millis at) {
  alarm = loop.after(std::max(at - read_clock().mono, Millis{0}), [this] { emit(event::Tick{}); });
}

void Daemon::Impl::sample() {
  if (gpus.none) {
    loop.post([this] {
      emit(event::Sampled{GpuSample{read_clock().mono, {}, "none", read_host_available()}});
      look_at_host_again();
    });
  } else {
    prober->request();
  }
}

/// Without cards there is no prober that would look again by itself.
void Daemon::Impl::look_at_host_again() {
  host_look = loop.after(ProberConfig{}.period, [this] {
    if (!stopping && engine->state().wants_samples()) {
      sample();
    } else {
      look_at_host_again();
    }
  });
}

/// A driver that hangs keeps nobody waiting who can be told what is known: the look goes on.
void Daemon::Impl::after_fresh_look(std::function<void()> then) {
  if (gpus.none) {
    then();
    return;
  }
  struct Awaited {
    std::function<void()> then;
    Loop::Handle limit;

    void end() {
      limit.reset();
      if (const auto told = std::exchange(then, nullptr)) {
        told();
      }
    }
  };
  const auto waiting = std::make_shared<Awaited>(Awaited{std::move(then), {}});
  const State& state = engine->state();
  const bool failed = !state.probe_error.empty();
  if (state.seen || failed) {
    waiting->limit = loop.after(failed ? kFailedLookAwaited : kLookAwaited,
                                [weak = std::weak_ptr<Awaited>(waiting)] {
                                  if (const auto held = weak.lock()) {
                                    held->end();
                                  }
                                });
  }
  prober->after_fresh([waiting] { waiting->end(); });
}

void Daemon::Impl::open_board() {
  if (gpus.none) {
    return;
  }
  BoardChoice choice = choose_board(gpus.simulated, store->instance_id(), this_boot());
  if (!choice.board) {
    if (!choice.problem.empty()) {
      spdlog::warn("event=no_board why={}", log_value(choice.problem));
    }
    return;
  }
  BoardWatch::Hooks hooks;
  hooks.emit = [this](Event event) { emit(std::move(event)); };
  hooks.state = [this]() -> const State& { return engine->state(); };
  hooks.warn = [](const std::string& problem) {
    spdlog::warn("event=board_problem why={}", log_value(problem));
  };
  board = std::make_unique<BoardWatch>(loop, std::move(choice.board), std::move(hooks));
  board->begin();
}

void Daemon::Impl::watch_space() {
  if (stopping) {
    return;
  }
  space_timer = loop.after(kSpaceCheck, [this] {
    store->check_space([this](const SpaceReport& report) {
      if (report.low != engine->state().low_space) {
        emit(event::SpaceChanged{report.low, report.detail});
      }
      watch_space();
    });
  });
}

void Daemon::Impl::apply_settings(const Settings::Values& values, std::function<void()> then) {
  if (stopping) {
    return;
  }
  door->configure(settings->settings().listen);
  event::SetRules event{values};
  event.layer = event::SetRules::Layer::file;
  engine->handle(std::move(event), [then = std::move(then)](const Result<Answer>& answer) {
    if (answer) {
      spdlog::info("event=settings_read");
    } else {
      complain_about_settings(answer.error().message);
    }
    then();
  });
}

void Daemon::Impl::answer(HttpRequest request, Respond respond) {
  loop.timed([&] {
    if (!Door::serve_console(request, respond)) {
      service->handle(std::move(request), std::move(respond));
    }
  });
}

void Daemon::Impl::stop(std::string_view why) {
  if (std::exchange(stopping, true)) {
    return;
  }
  spdlog::info("event=stopping why={} running={}", log_value(why), engine->state().running);
  server->stop();
  door->stop();
  service->close();
  keeper->stop();
  // One more turn for answers on their way out, then the end; what is not durable was not answered.
  engine->read([](const State&) { return 0; },
               [this](int) { stop_timer = loop.after(Millis(20), [this] { loop.stop(); }); });
}

Daemon::Daemon(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Daemon::~Daemon() = default;

const std::optional<RestoreRequest>& Daemon::to_restore() const {
  return impl_->to_restore;
}

int Daemon::run() {
  ::malloc_trim(0);  // reading the store took twice what is kept of it
  // The first look, and whatever can start without one; on a full disk nothing may.
  impl_->store->check_space([this](const SpaceReport& report) {
    if (report.low) {
      impl_->emit(event::SpaceChanged{report.low, report.detail});
    }
    impl_->sample();
    // The rules hold already, but for those of queues that nobody has used yet.
    impl_->apply_settings(impl_->settings->settings().values, [] {});
    impl_->settings->start();
    impl_->emit(event::Tick{});
    impl_->keeper->start();
  });
  impl_->loop.run();
  if (impl_->exit_code == 0) {
    std::error_code ignored;
    std::filesystem::remove(impl_->paths.socket, ignored);
    if (!impl_->cgroup.empty()) {
      ::rmdir(impl_->cgroup.c_str());  // stays while a job runs in it
    }
    spdlog::info("event=stopped");
  }
  return impl_->exit_code;
}

}  // namespace berth
