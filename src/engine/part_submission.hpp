#pragma once
// A submission that goes through the engine in parts, because it is large or because it is still
// arriving. All of its jobs are accepted, or none.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/engine.hpp"

namespace berth {

/// How much of a submission one event carries at most.
inline constexpr std::size_t kPartJobs = 250;

class PartSubmission : public std::enable_shared_from_this<PartSubmission> {
 public:
  /// `reply` is called once, as by Engine::handle, with what became of the whole; after that, and
  /// after abort(), nothing more is called. `ready` is called whenever ready() may have become
  /// true. The engine must outlive the submission.
  static std::shared_ptr<PartSubmission> begin(Engine& engine, event::SubmitBegin head,
                                               Engine::Reply reply, std::function<void()> ready);

  /// Whether the next part may be given: not too many are on their way to the disk.
  [[nodiscard]] bool ready() const { return batch_ && !over_ && under_way_ < kWindow; }
  [[nodiscard]] bool over() const { return over_; }
  /// The next jobs, at most kPartJobs; only when ready().
  void add(std::vector<JobSpec> jobs);
  /// All jobs have been given. Takes effect when all parts have been accepted.
  void end();
  /// Takes back what has arrived; there is no reply. Nothing happens if it is over.
  void abort();

 private:
  static constexpr std::size_t kWindow = 8;

  PartSubmission(Engine& engine, Engine::Reply reply, std::function<void()> ready)
      : engine_(engine), reply_(std::move(reply)), ready_(std::move(ready)) {}
  void begun(Result<Answer> answer);
  void added(const Result<Answer>& answer);
  void end_if_all_are_in();
  void finish(Result<Answer> answer);

  Engine& engine_;
  Engine::Reply reply_;
  std::function<void()> ready_;
  BatchId batch_;
  std::size_t under_way_ = 0;
  bool ending_ = false;
  bool over_ = false;
};

/// What a job counts for in a part. What other submissions' jobs have come to may have to be looked
/// up on disk, so dependencies on them count for more than jobs do.
[[nodiscard]] std::size_t part_weight(const JobSpec& job);

/// Where the part that begins at `first` ends.
[[nodiscard]] std::size_t part_end(const std::vector<JobSpec>& jobs, std::size_t first,
                                   std::size_t most = kPartJobs);

/// Runs a task soon, after whoever else is waiting.
using Later = std::function<void(std::function<void()>)>;

/// Sends a submission that is all there, and has passed check_submission(), in parts.
void submit_in_parts(Engine& engine, event::Submit submit, const Later& later, Engine::Reply reply,
                     std::size_t part_jobs = kPartJobs);

}  // namespace berth
