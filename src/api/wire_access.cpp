// Tokens, sessions and listening, as JSON.

#include "api/access.hpp"
#include "api/archive.hpp"

namespace berth {
namespace {

constexpr std::size_t kNameMax = 100;
constexpr Millis kLifetimeMax{316'224'000'000};  // ten years

template <class T>
std::string write(const T& value) {
  return wire::Writer::text(value);
}

/// A key as the API shows it: without the hash.
struct ShownKey {
  KeyRecord key;
};
struct ShownKeys {
  std::vector<ShownKey> tokens;
};

template <class A, class T>
void describe_key(A& a, T& key) {
  a.need("id", key.id);
  a.need("kind", key.kind);
  a.need("name", key.name);
  a.need("scope", key.scope);
  a.need("created", key.created);
  a.field("expires", key.expires);
  a.field("last_used", key.last_used);
  a.check(key.scope == "read" || key.scope == "full", "scope", "must be read or full");
  a.check(key.kind == "token" || key.kind == "browser", "kind", "must be token or browser");
}

template <class A>
void describe(A& a, wire::Ref<A, ShownKey> shown) {
  describe_key(a, shown.key);
}

template <class A>
void describe(A& a, wire::Ref<A, ShownKeys> shown) {
  a.need("tokens", shown.tokens);
}

struct ShownToken {
  ShownKey token;
  std::string secret;
};

template <class A>
void describe(A& a, wire::Ref<A, ShownToken> shown) {
  a.need("token", shown.token);
  a.need("secret", shown.secret);
}

}  // namespace

template <class A>
void describe(A& a, wire::Ref<A, KeyRecord> key) {
  describe_key(a, key);
  a.need("hash", key.hash);
}

template <class A>
void describe(A& a, wire::Ref<A, AccessFile> file) {
  a.need("version", file.version);
  a.need("last_id", file.last_id);
  a.field("port", file.port);
  a.need("keys", file.keys);
  a.check(file.version == 1, "version", "this berth reads version 1 only");
}

template <class A>
void describe(A& a, wire::Ref<A, TokenRequest> request) {
  a.need("name", request.name);
  a.field("scope", request.scope);
  a.field("lifetime_ms", request.lifetime);
  a.check(!request.name.empty() && request.name.size() <= kNameMax, "name",
          "must have 1 to 100 bytes");
  a.check(request.scope == "read" || request.scope == "full", "scope", "must be read or full");
  a.check(request.lifetime >= Millis(0) && request.lifetime <= kLifetimeMax, "lifetime_ms",
          "must be from 0, for ever, to ten years");
}

template <class A>
void describe(A& a, wire::Ref<A, SessionView> session) {
  a.need("via", session.via);
  a.need("scope", session.scope);
  a.need("user", session.user);
  a.or_null("csrf", session.csrf);
  a.or_null("id", session.id);
}

template <class A>
void describe(A& a, wire::Ref<A, ListenView> listen) {
  a.need("listening", listen.listening);
  a.or_null("address", listen.address);
  a.or_null("port", listen.port);
  a.field("tls", listen.tls);
  a.or_null("url", listen.url);
  a.or_null("source", listen.source);
  a.or_null("problem", listen.problem);
  a.unless("moved", listen.moved, false);
  a.field("console", listen.console);
}

template <class A>
void describe(A& a, wire::Ref<A, UiRequest> request) {
  a.field("port", request.port);
  a.field("scope", request.scope);
  a.check(request.scope == "read" || request.scope == "full", "scope", "must be read or full");
}

template <class A>
void describe(A& a, wire::Ref<A, UiAnswer> answer) {
  a.need("url", answer.url);
  a.need("address", answer.address);
  a.need("port", answer.port);
  a.field("moved", answer.moved);
}

std::string encode_access_file(const AccessFile& file) {
  return write(file);
}
Result<AccessFile> decode_access_file(std::string_view text) {
  return wire::read<AccessFile>(text, wire::Unknown::ignored);
}

std::string encode_keys(const std::vector<KeyRecord>& keys) {
  ShownKeys shown;
  for (const KeyRecord& key : keys) {
    shown.tokens.push_back({key});
  }
  return write(shown);
}
Result<std::vector<KeyRecord>> decode_keys(std::string_view body) {
  TRY_ASSIGN(ShownKeys shown, wire::read<ShownKeys>(body, wire::Unknown::ignored));
  std::vector<KeyRecord> keys;
  for (ShownKey& key : shown.tokens) {
    keys.push_back(std::move(key.key));
  }
  return keys;
}

std::string encode_token_request(const TokenRequest& request) {
  return write(request);
}
Result<TokenRequest> decode_token_request(std::string_view body) {
  return wire::read<TokenRequest>(body, wire::Unknown::error);
}

std::string encode_token_answer(const TokenAnswer& answer) {
  return write(ShownToken{{answer.token}, answer.secret});
}
Result<TokenAnswer> decode_token_answer(std::string_view body) {
  TRY_ASSIGN(ShownToken shown, wire::read<ShownToken>(body, wire::Unknown::ignored));
  return TokenAnswer{std::move(shown.token.key), std::move(shown.secret)};
}

std::string encode_session(const SessionView& session) {
  return write(session);
}

std::string encode_listen(const ListenView& listen) {
  return write(listen);
}
Result<ListenView> decode_listen(std::string_view body) {
  return wire::read<ListenView>(body, wire::Unknown::ignored);
}

std::string encode_ui_request(const UiRequest& request) {
  return write(request);
}
Result<UiRequest> decode_ui_request(std::string_view body) {
  return body.empty() ? UiRequest{} : wire::read<UiRequest>(body, wire::Unknown::error);
}

std::string encode_ui(const UiAnswer& answer) {
  return write(answer);
}
Result<UiAnswer> decode_ui(std::string_view body) {
  return wire::read<UiAnswer>(body, wire::Unknown::ignored);
}

}  // namespace berth
