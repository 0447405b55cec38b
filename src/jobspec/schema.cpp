#include "jobspec/schema.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/rule_table.hpp"
#include "jobspec/json_text.hpp"
#include "jobspec/keys.hpp"

namespace berth {
namespace {

/// Where the matrix fills in a value, any text with a placeholder will do.
constexpr std::string_view kPlaceholder = R"(\{[A-Za-z_][A-Za-z0-9_-]*\})";
constexpr std::string_view kLabel = R"(^[^ ,=\u0000-\u001f\u007f]+$)";
constexpr std::string_view kSize =
    R"(^\s*[0-9]*\.?[0-9]+\s*([KMGTPkmgtp][Ii]?[Bb]?|[Bb]([Yy][Tt][Ee][Ss]?)?)?\s*$)";
constexpr std::string_view kDuration =
    R"(^\s*([0-9]*\.?[0-9]+\s*([A-Za-z]+\s*([0-9]*\.?[0-9]+\s*[A-Za-z]+\s*)*)?)"
    R"(|[0-9]+:[0-9]{2}:[0-9]{2}|[0-9]+-[0-9]{1,2}(:[0-9]{2}){0,2})"
    R"(|[Pp]([0-9]*\.?[0-9]+[WDwd])*([Tt]([0-9]*\.?[0-9]+[HMShms])+)?)\s*$)";

/// JSON with two blanks of indentation per level, as a person would write it.
class Writer {
 public:
  void open(std::string_view key = {}) { begin(key, '{'); }
  void close() { end('}'); }
  void open_list(std::string_view key = {}) { begin(key, '['); }
  void close_list() { end(']'); }
  void raw(std::string_view key, std::string_view json) {
    next(key);
    out_ += json;
  }
  void text(std::string_view key, std::string_view value) { raw(key, json_string(value)); }
  void ref(std::string_view name) { text("$ref", fmt::format("#/$defs/{}", name)); }
  void pattern(std::string_view own) { text("pattern", fmt::format("{}|{}", own, kPlaceholder)); }

  [[nodiscard]] std::string take() { return std::move(out_) + "\n"; }

 private:
  void begin(std::string_view key, char bracket) {
    next(key);
    out_ += bracket;
    first_.push_back(true);
  }
  void end(char bracket) {
    first_.pop_back();
    out_ += "\n" + std::string(2 * first_.size(), ' ') + bracket;
  }
  void next(std::string_view key) {
    if (!first_.empty()) {
      out_ += first_.back() ? "\n" : ",\n";
      first_.back() = false;
      out_ += std::string(2 * first_.size(), ' ');
    }
    if (!key.empty()) {
      out_ += json_string(key) + ": ";
    }
  }

  std::string out_;
  std::vector<bool> first_;
};

constexpr std::string_view kTextTypes = R"(["string", "number", "boolean"])";

/// A whole number, or a text that is one or will be one.
void integer(Writer& w, std::int64_t min, std::int64_t max) {
  w.open_list("anyOf");
  w.open();
  w.text("type", "integer");
  w.raw("minimum", std::to_string(min));
  w.raw("maximum", std::to_string(max));
  w.close();
  w.open();
  w.text("type", "string");
  w.pattern("^-?[0-9]+$");
  w.close();
  w.close_list();
}

std::string_view definition_of(ValueShape shape) {
  switch (shape) {
    case ValueShape::text:
      return "text";
    case ValueShape::commands:
      return "commands";
    case ValueShape::matrix:
      return "matrix";
    case ValueShape::gpu_count:
      return "gpu_count";
    case ValueShape::size:
      return "size";
    case ValueShape::duration:
      return "duration";
    case ValueShape::moment:
      return "text";
    case ValueShape::after:
      return "after";
    case ValueShape::own_rules:
      return "own_rules";
    case ValueShape::counts:
      return "counts";
    case ValueShape::names:
      return "names";
    case ValueShape::variables:
      return "variables";
    case ValueShape::flag:
      return "flag";
    case ValueShape::fingerprint:
      return "fingerprint";
    case ValueShape::files:
      return "files";
    case ValueShape::warning:
      return "warning";
    case ValueShape::queues:
      return "queues";
    case ValueShape::job:
      return "job";
    case ValueShape::rules:
      return "rules";
    case ValueShape::version:
    case ValueShape::integer:
    case ValueShape::jobs:
      break;
  }
  return {};
}

void property(Writer& w, const KeyInfo& key) {
  w.open(key.name);
  w.text("description", key.help);
  if (!key.fallback.empty()) {
    w.raw("default", key.fallback);
  }
  switch (key.shape) {
    case ValueShape::version:
      w.raw("enum", R"([1, "1"])");
      break;
    case ValueShape::integer:
      integer(w, key.min, key.max);
      break;
    case ValueShape::jobs:
      w.text("type", "array");
      w.raw("minItems", "1");
      w.raw("items", R"({"$ref": "#/$defs/job"})");
      break;
    default:
      w.ref(definition_of(key.shape));
  }
  w.close();
}

/// What a rule may hold. Any of them may be filled in by the matrix.
void rule(Writer& w, const RuleDef& def, std::string_view name) {
  w.open(name);
  w.text("description", def.help);
  if (def.type == "N") {
    integer(w, 0, std::numeric_limits<std::int32_t>::max());
  } else if (def.type == "SIZE" && def.key != "min_free_memory") {
    w.ref("size");
  } else if (def.type == "TIME") {
    w.ref("duration");
  } else if (def.type == "PERCENT") {
    w.ref("percent");
  } else if (def.type == "BOOL") {
    w.ref("switch");
  } else if (def.type == "LIST") {
    w.ref("names");
  } else if (def.type != "default|N" && def.type.find('|') != std::string_view::npos) {
    w.open_list("anyOf");
    w.open();
    w.open_list("enum");
    for (std::size_t begin = 0; begin <= def.type.size();) {
      const auto end = std::min(def.type.find('|', begin), def.type.size());
      w.text({}, def.type.substr(begin, end - begin));
      begin = end + 1;
    }
    w.close_list();
    w.close();
    w.open();
    w.text("type", "string");
    w.text("pattern", kPlaceholder);
    w.close();
    w.close_list();
  } else {
    w.ref("text");
  }
  w.close();
}

/// The rules of a scope: flat, with dots, and as maps of those that belong together.
void rules(Writer& w, RuleScope scope, std::span<const KeyInfo> beside) {
  std::map<std::string_view, std::vector<const RuleDef*>> groups;
  for (const RuleDef& def : rule_definitions()) {
    if (def.scope < scope || std::ranges::find(beside, def.key, &KeyInfo::name) != beside.end()) {
      continue;
    }
    rule(w, def, def.key);
    if (const auto dot = def.key.find('.'); dot != std::string_view::npos) {
      groups[def.key.substr(0, dot)].push_back(&def);
    }
  }
  for (const auto& [group, members] : groups) {
    w.open(group);
    w.text("description", "Rules that belong together, as a map.");
    w.text("type", "object");
    w.raw("additionalProperties", "false");
    w.open("properties");
    for (const RuleDef* def : members) {
      rule(w, *def, def->key.substr(group.size() + 1));
    }
    w.close();
    w.close();
  }
}

void properties(Writer& w, std::span<const KeyInfo> keys, std::optional<RuleScope> scope = {}) {
  w.text("type", "object");
  w.raw("additionalProperties", "false");
  w.open("properties");
  for (const auto& key : keys) {
    property(w, key);
  }
  if (scope) {
    rules(w, *scope, keys);
  }
  w.close();
}

/// A number, or a text of a certain form.
void number_or(Writer& w, std::string_view name, std::string_view type, std::string_view pattern,
               std::string_view maximum = {}) {
  w.open(name);
  w.open_list("anyOf");
  w.open();
  w.text("type", type);
  w.raw("minimum", "0");
  if (!maximum.empty()) {
    w.raw("maximum", maximum);
  }
  w.close();
  w.open();
  w.text("type", "string");
  w.pattern(pattern);
  w.close();
  w.close_list();
  w.close();
}

void define_matrix(Writer& w) {
  constexpr std::string_view kWord = "^[A-Za-z_][A-Za-z0-9_-]*$";
  w.open("combinations");
  w.text("type", "array");
  w.raw("minItems", "1");
  w.open("items");
  w.text("type", "object");
  w.raw("minProperties", "1");
  w.raw("propertyNames", fmt::format(R"({{"pattern": {}}})", json_string(kWord)));
  w.raw("additionalProperties", R"({"$ref": "#/$defs/text"})");
  w.close();
  w.close();

  w.open("matrix");
  w.open_list("anyOf");
  w.raw({}, R"({"$ref": "#/$defs/combinations"})");
  w.open();
  w.text("type", "object");
  w.raw("minProperties", "1");
  w.raw("propertyNames", fmt::format(R"({{"pattern": {}}})", json_string(kWord)));
  w.open("properties");
  w.raw("include", R"({"$ref": "#/$defs/combinations"})");
  w.raw("csv", R"({"type": "string", "minLength": 1})");
  w.open("zip");
  w.open_list("anyOf");
  w.raw({}, R"({"$ref": "#/$defs/zip"})");
  w.raw({}, R"({"type": "array", "items": {"$ref": "#/$defs/zip"}})");
  w.close_list();
  w.close();
  w.close();
  w.raw("additionalProperties", R"({"$ref": "#/$defs/axis"})");
  w.close();
  w.close_list();
  w.close();

  w.open("zip");
  w.text("type", "object");
  w.raw("minProperties", "1");
  w.raw("propertyNames", fmt::format(R"({{"pattern": {}}})", json_string(kWord)));
  w.raw("additionalProperties", R"({"$ref": "#/$defs/axis"})");
  w.close();

  w.open("axis");
  w.open_list("anyOf");
  w.raw({}, R"({"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/text"}})");
  w.open();
  w.text("type", "string");
  w.text("pattern", R"(,|[0-9]\.\.|^\s*(linear|log)\()");
  w.close();
  w.open();
  w.text("type", "object");
  w.raw("minProperties", "1");
  w.raw("maxProperties", "1");
  w.raw("additionalProperties", "false");
  w.open("properties");
  for (const std::string_view scale : {"linear", "log"}) {
    w.raw(scale,
          R"({"type": "array", "minItems": 3, "maxItems": 3, "items": {"$ref": "#/$defs/text"}})");
  }
  w.close();
  w.close();
  w.close_list();
  w.close();
}

void define_values(Writer& w) {
  w.raw("text", fmt::format(R"({{"type": {}}})", kTextTypes));
  w.raw("text_or_nothing", R"({"anyOf": [{"$ref": "#/$defs/text"}, {"type": "null"}]})");
  number_or(w, "size", "integer", kSize);
  number_or(w, "duration", "number", kDuration);
  number_or(w, "percent", "integer", "^[0-9]+%?$", "100");
  number_or(w, "gpu_count", "integer", R"(^[0-9]+(\.\.[0-9]+)?$)", std::to_string(kMostGpus));

  w.open("flag");
  w.open_list("anyOf");
  w.raw({}, R"({"type": "boolean"})");
  w.open();
  w.text("type", "string");
  w.pattern("^(true|false)$");
  w.close();
  w.close_list();
  w.close();

  w.open("switch");
  w.open_list("anyOf");
  w.raw({}, R"({"type": "boolean"})");
  w.raw({}, R"({"enum": [0, 1]})");
  w.open();
  w.text("type", "string");
  w.pattern("^(true|false|yes|no|on|off|0|1)$");
  w.close();
  w.close_list();
  w.close();

  w.open("fingerprint");
  w.text("type", "string");
  w.text("pattern", "^[0-9a-f]{16}$");
  w.close();

  w.open("warning");
  w.open_list("anyOf");
  w.raw({}, R"({"$ref": "#/$defs/text"})");
  w.open();
  w.text("type", "object");
  w.raw("additionalProperties", "false");
  w.raw("required", R"(["name"])");
  w.open("properties");
  w.raw("name", R"({"$ref": "#/$defs/text"})");
  w.raw("before", R"({"$ref": "#/$defs/duration"})");
  w.close();
  w.close();
  w.close_list();
  w.close();

  w.open("names");
  w.open_list("anyOf");
  w.raw({}, R"({"$ref": "#/$defs/text"})");
  w.raw({}, R"({"type": "array", "items": {"$ref": "#/$defs/text"}})");
  w.close_list();
  w.close();

  w.open("after");
  w.open_list("anyOf");
  w.raw({}, R"({"$ref": "#/$defs/names"})");
  w.open();
  w.text("type", "object");
  w.raw("additionalProperties", "false");
  w.raw("minProperties", "1");
  w.raw("maxProperties", "1");
  w.open("properties");
  for (const std::string_view kind : {"ok", "any", "failed"}) {
    w.raw(kind, R"({"$ref": "#/$defs/names"})");
  }
  w.close();
  w.close();
  w.close_list();
  w.close();

  w.open("command");
  w.open_list("anyOf");
  w.raw({}, R"({"$ref": "#/$defs/text"})");
  w.raw({}, R"({"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/text"}})");
  w.close_list();
  w.close();
  w.open("commands");
  w.open_list("anyOf");
  w.raw({}, R"({"$ref": "#/$defs/text"})");
  w.raw({}, R"({"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/command"}})");
  w.close_list();
  w.close();

  w.open("counts");
  w.text("type", "object");
  w.raw("propertyNames", fmt::format(R"({{"pattern": {}}})", json_string(kLabel)));
  w.open("additionalProperties");
  integer(w, 0, kMostOfAResource);
  w.close();
  w.close();

  w.open("variables");
  w.text("type", "object");
  w.raw("propertyNames", R"({"pattern": "^[^=]+$"})");
  w.raw("additionalProperties", R"({"$ref": "#/$defs/text_or_nothing"})");
  w.close();
}

void define_queues(Writer& w) {
  w.open("queues");
  w.text("type", "object");
  w.raw("propertyNames", fmt::format(R"({{"pattern": {}}})", json_string(kLabel)));
  w.open("additionalProperties");
  w.open_list("anyOf");
  w.raw({}, R"({"type": "null"})");
  w.open();
  integer(w, 0, kMostConcurrent);
  w.close();
  w.open();
  properties(w, kQueueKeys, RuleScope::any);
  w.close();
  w.close_list();
  w.close();
  w.close();
}

}  // namespace

std::string job_file_schema() {
  Writer w;
  w.open();
  w.text("$schema", "https://json-schema.org/draft/2020-12/schema");
  w.text("$id", "urn:berth:jobfile:1");
  w.text("title", "berth job file, version 1");
  w.text("description", "Jobs for berth. Check a file with: berth check FILE");
  properties(w, kTopKeys);
  w.raw("required", R"(["version", "jobs"])");
  w.raw("if", R"({"required": ["defaults"], "properties": {"defaults": {"required": ["run"]}}})");
  w.raw("else", R"({"properties": {"jobs": {"items": {"required": ["run"]}}}})");
  w.open("$defs");
  w.open("job");
  properties(w, kJobKeys, RuleScope::any);
  w.close();
  w.open("own_rules");
  properties(w, {}, RuleScope::any);
  w.close();
  w.open("rules");
  properties(w, kRuleKeys, RuleScope::batch);
  w.close();
  w.open("files");
  properties(w, kFilesKeys);
  w.close();
  define_queues(w);
  define_matrix(w);
  define_values(w);
  w.close();
  w.close();
  return w.take();
}

}  // namespace berth
