#pragma once
// TLS as files: who we are, and whom we believe. OpenSSL appears in tls.cpp and where connections
// are made.

#include <memory>
#include <string>

#include "base/result.hpp"

namespace boost::asio::ssl {
class context;
}

namespace berth {

/// A server's certificate and key.
class TlsIdentity {
 public:
  /// PEM files: the certificate with those that lead to its root behind it, and its key, which
  /// nobody else may read. May block.
  [[nodiscard]] static Result<std::shared_ptr<TlsIdentity>> load(const std::string& certificate,
                                                                 const std::string& key);
  /// Changes whenever one of the files does. May block.
  [[nodiscard]] static std::string stamp(const std::string& certificate, const std::string& key);
  explicit TlsIdentity(std::unique_ptr<boost::asio::ssl::context> context);
  ~TlsIdentity();
  TlsIdentity(const TlsIdentity&) = delete;
  TlsIdentity& operator=(const TlsIdentity&) = delete;
  [[nodiscard]] boost::asio::ssl::context& context() { return *context_; }

 private:
  std::unique_ptr<boost::asio::ssl::context> context_;
};

/// The authorities a client believes.
class TlsTrust {
 public:
  /// Those of the system, or, if a file is named, those in it alone. May block.
  [[nodiscard]] static Result<std::shared_ptr<TlsTrust>> load(const std::string& ca_file);
  explicit TlsTrust(std::unique_ptr<boost::asio::ssl::context> context);
  ~TlsTrust();
  TlsTrust(const TlsTrust&) = delete;
  TlsTrust& operator=(const TlsTrust&) = delete;
  [[nodiscard]] boost::asio::ssl::context& context() { return *context_; }

 private:
  std::unique_ptr<boost::asio::ssl::context> context_;
};

}  // namespace berth
