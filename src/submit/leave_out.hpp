#pragma once
// Running a job file again: what has succeeded before is left out.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/views.hpp"
#include "jobspec/job_file.hpp"

namespace berth {

struct LeftOut {
  struct One {
    std::size_t index = 0;   ///< in the file as it was
    std::uint64_t job = 0;   ///< the one that is the same
    bool succeeded = false;  ///< else it waits or runs

    friend bool operator==(const One&, const One&) = default;
  };
  std::size_t succeeded = 0;
  std::size_t alive = 0;  ///< wait or run already
  std::vector<One> jobs;  ///< each of them, in order

  friend bool operator==(const LeftOut&, const LeftOut&) = default;
};

/// What there is to know of each job of the file, in order.
[[nodiscard]] std::vector<DoneQuestion> questions_of(const JobFile& file);

/// Takes the jobs out of `file` that have succeeded and whose log `is_there`, and those that have
/// not ended. What follows the former waits for them no longer; what follows the latter waits for
/// those that are there already. A job that another waits to see failing stays.
/// `known`: of each job, in order.
LeftOut leave_out(JobFile& file, const std::vector<DoneView>& known,
                  const std::function<bool(const std::string&)>& is_there);

}  // namespace berth
