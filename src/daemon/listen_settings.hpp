#pragma once
// Where to listen over TCP, as berth.yaml says it:
//
//     listen: 127.0.0.1:29214      or  on, off, a port, an address
//
//     listen:
//       address: 0.0.0.0
//       certificate: /etc/berth/cert.pem
//       key: /etc/berth/key.pem
//       hosts: gpu1.example.org, 10.0.0.7

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth {

struct ListenSettings {
  std::optional<bool> on;  ///< none: when somebody asks; false: not even then
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: the usual one, or the next that is free
  std::string certificate;
  std::string key;
  std::vector<std::string> hosts;  ///< further names of this machine, in lower case
  std::string problem;             ///< why what was written there does not count; empty: it does

  friend bool operator==(const ListenSettings&, const ListenSettings&) = default;
};

[[nodiscard]] bool is_listen_key(std::string_view key);
[[nodiscard]] Status set_listen(ListenSettings& settings, std::string_view key,
                                std::string_view value);
/// Whether all of it together may be used: beyond this machine only with a certificate.
[[nodiscard]] Status check_listen(const ListenSettings& settings);

}  // namespace berth
