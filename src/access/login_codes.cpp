#include "access/login_codes.hpp"

#include <algorithm>
#include <utility>

#include "access/secret.hpp"
#include "api/access.hpp"

namespace berth {
namespace {

constexpr std::size_t kCodesMax = 16;

}  // namespace

std::string LoginCodes::issue(Millis now, std::string scope) {
  std::string code = new_secret();
  std::erase_if(codes_, [&](const Code& known) { return known.expires <= now; });
  if (codes_.size() >= kCodesMax) {
    codes_.erase(codes_.begin());  // the oldest
  }
  codes_.push_back({secret_hash(code), now + kLoginTime, std::move(scope)});
  return code;
}

std::optional<std::string> LoginCodes::redeem(std::string_view code, Millis now) {
  const std::string hash = secret_hash(code);
  std::optional<std::string> scope;
  std::erase_if(codes_, [&](const Code& known) {
    const bool good = same_secret(known.hash, hash) && known.expires > now;
    scope = good ? known.scope : scope;
    return good;
  });
  return scope;
}

}  // namespace berth
