#include "api/routes.hpp"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(RoutesTest, EveryRouteIsFoundByItsOwnPath) {
  for (const Route& route : kRoutes) {
    std::string path(route.path);
    std::size_t marks = 0;
    for (auto mark = path.find('{'); mark != std::string::npos; mark = path.find('{'), ++marks) {
      path.replace(mark, path.find('}') - mark + 1, "42");
    }
    const RouteMatch match = match_route(route.method, path);
    ASSERT_NE(match.route, nullptr) << path;
    EXPECT_EQ(match.route->id, route.id);
    EXPECT_EQ(match.id, route.path.find("{id}") == std::string_view::npos ? 0U : 42U);
    EXPECT_EQ(match.params.size(), marks);
  }
}

TEST(RoutesTest, APartOfThePathIsFoundByItsName) {
  const RouteMatch match = match_route("GET", "/api/jobs/7/why");
  ASSERT_NE(match.route, nullptr);
  EXPECT_EQ(match.id, 7U);
  EXPECT_EQ(match.param("id"), "7");
  EXPECT_EQ(match.param("mode"), "");
}

TEST(RoutesTest, WhoeverMayOnlyLookCanChangeNothing) {
  for (const Route& route : kRoutes) {
    const bool looks = route.scope != Scope::full;
    const bool asks_in_a_body = route.id == RouteId::done || route.id == RouteId::rules_preview ||
                                route.id == RouteId::found_runs;
    const bool leaves = route.id == RouteId::logout;
    EXPECT_TRUE(!looks || route.method == "GET" || asks_in_a_body || leaves) << route.path;
  }
}

TEST(RoutesTest, HeadFindsWhatGetDoesButSpendsNoLogin) {
  for (const Route& route : kRoutes) {
    if (route.method == "GET" && route.path.find('{') == std::string_view::npos) {
      const Route* found = match_route("HEAD", route.path).route;
      EXPECT_EQ(found, route.id == RouteId::login ? nullptr : &route) << route.path;
    }
  }
  EXPECT_EQ(match_route("HEAD", "/login").allowed, "GET");
  EXPECT_EQ(match_route("HEAD", "/api/jobs/kill").allowed, "POST");
  EXPECT_EQ(match_route("PATCH", "/api/jobs").allowed, "POST, GET, HEAD");
}

TEST(RoutesTest, TellsAWrongMethodFromAWrongPath) {
  const RouteMatch wrong_method = match_route("DELETE", "/api/jobs/7");
  EXPECT_EQ(wrong_method.route, nullptr);
  EXPECT_EQ(wrong_method.allowed, "GET, HEAD");
  for (const auto* path :
       {"/", "/api/job", "/api/jobs/", "/api/jobs/x", "/api/jobs/0", "/api/jobs/7/",
        "/api/jobs/7/what", "/api/jobs//why", "/api/jobs/-1", "/api/jobs/99999999999999999999"}) {
    EXPECT_EQ(match_route("GET", path).allowed, "") << path;
  }
}

}  // namespace
}  // namespace berth
