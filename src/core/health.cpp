#include "core/health.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace berth {

bool is_application_xid(std::uint32_t xid) {
  constexpr std::array<std::uint32_t, 6> kApplication = {13, 31, 43, 45, 68, 109};
  return std::ranges::find(kApplication, xid) != kApplication.end();
}

std::optional<std::string> sickness(const GpuFacts& facts, std::uint64_t ecc_known) {
  if (facts.lost) {
    return "it was lost: " + facts.trouble;
  }
  for (const std::uint32_t xid : facts.xids) {
    if (!is_application_xid(xid)) {
      return fmt::format("the driver reported the hardware error XID {}", xid);
    }
  }
  if (facts.ecc_uncorrected && *facts.ecc_uncorrected > ecc_known) {
    return fmt::format("{} uncorrectable memory error{}", *facts.ecc_uncorrected,
                       *facts.ecc_uncorrected == 1 ? "" : "s");
  }
  return std::nullopt;
}

}  // namespace berth
