#include "engine/part_submission.hpp"

#include <iterator>
#include <utility>

#include "base/assert.hpp"

namespace berth {

std::shared_ptr<PartSubmission> PartSubmission::begin(Engine& engine, event::SubmitBegin head,
                                                      Engine::Reply reply,
                                                      std::function<void()> ready) {
  std::shared_ptr<PartSubmission> self(
      new PartSubmission(engine, std::move(reply), std::move(ready)));
  engine.handle(std::move(head), [self](Result<Answer> answer) { self->begun(std::move(answer)); });
  return self;
}

void PartSubmission::begun(Result<Answer> answer) {
  if (over_) {  // aborted before it was known by name
    if (answer && engine_.state().submissions.contains(std::get<Submitted>(*answer).batch)) {
      engine_.handle(event::SubmitAbort{std::get<Submitted>(*answer).batch});
    }
    return;
  }
  if (!answer) {
    return finish(std::move(answer));
  }
  const auto& submitted = std::get<Submitted>(*answer);
  if (!engine_.state().submissions.contains(submitted.batch)) {
    return finish(std::move(answer));  // the same was accepted before
  }
  batch_ = submitted.batch;
  ready_();
}

void PartSubmission::add(std::vector<JobSpec> jobs) {
  BERTH_ASSERT(ready());
  ++under_way_;
  engine_.handle(
      event::SubmitPart{batch_, std::move(jobs), {}},
      [self = shared_from_this()](const Result<Answer>& answer) { self->added(answer); });
}

void PartSubmission::added(const Result<Answer>& answer) {
  --under_way_;
  if (over_) {
    return;
  }
  if (!answer) {
    engine_.handle(event::SubmitAbort{batch_});
    return finish(std::unexpected(answer.error()));
  }
  if (ending_) {
    return end_if_all_are_in();
  }
  ready_();
}

void PartSubmission::end() {
  BERTH_ASSERT(batch_ && !ending_);
  ending_ = true;
  end_if_all_are_in();
}

void PartSubmission::end_if_all_are_in() {
  // A part may still be refused, and with it all that came before.
  if (over_ || under_way_ > 0) {
    return;
  }
  engine_.handle(event::SubmitEnd{batch_}, [self = shared_from_this()](Result<Answer> answer) {
    if (!answer && !self->over_) {
      self->engine_.handle(event::SubmitAbort{self->batch_});
    }
    self->finish(std::move(answer));
  });
}

void PartSubmission::abort() {
  if (std::exchange(over_, true)) {
    return;
  }
  if (batch_) {
    engine_.handle(event::SubmitAbort{batch_});
  }
}

void PartSubmission::finish(Result<Answer> answer) {
  if (!std::exchange(over_, true)) {
    reply_(std::move(answer));
  }
}

std::size_t part_weight(const JobSpec& job) {
  constexpr std::size_t kDependency = 8;
  return 1 + kDependency * job.after.size();
}

std::size_t part_end(const std::vector<JobSpec>& jobs, std::size_t first, std::size_t most) {
  std::size_t weight = 0;
  std::size_t end = first;
  while (end < jobs.size() && weight < most) {
    weight += part_weight(jobs[end++]);
  }
  return end;
}

namespace {

/// A submission in memory, and how far it has been sent.
class Source {
 public:
  Source(std::vector<JobSpec> jobs, Later later, std::size_t part_jobs)
      : jobs_(std::move(jobs)), later_(std::move(later)), part_jobs_(part_jobs) {}

  std::weak_ptr<PartSubmission> target;  ///< which owns this

  /// Gives one part and comes back for the next, so that others have their turn in between.
  void go_on() {
    const auto submission = target.lock();
    if (!submission || coming_back_ || submission->over()) {
      return;
    }
    if (sent_ == jobs_.size()) {
      if (!std::exchange(ended_, true)) {
        submission->end();
      }
      return;
    }
    if (!submission->ready()) {
      return;
    }
    const std::size_t end = part_end(jobs_, sent_, part_jobs_);
    const auto at = [this](std::size_t i) {
      return std::make_move_iterator(jobs_.begin() + static_cast<std::ptrdiff_t>(i));
    };
    std::vector<JobSpec> part(at(sent_), at(end));
    sent_ = end;
    submission->add(std::move(part));
    coming_back_ = true;
    later_([this, submission] {
      coming_back_ = false;
      go_on();
    });
  }

 private:
  std::vector<JobSpec> jobs_;
  Later later_;
  std::size_t part_jobs_;
  std::size_t sent_ = 0;
  bool coming_back_ = false;
  bool ended_ = false;
};

}  // namespace

void submit_in_parts(Engine& engine, event::Submit submit, const Later& later, Engine::Reply reply,
                     std::size_t part_jobs) {
  event::SubmitBegin head;
  head.client_key = std::move(submit.client_key);
  head.owner = submit.owner;
  head.batch_name = std::move(submit.batch_name);
  head.batch_max_concurrent = submit.batch_max_concurrent;
  head.batch_rules = std::move(submit.batch_rules);
  head.traits = std::move(submit.traits);
  head.queues = std::move(submit.queues);
  head.resources = std::move(submit.resources);
  head.count = submit.jobs.size();
  const auto source = std::make_shared<Source>(std::move(submit.jobs), later, part_jobs);
  const auto submission = PartSubmission::begin(engine, std::move(head), std::move(reply),
                                                [source] { source->go_on(); });
  source->target = submission;
  source->go_on();
}

}  // namespace berth
