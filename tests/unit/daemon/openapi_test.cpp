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

/// A comma in a text without quotes begins another key, which nobody reads and which has no value.
void expect_known(const json::value& value, const std::set<std::string_view>& known,
                  const std::string& where) {
  for (const auto& [key, member] : value.as_object()) {
    EXPECT_TRUE(known.contains(key)) << where << " has '" << key << "'; is a comma not in quotes?";
  }
}

/// What a schema of ours is made of, and what in it is a schema again.
void expect_schema(const json::value& schema, const std::string& where) {
  expect_known(schema,
               {"$ref",
                "type",
                "description",
                "properties",
                "additionalProperties",
                "required",
                "items",
                "anyOf",
                "allOf",
                "oneOf",
                "enum",
                "const",
                "default",
                "pattern",
                "format",
                "minimum",
                "maximum",
                "exclusiveMinimum",
                "minLength",
                "maxLength",
                "minItems",
                "maxItems",
                "uniqueItems",
                "minProperties",
                "maxProperties",
                "propertyNames"},
               where);
  for (const auto& [key, member] : schema.as_object()) {
    const std::string inside = where + "/" + std::string(key);
    if (key == "properties") {
      for (const auto& [name, property] : member.as_object()) {
        expect_schema(property, inside + "/" + std::string(name));
      }
    } else if (key == "anyOf" || key == "allOf" || key == "oneOf") {
      for (const json::value& one : member.as_array()) {
        expect_schema(one, inside);
      }
    } else if ((key == "items" || key == "additionalProperties" || key == "propertyNames") &&
               member.is_object()) {
      expect_schema(member, inside);
    }
  }
}

/// Everything that stands under "schema", wherever that is; and that nothing but data is null.
void expect_sound(const json::value& value, const std::string& where) {
  if (const json::object* object = value.if_object()) {
    for (const auto& [key, member] : *object) {
      const std::string inside = where + "/" + std::string(key);
      if (key == "schema") {
        expect_schema(member, inside);
      } else if (key == "example" || key == "enum" || key == "const" || key == "default") {
        continue;
      }
      EXPECT_FALSE(member.is_null()) << inside;
      expect_sound(member, inside);
    }
  } else if (const json::array* array = value.if_array()) {
    for (const json::value& member : *array) {
      EXPECT_FALSE(member.is_null()) << where;
      expect_sound(member, where);
    }
  }
}

TEST(OpenapiTest, NoTextHasLostWhatStandsBehindAComma) {
  const json::value root = description();
  expect_sound(root, "");
  for (const json::value& tag : root.at("tags").as_array()) {
    expect_known(tag, {"name", "description"}, "tags");
  }
  for (const auto& [name, schema] : root.at("components").at("schemas").as_object()) {
    expect_schema(schema, std::string(name));
  }
  for (const auto& [name, parameter] : root.at("components").at("parameters").as_object()) {
    expect_known(parameter, {"name", "in", "required", "description", "schema"}, std::string(name));
  }
  for (const auto& [path, item] : root.at("paths").as_object()) {
    for (const auto& [method, operation] : item.as_object()) {
      const std::string where = std::string(method) + " " + std::string(path);
      expect_known(operation,
                   {"operationId", "tags", "summary", "description", "x-berth-scope", "parameters",
                    "requestBody", "responses", "security"},
                   where);
      if (const json::value* list = operation.as_object().if_contains("parameters")) {
        for (const json::value& one : list->as_array()) {
          expect_known(one, {"$ref", "name", "in", "required", "description", "schema"}, where);
        }
      }
      for (const auto& [status, response] : operation.at("responses").as_object()) {
        expect_known(response, {"$ref", "description", "content", "headers"}, where);
      }
    }
  }
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
