#include "access/login_codes.hpp"

#include <algorithm>

#include "access/secret.hpp"
#include "api/access.hpp"

namespace berth {
namespace {

constexpr std::size_t kCodesMax = 16;

}  // namespace

std::string LoginCodes::issue(Millis now) {
  std::string code = new_secret();
  std::erase_if(codes_, [&](const Code& known) { return known.expires <= now; });
  if (codes_.size() >= kCodesMax) {
    codes_.erase(codes_.begin());  // the oldest
  }
  codes_.push_back({secret_hash(code), now + kLoginTime});
  return code;
}

bool LoginCodes::redeem(std::string_view code, Millis now) {
  const std::string hash = secret_hash(code);
  const auto good = [&](const Code& known) {
    return same_secret(known.hash, hash) && known.expires > now;
  };
  return std::erase_if(codes_, good) > 0;
}

}  // namespace berth
