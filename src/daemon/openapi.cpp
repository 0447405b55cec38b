#include "daemon/openapi.hpp"

#include <boost/json.hpp>
#include <charconv>

#include <fmt/format.h>

#include "base/assert.hpp"
#include "jobspec/yaml_tree.hpp"

namespace berth {
namespace {

namespace json = boost::json;

json::value scalar(const Node& node) {
  if (node.quoted) {
    return json::value(node.text);
  }
  if (node.text == "true" || node.text == "false") {
    return node.text == "true";
  }
  std::int64_t number = 0;
  const char* end = node.text.data() + node.text.size();
  const auto [at, error] = std::from_chars(node.text.data(), end, number);
  return error == std::errc() && at == end ? json::value(number) : json::value(node.text);
}

json::value to_json(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return nullptr;
    case Node::Kind::scalar:
      return scalar(node);
    case Node::Kind::list: {
      json::array out;
      for (const NodePtr& item : node.items) {
        out.push_back(to_json(*item));
      }
      return out;
    }
    case Node::Kind::map: {
      json::object out;
      for (const Node::Entry& entry : node.entries) {
        out.emplace(entry.key, to_json(*entry.value));
      }
      return out;
    }
  }
  return nullptr;
}

json::value description() {
  Diagnostics diagnostics("openapi.yaml");
  const NodePtr root = parse_yaml(openapi_yaml(), diagnostics);
  // It is part of the program, and a test reads it.
  BERTH_ASSERT(root != nullptr && diagnostics.empty());
  return to_json(*root);
}

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string text_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

/// As JSON with indentation: what people know how to read.
void print(std::string& out, const json::value& value, std::size_t depth) {
  const std::string indent(2 * depth, ' ');
  if (const json::object* object = value.if_object(); object != nullptr && !object->empty()) {
    out += "{\n";
    std::size_t left = object->size();
    for (const auto& [key, member] : *object) {
      out += fmt::format("{}  {}: ", indent, json::serialize(json::value(key)));
      print(out, member, depth + 1);
      out += --left == 0 ? "\n" : ",\n";
    }
    out += indent + "}";
    return;
  }
  out += json::serialize(value);
}

std::string pretty(const json::value& value) {
  std::string out;
  print(out, value, 0);
  return escape(out);
}

/// What stands where a "$ref" points to.
const json::value* resolve(const json::value& root, const json::value* value) {
  const json::object* object = value->if_object();
  const json::value* reference = object == nullptr ? nullptr : object->if_contains("$ref");
  if (reference == nullptr) {
    return value;
  }
  json::error_code error;
  const json::value* target =
      root.find_pointer(std::string_view(reference->as_string()).substr(1), error);
  return target == nullptr ? value : target;
}

std::string schema_text(const json::value& schema) {
  const json::object& object = schema.as_object();
  if (const json::value* reference = object.if_contains("$ref")) {
    const std::string_view path = reference->as_string();
    const std::string_view name = path.substr(path.rfind('/') + 1);
    return fmt::format("<a href=\"#schema-{}\">{}</a>", name, name);
  }
  return fmt::format("<code>{}</code>", escape(json::serialize(schema)));
}

std::string parameters_html(const json::value& root, const json::object& operation) {
  const json::value* list = operation.if_contains("parameters");
  if (list == nullptr) {
    return {};
  }
  std::string out = "<table><tr><th>parameter</th><th>in</th><th>what</th><th>form</th></tr>\n";
  for (const json::value& item : list->as_array()) {
    const json::object& parameter = resolve(root, &item)->as_object();
    out +=
        fmt::format("<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                    escape(text_of(parameter, "name")), text_of(parameter, "in"),
                    escape(text_of(parameter, "description")), schema_text(parameter.at("schema")));
  }
  return out + "</table>\n";
}

std::string content_html(const json::object& holder) {
  std::string out;
  if (const json::value* content = holder.if_contains("content")) {
    for (const auto& [type, media] : content->as_object()) {
      out += fmt::format(" <code>{}</code> {}", escape(type),
                         schema_text(media.as_object().at("schema")));
      if (const json::value* example = media.as_object().if_contains("example")) {
        out += fmt::format("\n<pre>{}</pre>", pretty(*example));
      }
    }
  }
  return out;
}

std::string operation_html(const json::value& root, std::string_view method, std::string_view path,
                           const json::object& operation) {
  std::string out = fmt::format(
      "<section id=\"{}\">\n<h3><span class=\"method\">{}</span> <code>{}</code></h3>\n<p>{} "
      "<small>({})</small></p>\n",
      text_of(operation, "operationId"), method, escape(path),
      escape(text_of(operation, "summary")), text_of(operation, "x-berth-scope"));
  if (const std::string more = text_of(operation, "description"); !more.empty()) {
    out += fmt::format("<p>{}</p>\n", escape(more));
  }
  out += parameters_html(root, operation);
  if (const json::value* body = operation.if_contains("requestBody")) {
    out += fmt::format("<p>Takes{}</p>\n", content_html(body->as_object()));
  }
  out += "<ul>\n";
  for (const auto& [status, response] : operation.at("responses").as_object()) {
    const json::object& answer = resolve(root, &response)->as_object();
    out += fmt::format("<li>{}: {}{}</li>\n", escape(status),
                       escape(text_of(answer, "description")), content_html(answer));
  }
  return out + "</ul>\n</section>\n";
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return out;
}

constexpr std::string_view kStyle =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color-scheme:light dark}code,pre{font:14px/1.5 ui-monospace,monospace}pre{overflow:auto}"
    "table{border-collapse:collapse}td,th{text-align:left;padding:.15rem .8rem .15rem 0;"
    "vertical-align:top}.method{display:inline-block;min-width:4.5rem}section{margin:2rem 0}";

std::string make_page() {
  const json::value root = description();
  const json::object& info = root.at("info").as_object();
  std::string contents;
  std::string operations;
  for (const auto& [path, item] : root.at("paths").as_object()) {
    for (const auto& [method, operation] : item.as_object()) {
      const std::string name = upper(method);
      contents += fmt::format(
          "<tr><td>{}</td><td><a href=\"#{}\"><code>{}</code></a></td><td>{}"
          "</td></tr>\n",
          name, text_of(operation.as_object(), "operationId"), escape(path),
          escape(text_of(operation.as_object(), "summary")));
      operations += operation_html(root, name, path, operation.as_object());
    }
  }
  std::string schemas;
  for (const auto& [name, schema] : root.at("components").at("schemas").as_object()) {
    const std::string_view id = name;
    schemas += fmt::format("<section id=\"schema-{}\"><h3>{}</h3>\n<pre>{}</pre></section>\n", id,
                           id, pretty(schema));
  }
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>berth API</title><style>{}</style></head>\n<body>\n"
      "<h1>{} {}</h1>\n<p>{}</p>\n<p><a "
      "href=\"/api/openapi.json\">openapi.json</a></p>\n<table>\n{}"
      "</table>\n{}<h2>Schemas</h2>\n{}</body></html>\n",
      kStyle, escape(text_of(info, "title")), escape(text_of(info, "version")),
      escape(text_of(info, "description")), contents, operations, schemas);
}

}  // namespace

const std::string& openapi_json() {
  static const std::string text = json::serialize(description());
  return text;
}

std::string openapi_json(std::string_view cookie) {
  json::value root = description();
  root.at("components").at("securitySchemes").at("cookie").at("name") = cookie;
  return json::serialize(root);
}

const std::string& openapi_page() {
  static const std::string text = make_page();
  return text;
}

}  // namespace berth
