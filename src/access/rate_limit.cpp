#include "access/rate_limit.hpp"

#include <algorithm>

namespace berth {
namespace {

constexpr double kMillisPerSecond = 1'000;

}  // namespace

double RateLimit::level_at(const Bucket& bucket, Millis now) const {
  const auto passed = static_cast<double>((now - bucket.at).count());
  return std::min(settings_.burst, bucket.level + passed * settings_.per_second / kMillisPerSecond);
}

bool RateLimit::take(const std::string& address, Millis now) {
  if (buckets_.size() >= settings_.addresses && !buckets_.contains(address)) {
    forget_full(now);
    if (buckets_.size() >= settings_.addresses) {
      return false;  // so many at once are not visitors
    }
  }
  const auto [at, is_new] = buckets_.try_emplace(address, Bucket{settings_.burst, now});
  Bucket& bucket = at->second;
  bucket.level = level_at(bucket, now);
  bucket.at = now;
  if (bucket.level < 1) {
    return false;
  }
  bucket.level -= 1;
  return true;
}

/// An address with a full bucket is as good as one that has never been here.
void RateLimit::forget_full(Millis now) {
  std::erase_if(buckets_,
                [&](const auto& entry) { return level_at(entry.second, now) >= settings_.burst; });
}

}  // namespace berth
