#pragma once
// What the API tells and takes about access: tokens, sessions of browsers, the TCP port.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace berth {

/// Something that opens the door: a token, or a browser that has logged in. Times are milliseconds
/// since 1970.
struct KeyRecord {
  std::uint64_t id = 0;
  std::string kind;   ///< "token" or "browser"
  std::string name;   ///< what its owner calls it
  std::string scope;  ///< "read" or "full"
  std::string hash;   ///< SHA-256 of the secret, in hexadecimal; the secret itself is nowhere
  Millis created{0};
  std::optional<Millis> expires;    ///< none: never
  std::optional<Millis> last_used;  ///< to the minute; none: not yet

  friend bool operator==(const KeyRecord&, const KeyRecord&) = default;
};

/// The file access.json of an instance.
struct AccessFile {
  std::uint32_t version = 1;
  std::uint64_t last_id = 0;
  std::uint16_t port = 0;  ///< which `berth ui` has asked for; 0: none
  std::vector<KeyRecord> keys;

  friend bool operator==(const AccessFile&, const AccessFile&) = default;
};
[[nodiscard]] std::string encode_access_file(const AccessFile& file);
[[nodiscard]] Result<AccessFile> decode_access_file(std::string_view text);

[[nodiscard]] std::string encode_keys(const std::vector<KeyRecord>& keys);  ///< {"tokens": […]}
[[nodiscard]] Result<std::vector<KeyRecord>> decode_keys(std::string_view body);

inline constexpr Millis kTokenLifetime{90ll * 24 * 3600 * 1000};

struct TokenRequest {
  std::string name;
  std::string scope = "full";
  Millis lifetime = kTokenLifetime;  ///< 0: for ever
};
[[nodiscard]] std::string encode_token_request(const TokenRequest& request);
[[nodiscard]] Result<TokenRequest> decode_token_request(std::string_view body);

/// The only time that the secret is told.
struct TokenAnswer {
  KeyRecord token;
  std::string secret;
};
[[nodiscard]] std::string encode_token_answer(const TokenAnswer& answer);
[[nodiscard]] Result<TokenAnswer> decode_token_answer(std::string_view body);

struct SessionView {
  std::string via;       ///< "socket", "token" or "cookie"
  std::string scope;     ///< "read" or "full"
  std::string user;      ///< whose instance it is
  std::string csrf;      ///< empty: none is asked for
  std::uint64_t id = 0;  ///< of its token or session; 0: it has none
};
[[nodiscard]] std::string encode_session(const SessionView& session);

/// How far the instance listens.
struct ListenView {
  bool listening = false;
  std::string address;  ///< empty: not listening
  std::uint16_t port = 0;
  bool tls = false;
  std::string url;       ///< of the console
  std::string source;    ///< "berth ui" or "berth.yaml"; empty: not listening
  std::string problem;   ///< why it does not listen although it should, or what is wrong with it
  bool moved = false;    ///< the usual port was taken
  bool console = false;  ///< whether the pages of the console are in this program
};
[[nodiscard]] std::string encode_listen(const ListenView& listen);
[[nodiscard]] Result<ListenView> decode_listen(std::string_view body);

struct UiRequest {
  std::uint16_t port = 0;      ///< 0: the usual one, or the next that is free
  std::string scope = "full";  ///< of whoever logs in with the link; or "read"
};
[[nodiscard]] std::string encode_ui_request(const UiRequest& request);
[[nodiscard]] Result<UiRequest> decode_ui_request(std::string_view body);

struct UiAnswer {
  std::string url;  ///< good for one login within kLoginTime
  std::string address;
  std::uint16_t port = 0;
  bool moved = false;  ///< the usual port was taken
};
[[nodiscard]] std::string encode_ui(const UiAnswer& answer);
[[nodiscard]] Result<UiAnswer> decode_ui(std::string_view body);

inline constexpr std::uint16_t kUsualPort = 29214;
inline constexpr Millis kLoginTime{5ll * 60 * 1000};
/// In the instance's directory: sends a browser to a link that nobody else may see.
inline constexpr std::string_view kLoginPage = "login.html";

}  // namespace berth
