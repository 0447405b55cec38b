#include "core/health.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace berth {
namespace {

constexpr std::string_view kLost = "it was lost: ";
constexpr std::string_view kXid = "the driver reported the hardware error XID ";
constexpr std::string_view kEcc = " uncorrectable memory error";
constexpr std::string_view kReported = " reported: ";

}  // namespace

bool is_application_xid(std::uint32_t xid) {
  constexpr std::array<std::uint32_t, 6> kApplication = {13, 31, 43, 45, 68, 109};
  return std::ranges::find(kApplication, xid) != kApplication.end();
}

std::optional<std::string> sickness(const GpuFacts& facts, std::uint64_t ecc_known) {
  if (facts.lost) {
    return std::string(kLost) + facts.trouble;
  }
  for (const std::uint32_t xid : facts.xids) {
    if (!is_application_xid(xid)) {
      return fmt::format("{}{}", kXid, xid);
    }
  }
  if (facts.ecc_uncorrected && *facts.ecc_uncorrected > ecc_known) {
    return fmt::format("{}{}{}", *facts.ecc_uncorrected, kEcc,
                       *facts.ecc_uncorrected == 1 ? "" : "s");
  }
  return std::nullopt;
}

std::string reported_sickness(JobId job, std::string_view what) {
  return fmt::format("job {}{}{}", job.value, kReported, what);
}

bool is_sickness(std::string_view why) {
  return why.starts_with(kLost) || why.starts_with(kXid) ||
         (why.starts_with("job ") && why.contains(kReported)) ||
         (why.contains(kEcc) && why.front() >= '0' && why.front() <= '9');
}

}  // namespace berth
