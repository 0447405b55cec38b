#include "access/secret.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <array>
#include <span>

#include "base/assert.hpp"

namespace berth {
namespace {

constexpr std::size_t kSecretBytes = 32;
constexpr std::string_view kCsrfPurpose = "berth csrf";

std::string hexadecimal(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    fmt::format_to(std::back_inserter(text), "{:02x}", byte);
  }
  return text;
}

}  // namespace

std::string new_secret() {
  std::array<unsigned char, kSecretBytes> bytes{};
  // So few bytes come at once or, before the kernel has enough entropy, a little later.
  BERTH_ASSERT(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return hexadecimal(bytes);
}

std::string secret_hash(std::string_view secret) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_Digest(secret.data(), secret.size(), digest.data(), &size, EVP_sha256(), nullptr);
  return hexadecimal(std::span(digest).first(size));
}

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string csrf_of(std::string_view session_secret) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  // NOLINTNEXTLINE: its own type for bytes
  const auto* purpose = reinterpret_cast<const unsigned char*>(kCsrfPurpose.data());
  HMAC(EVP_sha256(), session_secret.data(), static_cast<int>(session_secret.size()), purpose,
       kCsrfPurpose.size(), digest.data(), &size);
  return hexadecimal(std::span(digest).first(size));
}

}  // namespace berth
