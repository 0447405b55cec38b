#include "api/tls.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <array>
#include <boost/asio/ssl/context.hpp>
#include <cerrno>

namespace berth {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

/// Where distributions keep what they trust. A program that brings its own OpenSSL does not know.
constexpr std::array kSystemBundles{
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
};

std::unique_ptr<ssl::context> new_context(ssl::context::method method) {
  auto context = std::make_unique<ssl::context>(method);
  error_code ignored;
  static_cast<void>(context->set_options(
      ssl::context::default_workarounds | ssl::context::no_sslv2 | ssl::context::no_sslv3 |
          ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1 | SSL_OP_NO_RENEGOTIATION |
          SSL_OP_CIPHER_SERVER_PREFERENCE,
      ignored));
  return context;
}

Status key_is_private(const std::string& key) {
  struct stat st{};
  if (::stat(key.c_str(), &st) != 0) {
    return fail_errno(fmt::format("cannot read the key '{}'", key), errno);
  }
  if ((st.st_mode & 0007U) != 0) {
    return fail(ErrorCode::refused,
                fmt::format("everybody may read the key '{}': chmod o= it first", key));
  }
  return {};
}

}  // namespace

TlsIdentity::TlsIdentity(std::unique_ptr<ssl::context> context) : context_(std::move(context)) {}
TlsIdentity::~TlsIdentity() = default;

Result<std::shared_ptr<TlsIdentity>> TlsIdentity::load(const std::string& certificate,
                                                       const std::string& key) {
  TRY(key_is_private(key));
  auto context = new_context(ssl::context::tls_server);
  error_code error;
  static_cast<void>(context->use_certificate_chain_file(certificate, error));
  if (error) {
    return fail(ErrorCode::invalid,
                fmt::format("cannot use the certificate '{}': {}", certificate, error.message()));
  }
  static_cast<void>(context->use_private_key_file(key, ssl::context::pem, error));
  if (error) {
    return fail(ErrorCode::invalid, fmt::format("cannot use the key '{}' with the certificate '{}'"
                                                ": {}",
                                                key, certificate, error.message()));
  }
  // One of another kind, EC beside RSA, is taken by the call above: OpenSSL keeps a pair of each.
  if (::SSL_CTX_check_private_key(context->native_handle()) != 1) {
    ::ERR_clear_error();
    return fail(
        ErrorCode::invalid,
        fmt::format("the key '{}' does not belong to the certificate '{}'", key, certificate));
  }
  return std::make_shared<TlsIdentity>(std::move(context));
}

std::string TlsIdentity::stamp(const std::string& certificate, const std::string& key) {
  std::string text;
  for (const std::string& file : {certificate, key}) {
    struct stat st{};
    if (::stat(file.c_str(), &st) == 0) {
      text += fmt::format("{}:{}:{}:{}.{} {} ", st.st_dev, st.st_ino, st.st_size, st.st_mtim.tv_sec,
                          st.st_mtim.tv_nsec, st.st_mode);
    }
  }
  return text;
}

TlsTrust::TlsTrust(std::unique_ptr<ssl::context> context) : context_(std::move(context)) {}
TlsTrust::~TlsTrust() = default;

Result<std::shared_ptr<TlsTrust>> TlsTrust::load(const std::string& ca_file) {
  auto context = new_context(ssl::context::tls_client);
  error_code error;
  static_cast<void>(context->set_verify_mode(ssl::verify_peer, error));
  if (!ca_file.empty()) {
    static_cast<void>(context->load_verify_file(ca_file, error));
    if (error) {
      return fail(ErrorCode::invalid,
                  fmt::format("cannot use the certificates in '{}': {}", ca_file, error.message()));
    }
    return std::make_shared<TlsTrust>(std::move(context));
  }
  static_cast<void>(context->set_default_verify_paths(error));  // SSL_CERT_FILE and the like
  for (const char* bundle : kSystemBundles) {
    static_cast<void>(context->load_verify_file(bundle, error));  // what is not there adds nothing
  }
  return std::make_shared<TlsTrust>(std::move(context));
}

}  // namespace berth
