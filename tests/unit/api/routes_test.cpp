#include "api/routes.hpp"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(RoutesTest, EveryRouteIsFoundByItsOwnPath) {
  for (const Route& route : kRoutes) {
    std::string path(route.path);
    if (const auto mark = path.find("{id}"); mark != std::string::npos) {
      path.replace(mark, 4, "42");
    }
    const RouteMatch match = match_route(route.method, path);
    ASSERT_NE(match.route, nullptr) << path;
    EXPECT_EQ(match.route->id, route.id);
    EXPECT_EQ(match.job_id, path == route.path ? 0U : 42U);
  }
}

TEST(RoutesTest, TellsAWrongMethodFromAWrongPath) {
  const RouteMatch wrong_method = match_route("DELETE", "/api/jobs/7");
  EXPECT_EQ(wrong_method.route, nullptr);
  EXPECT_TRUE(wrong_method.path_exists);
  for (const auto* path :
       {"/", "/api/job", "/api/jobs/", "/api/jobs/x", "/api/jobs/0", "/api/jobs/7/",
        "/api/jobs/7/what", "/api/jobs//why", "/api/jobs/-1", "/api/jobs/99999999999999999999"}) {
    EXPECT_FALSE(match_route("GET", path).path_exists) << path;
  }
}

}  // namespace
}  // namespace berth
