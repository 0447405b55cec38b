#pragma once
// TCP ports for attempts that ask for one, as distributed training does.

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace berth {

/// First and last; both are in it.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  friend bool operator==(PortRange, PortRange) = default;
};

/// Ports that the kernel gives to nobody who does not ask for them by number. `ephemeral` is the
/// text of ip_local_port_range.
[[nodiscard]] PortRange usable_ports(std::string_view ephemeral);

/// Whether somebody could listen on it now, on all addresses.
[[nodiscard]] bool is_port_free(std::uint16_t port);

/// Thread-safe. Never gives a port to two attempts at once. Each attempt's search begins where no
/// recent one's did, so that after a restart, too, nobody gets what an attempt of before was given
/// and does not yet listen on.
class Ports {
 public:
  using IsFree = std::function<bool(std::uint16_t)>;

  /// Different instances begin at different places.
  Ports(PortRange range, std::string_view instance, IsFree is_free = is_port_free);

  [[nodiscard]] Result<std::uint16_t> take(AttemptId attempt);
  void release(AttemptId attempt);

 private:
  PortRange range_;
  std::uint64_t offset_;
  IsFree is_free_;
  std::mutex mutex_;
  std::map<AttemptId, std::uint16_t> taken_;
};

}  // namespace berth
