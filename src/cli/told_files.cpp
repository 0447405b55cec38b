#include "cli/told_files.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <array>
#include <thread>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "base/fd.hpp"
#include "base/time.hpp"
#include "cli/interrupt.hpp"
#include "submit/job_source.hpp"

namespace berth::cli {
namespace {

constexpr Millis kPatience{2'000};
constexpr Millis kBetweenLooks{20};

bool tells_the_end(const std::string& path, std::uint64_t batch) {
  const auto text = read_whole_file(path, "state file");
  boost::system::error_code wrong;
  const auto value = text ? boost::json::parse(*text, wrong) : boost::json::value();
  if (wrong || !value.is_object()) {
    return false;
  }
  const auto* state = value.get_object().if_contains("state");
  const auto* of = value.get_object().if_contains("batch");
  return of != nullptr && *of == batch && state != nullptr && *state != "running";
}

}  // namespace

void wait_until_told(const std::string& state_dir, std::uint64_t pid, std::uint64_t batch) {
  // Two batches of one process have a file each.
  const std::array paths = {fmt::format("{}/state/{}.json", state_dir, pid),
                            fmt::format("{}/state/{}-{}.json", state_dir, pid, batch)};
  const Millis until = read_clock().mono + kPatience;
  const auto rest = [until] {
    std::this_thread::sleep_for(kBetweenLooks);
    return read_clock().mono < until && !interrupted();
  };
  while (!tells_the_end(paths[0], batch) && !tells_the_end(paths[1], batch)) {
    if (!rest()) {
      return;
    }
  }
  // The log is the last to be written, under the same lock.
  const Fd lock(::open((state_dir + "/uni_id.json.lock").c_str(), O_RDONLY | O_CLOEXEC));  // NOLINT
  while (lock && ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && rest()) {
  }
}

}  // namespace berth::cli
