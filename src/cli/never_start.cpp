#include "cli/never_start.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "api/wire.hpp"
#include "base/time.hpp"
#include "cli/terminal.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t kMostKinds = 48;
constexpr Millis kPatience{1'000};  ///< until the GPUs have been looked at
constexpr Millis kBetweenLooks{50};

std::uint64_t number(const ReasonView& reason, const char* name) {
  const auto found = reason.numbers.find(name);
  return found == reason.numbers.end() ? 0 : found->second;
}

/// Nobody has looked at the cards for it yet.
bool is_unknown(const ReasonView& reason) {
  return reason.kind == "gpu" && reason.names.contains("error");
}

/// None: it does not wait, or cannot be asked about.
std::vector<ReasonView> reasons_of(Daemon& daemon, std::uint64_t job, Millis until) {
  for (;;) {
    auto why = daemon.get<WhyView>(fmt::format("/api/jobs/{}/why", job));
    if (!why) {
      return {};
    }
    if (std::ranges::none_of(why->reasons, is_unknown) || read_clock().mono >= until) {
      return std::move(why->reasons);
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace

std::vector<AlikeJobs> alike(const std::vector<JobSpec>& jobs, std::uint64_t first) {
  std::vector<AlikeJobs> kinds;
  std::size_t last = 0;  // of many jobs most ask for what the one before asks for
  for (std::uint64_t id = first; const JobSpec& job : jobs) {
    const Request& request = job.request;
    const bool asks = request.gpus.min > 0 || request.cpus > 0 || request.memory > 0;
    if (last >= kinds.size() || kinds[last].request != request) {
      const auto same = std::ranges::find(kinds, request, &AlikeJobs::request);
      last = static_cast<std::size_t>(same - kinds.begin());
    }
    if (asks && last == kinds.size() && kinds.size() < kMostKinds) {
      kinds.push_back({request, {}, id});
    }
    if (asks && last < kinds.size()) {
      kinds[last].ids.add(id, id);
    }
    ++id;
  }
  return kinds;
}

bool is_for_ever(const ReasonView& reason) {
  const std::uint64_t asked = number(reason, "asked");
  if (reason.kind == "cpus" || reason.kind == "memory") {
    return asked > number(reason, "total");
  }
  if (reason.kind == "no_gpu") {
    return true;
  }
  if (reason.kind == "quota") {
    const std::uint64_t most = number(reason, "max_gpu");
    return most != 0 && most < asked;
  }
  if (reason.kind != "gpu" || is_unknown(reason)) {
    return false;
  }
  if (!reason.numbers.contains("total")) {
    return true;  // the rules leave it no card
  }
  const auto barred = std::ranges::count_if(reason.gpus, [](const ObstacleView& card) {
    return card.kind == "too_small" || card.kind == "not_allowed" || card.kind == "left";
  });
  return number(reason, "total") < asked + static_cast<std::uint64_t>(barred);
}

void warn_of_stuck_jobs(Daemon& daemon, const std::vector<AlikeJobs>& jobs) {
  const Millis until = read_clock().mono + kPatience;
  for (const AlikeJobs& kind : jobs) {
    const auto reasons = reasons_of(daemon, kind.first, until);
    const auto found = std::ranges::find_if(reasons, is_for_ever);
    if (found != reasons.end()) {
      warn(fmt::format("warning: job{} {} can never start as things are: {}",
                       kind.ids.size() == 1 ? "" : "s", kind.ids.to_string(),
                       printable(found->text)));
    }
  }
}

}  // namespace berth::cli
