#pragma once
// Who may do what over TCP, with which headers. Pure: the head of a request, the keys and the time
// in, a verdict out.
//
// Every request, whatever its method and path, must call this server by a name it has (a page of
// somebody else that has bent its own name to our address calls it by that one) and must come from
// no page of another origin. What is not open to all needs a key: a token, or the cookie of a
// browser that has logged in. With a cookie, changes need the word that only our own pages can
// know.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/key_ring.hpp"
#include "api/http.hpp"
#include "api/routes.hpp"

namespace berth {

/// Who asks.
struct Caller {
  enum class Via : std::uint8_t { nobody, token, cookie };

  Via via = Via::nobody;
  Scope scope = Scope::open;
  std::uint64_t key = 0;  ///< its id; 0: none
  std::string name;       ///< under which that is kept
  std::string csrf;       ///< what its pages must show; only with a cookie
};

/// By which names this server is called, and how.
struct Doorway {
  bool tls = false;
  std::vector<std::string> hosts;  ///< in lower case, without ports: "localhost", "[::1]"
  std::string cookie;              ///< the name of ours
};

struct Admission {
  std::optional<HttpResponse> refusal;
  Caller caller;  ///< if there is none
};

[[nodiscard]] Admission admit(const HttpRequest& head, const Doorway& doorway, const KeyRing& keys,
                              Millis now);

/// The pages of the console, which hold no secret: they ask for what they show.
[[nodiscard]] bool is_console_path(std::string_view path);

/// The value of a cookie; empty if it is not there.
[[nodiscard]] std::string cookie_value(std::string_view header, std::string_view name);
/// What the cookie of an instance is called. Cookies do not know ports: two instances behind two
/// tunnels must not take each other's.
[[nodiscard]] std::string cookie_name(std::string_view instance);
/// A Set-Cookie header for a session; an empty secret takes it away.
[[nodiscard]] std::string session_cookie(const Doorway& doorway, std::string_view secret,
                                         Millis lifetime);

/// What every answer over TCP carries. The pages of the console loosen the policy a little.
[[nodiscard]] HttpHeaders security_headers();
[[nodiscard]] std::string_view console_policy();

}  // namespace berth
