#include "daemon/listen_settings.hpp"

#include <fmt/format.h>

#include <charconv>

#include "api/http_answer.hpp"
#include "api/socket.hpp"

namespace berth {
namespace {

constexpr std::string_view kKey = "listen";

std::optional<std::uint16_t> port_in(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool good = error == std::errc() && end == text.data() + text.size() && port != 0;
  return good ? std::optional(port) : std::nullopt;
}

Status set_address(ListenSettings& settings, std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) {
    text = text.substr(1, text.size() - 2);
  }
  if (!is_numeric_address(std::string(text))) {
    return fail(ErrorCode::invalid,
                fmt::format("'{}' is not an address of this machine; write one as 127.0.0.1, "
                            "0.0.0.0 for all, or ::1",
                            text));
  }
  settings.address = text;
  return {};
}

Status set_port(ListenSettings& settings, std::string_view text) {
  const auto port = port_in(text);
  if (!port) {
    return fail(ErrorCode::invalid, fmt::format("'{}' is not a port from 1 to 65535", text));
  }
  settings.port = *port;
  return {};
}

/// on, off, PORT, ADDRESS or ADDRESS:PORT.
Status set_all(ListenSettings& settings, std::string_view text) {
  settings.on = text != "off" && text != "false" && text != "no";
  if (!*settings.on || text == "on" || text == "true" || text == "yes") {
    return {};
  }
  if (port_in(text)) {
    return set_port(settings, text);
  }
  if (is_numeric_address(std::string(text))) {
    return set_address(settings, text);
  }
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return set_address(settings, text);  // says what is wrong
  }
  TRY(set_address(settings, text.substr(0, colon)));
  return set_port(settings, text.substr(colon + 1));
}

void set_hosts(ListenSettings& settings, std::string_view text) {
  settings.hosts.clear();
  while (!text.empty()) {
    const auto end = text.find_first_of(", ");
    if (end != 0) {
      settings.hosts.push_back(lower_case(text.substr(0, end)));
    }
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
}

Status set_part(ListenSettings& settings, std::string_view part, std::string_view value) {
  settings.on = settings.on.value_or(true);
  if (part == "address") {
    return set_address(settings, value);
  }
  if (part == "port") {
    return set_port(settings, value);
  }
  if (part == "hosts") {
    set_hosts(settings, value);
    return {};
  }
  if (part == "certificate" || part == "key") {
    if (!value.starts_with('/')) {
      return fail(ErrorCode::invalid, "must be a path that begins with /");
    }
    (part == "key" ? settings.key : settings.certificate) = value;
    return {};
  }
  return fail(ErrorCode::invalid,
              "there is no such setting; there are address, port, certificate, key and hosts");
}

}  // namespace

bool is_listen_key(std::string_view key) {
  return key == kKey || (key.starts_with(kKey) && key.substr(kKey.size()).starts_with('.'));
}

Status set_listen(ListenSettings& settings, std::string_view key, std::string_view value) {
  Status done = key == kKey ? set_all(settings, value)
                            : set_part(settings, key.substr(kKey.size() + 1), value);
  if (!done) {
    done.error().message = fmt::format("{}: {}", key, done.error().message);
  }
  return done;
}

Status check_listen(const ListenSettings& settings) {
  if (settings.certificate.empty() != settings.key.empty()) {
    return fail(ErrorCode::invalid,
                "listen: a certificate and its key go together; name both, or none");
  }
  if (!is_loopback(settings.address) && settings.certificate.empty()) {
    return fail(ErrorCode::refused,
                fmt::format("listen: {} can be reached from other machines, where everything would "
                            "travel in the open; name a listen.certificate and its listen.key, or "
                            "listen on 127.0.0.1 and use a tunnel",
                            settings.address));
  }
  return {};
}

}  // namespace berth
