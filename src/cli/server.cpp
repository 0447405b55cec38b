#include "cli/server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

#include "api/access.hpp"
#include "api/socket.hpp"
#include "api/tls.hpp"
#include "base/fd.hpp"
#include "cli/terminal.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t kTokenMax = 512;
constexpr std::string_view kBlanks = " \t\r\n";

std::optional<HttpRemote>& chosen() {
  static std::optional<HttpRemote> remote;
  return remote;
}

std::unexpected<Error> not_a_server(std::string_view url) {
  return fail(ErrorCode::invalid,
              fmt::format("'{}' is not the address of a server; write it as "
                          "https://gpu1.example.org:29214 or http://127.0.0.1:29214",
                          printable(url)));
}

bool is_this_machine(const std::string& host) {
  return host == "localhost" || is_loopback(host);
}

}  // namespace

Result<HttpRemote> parse_server(std::string_view url) {
  HttpRemote remote;
  remote.port = kUsualPort;
  std::string_view rest = url;
  remote.tls = rest.starts_with("https://");
  if (!remote.tls && !rest.starts_with("http://")) {
    return not_a_server(url);
  }
  rest.remove_prefix(rest.find("//") + 2);
  if (rest.ends_with('/')) {
    rest.remove_suffix(1);
  }
  const auto bracket = rest.starts_with('[') ? rest.find(']') : 0;
  const auto colon = bracket == std::string_view::npos ? bracket : rest.find(':', bracket);
  if (colon != std::string_view::npos) {
    const std::string_view port = rest.substr(colon + 1);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), remote.port);
    if (error != std::errc() || end != port.data() + port.size() || remote.port == 0) {
      return not_a_server(url);
    }
  }
  std::string_view host = rest.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  if (host.empty() || host.find_first_of("/?#@[] ") != std::string_view::npos) {
    return not_a_server(url);
  }
  remote.host = host;
  if (!remote.tls && !is_this_machine(remote.host)) {
    return fail(ErrorCode::refused,
                fmt::format("the token would travel to {} in the open; use https, or a tunnel and "
                            "http://127.0.0.1",
                            remote.host));
  }
  return remote;
}

Result<std::string> read_token(const std::string& file) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));  // NOLINT: what the API asks for
  struct stat st{};
  if (!fd || ::fstat(fd.get(), &st) != 0) {
    return fail_errno(fmt::format("cannot read the token in '{}'", printable(file)), errno);
  }
  if (S_ISREG(st.st_mode) && (st.st_mode & 0077U) != 0) {
    return fail(
        ErrorCode::refused,
        fmt::format("others may read the token in '{}': chmod 600 it first", printable(file)));
  }
  std::array<char, kTokenMax> buffer{};
  const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
  std::string_view text(buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    return fail(ErrorCode::invalid, fmt::format("there is no token in '{}'", printable(file)));
  }
  text = text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
  if (text.find_first_of(kBlanks) != std::string_view::npos) {
    return fail(ErrorCode::invalid, fmt::format("'{}' holds more than a token", printable(file)));
  }
  return std::string(text);
}

Status choose_server(const ServerOptions& options) {
  chosen().reset();
  if (options.url.empty()) {
    return options.token_file.empty() && options.ca_file.empty()
               ? Status()
               : fail(ErrorCode::invalid, "--token-file and --ca-file go with --server");
  }
  TRY_ASSIGN(HttpRemote remote, parse_server(options.url));
  if (options.token_file.empty()) {
    return fail(ErrorCode::invalid,
                "--server needs --token-file; on the server, berth token add makes a token");
  }
  TRY_ASSIGN(remote.token, read_token(options.token_file));
  if (remote.tls) {
    TRY_ASSIGN(remote.trust, TlsTrust::load(options.ca_file));
  }
  chosen() = std::move(remote);
  return {};
}

const std::optional<HttpRemote>& chosen_server() {
  return chosen();
}

}  // namespace berth::cli
