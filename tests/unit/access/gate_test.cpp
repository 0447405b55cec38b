// Who gets in over TCP, with which headers, case by case.
#include "access/gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "access/secret.hpp"

namespace berth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Millis kNow{1'000'000};

struct World {
  KeyRing keys;
  Doorway doorway{false, {"localhost", "127.0.0.1", "[::1]"}, "berth_session_x"};
  TokenAnswer full = keys.add({"token", "script", "full", Millis(0)}, kNow);
  TokenAnswer read = keys.add({"token", "dashboard", "read", Millis(0)}, kNow);
  TokenAnswer browser = keys.add({"browser", "a browser", "full", Millis(0)}, kNow);

  [[nodiscard]] Admission ask(const HttpRequest& head) const {
    return admit(head, doorway, keys, kNow);
  }
  /// 0: gets in.
  [[nodiscard]] int status(const HttpRequest& head) const {
    const Admission admission = ask(head);
    return admission.refusal ? admission.refusal->status : 0;
  }
};

HttpRequest a_request(const std::string& method, const std::string& path) {
  HttpRequest head;
  head.method = method;
  head.path = path;
  head.headers["host"] = "127.0.0.1:29214";
  return head;
}

HttpRequest with(HttpRequest head, const std::string& name, const std::string& value) {
  head.headers[name] = value;
  return head;
}

HttpRequest with_token(const HttpRequest& head, const TokenAnswer& token) {
  return with(head, "authorization", "Bearer " + token.secret);
}

HttpRequest with_cookie(const HttpRequest& head, const TokenAnswer& session) {
  return with(head, "cookie", "theme=dark; berth_session_x=" + session.secret);
}

TEST(GateTest, NobodyGetsInWithoutAKey) {
  const World world;
  EXPECT_EQ(world.status(a_request("GET", "/api/status")), 401);
  EXPECT_EQ(world.status(a_request("POST", "/api/jobs")), 401);
  EXPECT_EQ(world.status(a_request("GET", "/no/such/path")), 401)
      << "which paths there are is not told";
  const Admission refused = world.ask(a_request("GET", "/api/status"));
  EXPECT_EQ(refused.refusal->headers.front().first, "WWW-Authenticate");
}

TEST(GateTest, AWrongKeyIsNone) {
  const World world;
  const auto head = a_request("GET", "/api/status");
  EXPECT_EQ(world.status(with(head, "authorization", "Bearer berth_0")), 401);
  EXPECT_EQ(world.status(with(head, "authorization", "Bearer ")), 401);
  EXPECT_EQ(world.status(with(head, "authorization", "Basic " + world.full.secret)), 401);
  EXPECT_EQ(world.status(with(head, "cookie", "berth_session_x=berth_0")), 401);
  EXPECT_EQ(world.status(with_token(head, world.browser)), 401) << "a cookie is not a token";
  EXPECT_EQ(world.status(with_cookie(head, world.full)), 401) << "a token is not a cookie";
}

TEST(GateTest, AWrongTokenIsNotMadeGoodByACookie) {
  const World world;
  auto head = with_cookie(a_request("GET", "/api/status"), world.browser);
  head.headers["authorization"] = "Bearer wrong";
  EXPECT_EQ(world.status(head), 401);
}

TEST(GateTest, AFullTokenMayDoEverything) {
  const World world;
  EXPECT_EQ(world.status(with_token(a_request("GET", "/api/status"), world.full)), 0);
  EXPECT_EQ(world.status(with_token(a_request("POST", "/api/stop"), world.full)), 0);
  const Admission admission = world.ask(with_token(a_request("POST", "/api/stop"), world.full));
  EXPECT_EQ(admission.caller.via, Caller::Via::token);
  EXPECT_EQ(admission.caller.key, world.full.token.id);
  EXPECT_EQ(admission.caller.csrf, "");
}

TEST(GateTest, AReadOnlyTokenMayLook) {
  const World world;
  EXPECT_EQ(world.status(with_token(a_request("GET", "/api/jobs"), world.read)), 0);
  EXPECT_EQ(world.status(with_token(a_request("GET", "/no/such/path"), world.read)), 0)
      << "the service says that there is nothing";
}

/// The path with something in the place of its parameters.
std::string concrete(std::string_view pattern) {
  std::string path;
  while (!pattern.empty()) {
    const auto open = std::min(pattern.find('{'), pattern.size());
    path += pattern.substr(0, open);
    pattern.remove_prefix(open);
    if (!pattern.empty()) {
      path += '1';
      pattern.remove_prefix(pattern.find('}') + 1);
    }
  }
  return path;
}

TEST(GateTest, AReadOnlyTokenChangesNothingWhateverThePath) {
  const World world;
  for (const Route& route : kRoutes) {
    if (route.scope == Scope::full) {
      const auto head = a_request(std::string(route.method), concrete(route.path));
      EXPECT_EQ(world.status(with_token(head, world.read)), 403)
          << route.method << " " << route.path;
    }
  }
  EXPECT_EQ(world.status(with_token(a_request("DELETE", "/no/such/path"), world.read)), 403);
}

TEST(GateTest, EveryRouteThatChangesSomethingAsksForAFullToken) {
  for (const Route& route : kRoutes) {
    if (route.method != "GET") {
      // Questions that are too long for a path are asked with POST.
      const bool question = route.path == "/api/done" || route.path == "/api/check" ||
                            route.path == "/api/results/runs" || route.path.ends_with("/preview");
      const bool leaves = route.path == "/api/logout";  // who may only look may go, too
      EXPECT_TRUE(route.scope == Scope::full || question || leaves)
          << route.method << " " << route.path;
    }
    EXPECT_TRUE(route.scope != Scope::open || route.path == "/login") << route.path;
  }
}

TEST(GateTest, ANameThatIsNotOursIsRefusedWhateverElseIsRight) {
  const World world;
  for (const char* host : {"evil.example", "evil.example:29214", "127.0.0.1.evil.example", "",
                           "localhost:29214, evil.example", "localhost:x", "localhost:999999",
                           "[::1", "[::2]:29214", "localhost.", "127.0.0.1:29214:1"}) {
    for (const char* method : {"GET", "POST", "DELETE", "OPTIONS", "PUT", "HEAD"}) {
      auto head = with_token(a_request(method, "/api/status"), world.full);
      head.headers["host"] = host;
      EXPECT_EQ(world.status(head), 421) << method << " " << host;
    }
  }
  auto console = a_request("GET", "/ui/gpu");
  console.headers["host"] = "evil.example";
  EXPECT_EQ(world.status(console), 421);
  auto nameless = with_token(a_request("GET", "/api/status"), world.full);
  nameless.headers.erase("host");
  EXPECT_EQ(world.status(nameless), 421);
}

TEST(GateTest, OurNamesAreGoodAtAnyPort) {
  const World world;
  for (const char* host : {"localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:29214", "[::1]"}) {
    auto head = with_token(a_request("GET", "/api/status"), world.full);
    head.headers["host"] = host;
    EXPECT_EQ(world.status(head), 0) << host;
  }
}

TEST(GateTest, APageOfAnotherOriginIsRefusedOnEveryMethod) {
  const World world;
  for (const char* origin : {"http://evil.example", "null", "", "https://127.0.0.1:29214",
                             "http://127.0.0.1:9999", "http://localhost:29214"}) {
    for (const char* method : {"GET", "POST", "DELETE", "OPTIONS", "HEAD"}) {
      EXPECT_EQ(world.status(with(with_token(a_request(method, "/api/status"), world.full),
                                  "origin", origin)),
                403)
          << method << " " << origin;
    }
    EXPECT_EQ(world.status(with(a_request("GET", "/ui/gpu"), "origin", origin)), 403) << origin;
  }
}

TEST(GateTest, OurOwnPagesAreOfOurOrigin) {
  const World world;
  EXPECT_EQ(world.status(with(with_token(a_request("POST", "/api/stop"), world.full), "origin",
                              "http://127.0.0.1:29214")),
            0);
  World encrypted;
  encrypted.doorway.tls = true;
  EXPECT_EQ(encrypted.status(with(with_token(a_request("POST", "/api/stop"), encrypted.full),
                                  "origin", "https://127.0.0.1:29214")),
            0);
}

TEST(GateTest, ACookieMayLook) {
  const World world;
  const Admission admission = world.ask(with_cookie(a_request("GET", "/api/jobs"), world.browser));
  ASSERT_FALSE(admission.refusal);
  EXPECT_EQ(admission.caller.via, Caller::Via::cookie);
  EXPECT_EQ(admission.caller.csrf, csrf_of(world.browser.secret));
}

TEST(GateTest, WithACookieAChangeNeedsTheWordThatOurPagesKnow) {
  const World world;
  const auto head = with_cookie(a_request("POST", "/api/stop"), world.browser);
  EXPECT_EQ(world.status(head), 403);
  EXPECT_EQ(world.status(with(head, "x-berth-csrf", "")), 403);
  EXPECT_EQ(world.status(with(head, "x-berth-csrf", world.browser.secret)), 403);
  EXPECT_EQ(world.status(with(head, "x-berth-csrf", csrf_of("another session"))), 403);
  EXPECT_EQ(world.status(with(head, "x-berth-csrf", csrf_of(world.browser.secret))), 0);
}

TEST(GateTest, WithACookieAPageOfAnotherPortMayNotEvenLook) {
  const World world;
  const auto head = with_cookie(a_request("GET", "/api/jobs"), world.browser);
  EXPECT_EQ(world.status(with(head, "sec-fetch-site", "same-site")), 403);
  EXPECT_EQ(world.status(with(head, "sec-fetch-site", "cross-site")), 403);
  EXPECT_EQ(world.status(with(head, "sec-fetch-site", "same-origin")), 0);
  EXPECT_EQ(world.status(with(head, "sec-fetch-site", "none")), 0);
}

TEST(GateTest, ThePagesOfTheConsoleAndTheLoginAreOpen) {
  const World world;
  for (const char* path : {"/", "/ui", "/ui/gpu", "/ui/assets/index-1.js", "/login"}) {
    EXPECT_EQ(world.status(a_request("GET", path)), 0) << path;
    EXPECT_EQ(world.ask(a_request("GET", path)).caller.via, Caller::Via::nobody) << path;
    EXPECT_EQ(world.status(with(a_request("GET", path), "content-length", "1000000")), 403)
        << "nobody stores a stranger's body";
    EXPECT_EQ(world.status(with(a_request("GET", path), "transfer-encoding", "chunked")), 403);
  }
  EXPECT_EQ(world.status(a_request("GET", "/uix")), 401);
}

TEST(GateTest, ALoginLinkOpenedAgainIsTheSameBrowser) {
  const World world;
  const Admission admission = world.ask(with_cookie(a_request("GET", "/login"), world.browser));
  EXPECT_EQ(admission.caller.via, Caller::Via::cookie);
}

TEST(GateTest, ExpiredKeysOpenNothing) {
  World world;
  const TokenAnswer brief = world.keys.add({"token", "brief", "full", Millis(10)}, kNow);
  EXPECT_EQ(world.status(with_token(a_request("GET", "/api/status"), brief)), 0);
  const Admission later = admit(with_token(a_request("GET", "/api/status"), brief), world.doorway,
                                world.keys, kNow + Millis(10));
  ASSERT_TRUE(later.refusal);
  EXPECT_EQ(later.refusal->status, 401);
}

TEST(GateTest, CookiesAreFoundByTheirWholeName) {
  EXPECT_EQ(cookie_value("a=1; b=2", "b"), "2");
  EXPECT_EQ(cookie_value("xb=1;b=2", "b"), "2");
  EXPECT_EQ(cookie_value("bb=1", "b"), "");
  EXPECT_EQ(cookie_value("b", "b"), "");
  EXPECT_EQ(cookie_value("", "b"), "");
}

TEST(GateTest, TheSessionsCookieIsForNobodyElse) {
  Doorway doorway{false, {}, "berth_session_x"};
  const std::string plain = session_cookie(doorway, "s3cret", Millis(60'000));
  EXPECT_EQ(plain, "berth_session_x=s3cret; Path=/; HttpOnly; SameSite=Strict; Max-Age=60");
  doorway.tls = true;
  EXPECT_THAT(session_cookie(doorway, "s3cret", Millis(60'000)), HasSubstr("; Secure"));
  EXPECT_THAT(session_cookie(doorway, "", Millis(60'000)), HasSubstr("Max-Age=0"));
}

TEST(GateTest, NoPolicyAllowsInlineScripts) {
  EXPECT_THAT(std::string(console_policy()), HasSubstr("script-src 'self';"));
  for (const auto& [name, value] : security_headers()) {
    EXPECT_THAT(value, Not(HasSubstr("unsafe")));
  }
}

}  // namespace
}  // namespace berth
