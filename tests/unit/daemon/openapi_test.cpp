#include "daemon/openapi.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>
#include <set>
#include <string>

#include "api/routes.hpp"

namespace berth {
namespace {

namespace json = boost::json;

json::value description() {
  return json::parse(openapi_json());
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

std::string_view name_of(Scope scope) {
  return scope == Scope::open ? "open" : scope == Scope::read ? "read" : "full";
}

TEST(OpenapiTest, EveryRouteIsDescribedAsItIs) {
  const json::value root = description();
  const json::object& paths = root.at("paths").as_object();
  for (const Route& route : kRoutes) {
    const json::value* path = paths.if_contains(route.path);
    ASSERT_NE(path, nullptr) << route.path << " is not in docs/openapi.yaml";
    const json::value* operation = path->as_object().if_contains(lower(route.method));
    ASSERT_NE(operation, nullptr) << route.method << " " << route.path;
    EXPECT_EQ(operation->at("summary").as_string(), route.summary) << route.path;
    EXPECT_EQ(operation->at("x-berth-scope").as_string(), name_of(route.scope)) << route.path;
  }
}

TEST(OpenapiTest, NothingIsDescribedThatIsNotARoute) {
  std::set<std::pair<std::string, std::string>> routes;
  for (const Route& route : kRoutes) {
    routes.emplace(lower(route.method), route.path);
  }
  std::set<std::string> ids;
  const json::value root = description();
  for (const auto& [path, item] : root.at("paths").as_object()) {
    for (const auto& [method, operation] : item.as_object()) {
      EXPECT_TRUE(routes.contains({std::string(method), std::string(path)}))
          << method << " " << path << " is not in kRoutes";
      EXPECT_TRUE(ids.insert(std::string(operation.at("operationId").as_string())).second)
          << operation.at("operationId");
    }
  }
  EXPECT_EQ(ids.size(), routes.size());
}

TEST(OpenapiTest, EveryPartOfAPathIsAParameter) {
  const json::value root = description();
  for (const auto& [path, item] : root.at("paths").as_object()) {
    for (const auto& [method, operation] : item.as_object()) {
      std::set<std::string> named;
      if (const json::value* list = operation.as_object().if_contains("parameters")) {
        for (const json::value& one : list->as_array()) {
          const json::value* parameter = &one;
          if (const json::value* reference = one.as_object().if_contains("$ref")) {
            json::error_code error;
            parameter =
                root.find_pointer(std::string_view(reference->as_string()).substr(1), error);
            ASSERT_NE(parameter, nullptr) << *reference;
          }
          if (parameter->at("in").as_string() == "path") {
            named.insert(std::string(parameter->at("name").as_string()));
          }
        }
      }
      std::set<std::string> wanted;
      const std::string text(path);
      for (auto at = text.find('{'); at != std::string::npos; at = text.find('{', at + 1)) {
        wanted.insert(text.substr(at + 1, text.find('}', at) - at - 1));
      }
      EXPECT_EQ(named, wanted) << method << " " << path;
    }
  }
}

void expect_references(const json::value& root, const json::value& value) {
  if (const json::object* object = value.if_object()) {
    for (const auto& [key, member] : *object) {
      if (key == "$ref") {
        json::error_code error;
        EXPECT_NE(root.find_pointer(std::string_view(member.as_string()).substr(1), error), nullptr)
            << member;
      }
      expect_references(root, member);
    }
  } else if (const json::array* array = value.if_array()) {
    for (const json::value& member : *array) {
      expect_references(root, member);
    }
  }
}

TEST(OpenapiTest, EveryReferenceLeadsSomewhere) {
  const json::value root = description();
  EXPECT_EQ(root.at("openapi").as_string(), "3.1.0");
  EXPECT_EQ(root.at("info").at("version").as_string(), BERTH_VERSION);
  expect_references(root, root);
}

TEST(OpenapiTest, ThePageHasNoScriptAndNamesEveryRoute) {
  const std::string& page = openapi_page();
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("onclick"), std::string::npos);
  for (const Route& route : kRoutes) {
    EXPECT_THAT(page, testing::HasSubstr(std::string(route.path)));
  }
}

}  // namespace
}  // namespace berth
