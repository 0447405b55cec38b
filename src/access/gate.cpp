#include "access/gate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "access/secret.hpp"
#include "api/http_answer.hpp"
#include "api/wire.hpp"

namespace berth {
namespace {

constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;
constexpr int kMisdirected = 421;
constexpr std::string_view kBearer = "bearer ";
constexpr std::size_t kPortDigitsMax = 5;

std::string_view header(const HttpRequest& head, std::string_view name) {
  const auto at = head.headers.find(std::string(name));
  return at == head.headers.end() ? std::string_view() : std::string_view(at->second);
}

HttpResponse refusal(int status, std::string message) {
  HttpResponse response;
  response.status = status;
  response.body = encode_error({ErrorCode::refused, std::move(message)});
  if (status == kUnauthorized) {
    response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"berth\"");
  }
  return response;
}

Admission refuse(int status, std::string message) {
  return {refusal(status, std::move(message)), {}};
}

/// "localhost" of "localhost:29214", "[::1]" of "[::1]:29214"; empty if it is neither.
std::string_view name_of(std::string_view host) {
  const auto colon = host.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && (host.front() != '[' || host.at(colon - 1) == ']');
  if (!has_port) {
    return host;
  }
  const std::string_view port = host.substr(colon + 1);
  const bool is_number = !port.empty() && port.size() <= kPortDigitsMax &&
                         std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? host.substr(0, colon) : std::string_view();
}

/// Whichever port: a tunnel ends at one of its own. Several Host headers reach us as a list, which
/// is the name of nobody.
bool is_our_name(const Doorway& doorway, const std::string& host) {
  return !host.empty() && std::ranges::find(doorway.hosts, name_of(host)) != doorway.hosts.end();
}

bool is_our_origin(const Doorway& doorway, std::string_view origin, const std::string& host) {
  return lower_case(origin) == fmt::format("{}://{}", doorway.tls ? "https" : "http", host);
}

bool changes_something(std::string_view method) {
  return method != "GET" && method != "HEAD";
}

bool has_body(const HttpRequest& head) {
  const std::string_view length = header(head, "content-length");
  return head.headers.contains("transfer-encoding") || (!length.empty() && length != "0");
}

/// Whoever the credentials say it is; none if they are no good.
std::optional<Caller> identify(const HttpRequest& head, const Doorway& doorway, const KeyRing& keys,
                               Millis now) {
  Caller caller;
  const std::string_view authorization = header(head, "authorization");
  if (!authorization.empty()) {
    const bool bearer = lower_case(authorization.substr(0, kBearer.size())) == kBearer;
    const KeyRecord* key =
        bearer ? keys.find(authorization.substr(kBearer.size()), "token", now) : nullptr;
    if (key == nullptr) {
      return std::nullopt;
    }
    caller.via = Caller::Via::token;
    caller.scope = scope_of(*key);
    caller.key = key->id;
    caller.name = key->name;
    return caller;
  }
  const std::string secret = cookie_value(header(head, "cookie"), doorway.cookie);
  if (secret.empty()) {
    return caller;  // nobody, and says so
  }
  const KeyRecord* key = keys.find(secret, "browser", now);
  if (key == nullptr) {
    return std::nullopt;
  }
  caller.via = Caller::Via::cookie;
  caller.scope = scope_of(*key);
  caller.key = key->id;
  caller.name = key->name;
  caller.csrf = csrf_of(secret);
  return caller;
}

/// Browsers say who made a page ask. Pages of other ports of this machine send our cookie along.
bool is_foreign_page(const HttpRequest& head) {
  const std::string_view site = header(head, "sec-fetch-site");
  return !site.empty() && site != "same-origin" && site != "none";
}

Admission admit_open(const HttpRequest& head, const std::optional<Caller>& caller) {
  if (has_body(head)) {
    return refuse(kForbidden, "nothing may be sent there");
  }
  return {std::nullopt, caller.value_or(Caller{})};
}

Admission admit_holder(const HttpRequest& head, Caller caller, const Route* route) {
  if (caller.via == Caller::Via::cookie) {
    if (is_foreign_page(head)) {
      return refuse(kForbidden, "a page of another origin may not ask");
    }
    if (changes_something(head.method) && !same_secret(header(head, "x-berth-csrf"), caller.csrf)) {
      return refuse(kForbidden, "the header X-Berth-CSRF is missing or wrong: reload the page");
    }
  }
  const Scope needed = route != nullptr                 ? route->scope
                       : changes_something(head.method) ? Scope::full
                                                        : Scope::read;
  if (needed == Scope::full && caller.scope != Scope::full) {
    return refuse(kForbidden, "this token may only look; berth token add makes one that may more");
  }
  return {std::nullopt, std::move(caller)};
}

}  // namespace

Admission admit(const HttpRequest& head, const Doorway& doorway, const KeyRing& keys, Millis now) {
  const std::string host = lower_case(header(head, "host"));
  if (!is_our_name(doorway, host)) {
    return refuse(kMisdirected, fmt::format("this server is not called that; a name for it can be "
                                            "added to listen.hosts in berth.yaml"));
  }
  if (const auto origin = head.headers.find("origin");
      origin != head.headers.end() && !is_our_origin(doorway, origin->second, host)) {
    return refuse(kForbidden, "a page of another origin may not ask");
  }
  const Route* route = match_route(head.method, head.path).route;
  std::optional<Caller> caller = identify(head, doorway, keys, now);
  if (is_console_path(head.path) || (route != nullptr && route->scope == Scope::open)) {
    return admit_open(head, caller);
  }
  if (!caller) {
    return refuse(kUnauthorized,
                  "this token is not known, or not any more; berth token add makes one");
  }
  if (caller->via == Caller::Via::nobody) {
    return refuse(kUnauthorized,
                  "a token is needed: Authorization: Bearer …; berth token add makes one, and "
                  "berth ui logs a browser in");
  }
  return admit_holder(head, std::move(*caller), route);
}

bool is_console_path(std::string_view path) {
  return path == "/" || path == "/ui" || path.starts_with("/ui/") || path == "/favicon.ico";
}

std::string cookie_value(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    const auto end = header.find(';');
    std::string_view pair = header.substr(0, end);
    header = end == std::string_view::npos ? "" : header.substr(end + 1);
    pair.remove_prefix(std::min(pair.find_first_not_of(' '), pair.size()));
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('=')) {
      return std::string(pair.substr(name.size() + 1));
    }
  }
  return {};
}

std::string cookie_name(std::string_view instance) {
  constexpr std::size_t kMark = 8;
  return fmt::format("berth_session_{}", instance.substr(0, kMark));
}

std::string session_cookie(const Doorway& doorway, std::string_view secret, Millis lifetime) {
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}{}", doorway.cookie,
                     secret, secret.empty() ? 0 : lifetime.count() / 1000,
                     doorway.tls ? "; Secure" : "");
}

HttpHeaders security_headers() {
  return {
      {"X-Content-Type-Options", "nosniff"},
      {"X-Frame-Options", "DENY"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"},
      {"Content-Security-Policy",
       "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
  };
}

/// Scripts come from files alone. Styles may stand in the page: charts and editors make theirs.
std::string_view console_policy() {
  return "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
         "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; "
         "worker-src 'self' blob:; manifest-src 'self'; base-uri 'none'; form-action 'self'; "
         "frame-ancestors 'none'";
}

}  // namespace berth
