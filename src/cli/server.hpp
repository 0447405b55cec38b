#pragma once
// Which instance commands talk to: that of this machine and user, or with --server another one.

#include <optional>
#include <string>
#include <string_view>

#include "api/http.hpp"
#include "base/result.hpp"

namespace berth::cli {

struct ServerOptions {
  std::string url;         ///< empty: the instance of this machine
  std::string token_file;  ///< holds a token and nothing else
  std::string ca_file;     ///< empty: what the system trusts
};

/// "https://gpu1:29214" in parts; without a port the usual one. Without TLS only this machine: the
/// token would travel in the open.
[[nodiscard]] Result<HttpRemote> parse_server(std::string_view url);

/// What the file says. Refuses one that others may read.
[[nodiscard]] Result<std::string> read_token(const std::string& file);

/// For the rest of this command.
[[nodiscard]] Status choose_server(const ServerOptions& options);
/// None: the instance of this machine.
[[nodiscard]] const std::optional<HttpRemote>& chosen_server();

}  // namespace berth::cli
