#include "submit/leave_out.hpp"

#include <utility>

namespace berth {
namespace {

constexpr std::uint32_t kGone = UINT32_MAX;

/// Dependencies by their new places; on what is gone, none, or the job that is there already.
void redirect(JobSpec& job, const std::vector<std::uint32_t>& places,
              const std::vector<DoneView>& known) {
  std::vector<std::uint32_t> kept;
  for (const std::uint32_t needed : job.after_index) {
    if (places[needed] != kGone) {
      kept.push_back(places[needed]);
    } else if (known[needed].alive != 0) {
      job.after.push_back(JobId{known[needed].alive});
    }
  }
  job.after_index = std::move(kept);
}

}  // namespace

std::vector<DoneQuestion> questions_of(const JobFile& file) {
  std::vector<DoneQuestion> questions;
  questions.reserve(file.jobs.size());
  for (const JobSpec& job : file.jobs) {
    questions.push_back({job.payload.fingerprint, job.name});
  }
  return questions;
}

LeftOut leave_out(JobFile& file, const std::vector<DoneView>& known,
                  const std::function<bool(const std::string&)>& is_there) {
  std::vector<bool> watched(file.jobs.size());
  for (const JobSpec& job : file.jobs) {
    for (const std::uint32_t needed : job.after_index) {
      watched[needed] = watched[needed] || job.after_kind == After::failed;
    }
  }
  LeftOut out;
  std::vector<std::uint32_t> places(file.jobs.size(), kGone);
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < file.jobs.size(); ++i) {
    const bool alive = known[i].alive != 0;
    const bool done = known[i].succeeded != 0 && !watched[i] && is_there(known[i].log);
    if (alive || done) {
      (alive ? out.alive : out.succeeded) += 1;
      out.jobs.push_back({i, alive ? known[i].alive : known[i].succeeded, !alive});
    } else {
      places[i] = next++;
    }
  }
  std::vector<JobSpec> left;
  left.reserve(next);
  for (std::size_t i = 0; i < file.jobs.size(); ++i) {
    if (places[i] != kGone) {
      redirect(file.jobs[i], places, known);
      left.push_back(std::move(file.jobs[i]));
    }
  }
  file.jobs = std::move(left);
  return out;
}

}  // namespace berth
