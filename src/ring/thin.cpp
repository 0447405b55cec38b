#include <algorithm>

#include "ring/sample.hpp"

namespace berth {
namespace {

/// Of those that are known.
template <class T>
class Mean {
 public:
  void add(const std::optional<T>& value) {
    if (value) {
      sum_ += static_cast<double>(*value);
      ++count_;
    }
  }
  [[nodiscard]] std::optional<T> value() const {
    constexpr double kHalf = 0.5;
    return count_ == 0 ? std::nullopt
                       : std::optional(static_cast<T>(sum_ / static_cast<double>(count_) + kHalf));
  }

 private:
  double sum_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace

std::uint64_t ring_key(std::string_view name) {
  // FNV-1a: short names, spread over 64 bits.
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return hash;
}

RingSample mean(const std::vector<RingSample>& samples) {
  RingSample out;
  out.key = samples.front().key;
  Mean<Bytes> memory;
  Mean<std::uint32_t> utilization;
  Mean<std::uint32_t> temperature;
  Mean<std::uint32_t> power;
  const Millis first = samples.front().time;
  std::int64_t since = 0;
  for (const RingSample& sample : samples) {
    since += (sample.time - first).count();
    memory.add(sample.memory);
    utilization.add(sample.utilization);
    temperature.add(sample.temperature);
    power.add(sample.power_mw);
  }
  out.time = first + Millis(since / static_cast<std::int64_t>(samples.size()));
  out.memory = memory.value();
  out.utilization = utilization.value();
  out.temperature = temperature.value();
  out.power_mw = power.value();
  return out;
}

std::vector<RingSample> thin_out(const std::vector<RingSample>& samples, Millis from, Millis to,
                                 std::size_t points) {
  if (samples.size() <= points) {
    return samples;
  }
  const std::int64_t width =
      std::max<std::int64_t>(1, (to - from).count() / static_cast<std::int64_t>(points) + 1);
  std::vector<RingSample> out;
  std::vector<RingSample> together;
  std::int64_t part = -1;
  for (const RingSample& sample : samples) {
    const std::int64_t its = std::max<std::int64_t>(0, (sample.time - from).count()) / width;
    if (its != part && !together.empty()) {
      out.push_back(mean(together));
      together.clear();
    }
    part = its;
    together.push_back(sample);
  }
  out.push_back(mean(together));
  return out;
}

}  // namespace berth
