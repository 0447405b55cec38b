#include "dialects/command_config.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "core/rule_table.hpp"
#include "jobspec/values.hpp"
#include "jobspec/yaml_tree.hpp"

namespace berth {
namespace {

constexpr std::array<std::string_view, 12> kKeys = {
    "check_time",       "maximize_resource_utilization",
    "memory_save_mode", "compete_gpus",
    "use_all_gpus",     "gpu_left",
    "min_gpu",          "max_gpu",
    "retry_config",     "work_dir",
    "gpu_command_file", "gpus_command_file"};
constexpr std::array<std::string_view, 2> kRetryKeys = {"max_retry_before_backoff",
                                                        "backoff_duration"};
constexpr std::int64_t kMostGpus = 1024;
constexpr std::int64_t kMostRetries = 1'000'000;
const Combination kNoMatrix;

/// What holds without a file.
Overrides usual_rules() {
  return {{"sample_age_max", "5s"},
          {"maximize_resource_utilization", "false"},
          {"strategy", "memory_spend"},
          {"retry_config.max_retry_before_backoff", "3"},
          {"retry_config.backoff_duration", "10m"}};
}

class ConfigReader {
 public:
  ConfigReader(const Node& root, Diagnostics& diagnostics)
      : root_(root), diagnostics_(diagnostics) {
    out_.rules = usual_rules();
  }

  CommandConfig read() {
    check_keys(root_, kKeys);
    read_seconds(root_, "check_time", "sample_age_max", Millis{1});
    if (const auto flag = read_flag("maximize_resource_utilization")) {
      out_.rules["maximize_resource_utilization"] = *flag ? "true" : "false";
    }
    if (read_flag("memory_save_mode").value_or(false)) {
      out_.rules["strategy"] = "memory_save";
    }
    read_cards();
    read_quota();
    if (const Node* retry = given(root_, "retry_config"); retry != nullptr) {
      read_retry(*retry);
    }
    read_work_dir();
    out_.gpu_command_file = read_path("gpu_command_file");
    out_.gpus_command_file = read_path("gpus_command_file");
    return std::move(out_);
  }

 private:
  /// A key that is there and not null.
  static const Node* given(const Node& map, std::string_view key) {
    const Node* node = map.find(key);
    return node == nullptr || node->kind == Node::Kind::null ? nullptr : node;
  }

  void check_keys(const Node& map, std::span<const std::string_view> keys) {
    for (const auto& entry : map.entries) {
      if (std::ranges::find(keys, entry.key) == keys.end()) {
        diagnostics_.add(entry.key_at,
                         fmt::format("unknown key '{}'{}", entry.key, key_hint(entry.key, keys)));
      }
    }
  }

  std::optional<bool> read_flag(std::string_view key) {
    const Node* node = given(root_, key);
    const auto text =
        node != nullptr ? read_text(*node, key, kNoMatrix, diagnostics_) : std::nullopt;
    if (!text) {
      return std::nullopt;
    }
    std::string lower(*text);
    std::ranges::transform(lower, lower.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (lower == "true" || lower == "yes" || lower == "on") {
      return true;
    }
    if (lower != "false" && lower != "no" && lower != "off") {
      diagnostics_.add(node->at, fmt::format("'{}' must be true or false, not '{}'", key, *text));
      return std::nullopt;
    }
    return false;
  }

  std::optional<std::uint32_t> read_count(const Node& map, std::string_view key, std::int64_t min,
                                          std::int64_t max) {
    const Node* node = given(map, key);
    const auto count = node != nullptr ? read_integer(*node, key, min, max, kNoMatrix, diagnostics_)
                                       : std::nullopt;
    return count ? std::optional(static_cast<std::uint32_t>(*count)) : std::nullopt;
  }

  void read_seconds(const Node& map, std::string_view key, const char* rule, Millis min) {
    const Node* node = given(map, key);
    const auto text =
        node != nullptr ? read_text(*node, key, kNoMatrix, diagnostics_) : std::nullopt;
    if (!text) {
      return;
    }
    const bool plain = text->find_first_not_of("0123456789.") == std::string::npos;
    const auto time = plain ? parse_duration(*text) : fail(ErrorCode::invalid, "");
    if (!time || *time < min) {
      diagnostics_.add(node->at, fmt::format("'{}' must be a number of seconds{}, not '{}'", key,
                                             min > Millis{0} ? " greater than 0" : "", *text));
      return;
    }
    out_.rules[rule] = exact_duration(*time);
  }

  /// `compete_gpus` counts unless `use_all_gpus` says otherwise.
  void read_cards() {
    const auto all = read_flag("use_all_gpus");
    const Node* list = given(root_, "compete_gpus");
    std::string cards;
    std::set<std::int64_t> listed;
    if (list != nullptr && list->kind != Node::Kind::list) {
      diagnostics_.add(list->at, fmt::format("'compete_gpus' must be a list such as [0, 1], this "
                                             "is {}",
                                             describe(list->kind)));
      return;
    }
    for (const auto& item : list != nullptr ? list->items : std::vector<NodePtr>()) {
      const auto index =
          read_integer(*item, "compete_gpus", 0, kMostGpus - 1, kNoMatrix, diagnostics_);
      cards += index ? fmt::format("{}{}", cards.empty() ? "" : ",", *index) : "";
      listed.insert(index.value_or(-1));
    }
    if (all == true || (!all && cards.empty())) {
      return;
    }
    if (cards.empty()) {
      const Node* at = list != nullptr ? list : root_.find("use_all_gpus");
      diagnostics_.add_once(at->at,
                            "'use_all_gpus' is false and 'compete_gpus' lists no card; list some, "
                            "as in [0, 1], or say use_all_gpus: true");
      return;
    }
    out_.rules["gpus"] = cards;
    out_.listed_gpus = static_cast<std::uint32_t>(listed.size());
  }

  /// min(max_gpu, max(min_gpu, available - gpu_left)).
  void read_quota() {
    const auto left = read_count(root_, "gpu_left", 0, kMostGpus);
    const auto min = read_count(root_, "min_gpu", 0, kMostGpus);
    out_.max_gpu = read_count(root_, "max_gpu", 1, kMostGpus);
    if (left) {
      out_.rules["gpu_left"] = std::to_string(*left);
      // With a minimum the last cards cannot be left alone in any case, only so many cards.
      out_.rules["gpu_left_mode"] = min.value_or(0) > 0 ? "any" : "last";
      if (min.value_or(0) == 0 && out_.listed_gpus && *left >= *out_.listed_gpus) {
        out_.warnings.emplace_back(
            root_.find("gpu_left")->at,
            fmt::format("'gpu_left' is {} and 'compete_gpus' lists {}: no card is left that a task "
                        "could use, and none ever starts; lower 'gpu_left', or give a 'min_gpu'",
                        *left, *out_.listed_gpus));
      }
    }
    if (min) {
      out_.rules["min_gpu"] = std::to_string(*min);
    }
    if (out_.max_gpu) {
      out_.rules["max_gpu"] = std::to_string(*out_.max_gpu);
    }
    if (min && out_.max_gpu && *min > *out_.max_gpu) {
      out_.warnings.emplace_back(
          root_.find("min_gpu")->at,
          fmt::format("'min_gpu' is {} and 'max_gpu' {}: the smaller one holds", *min,
                      *out_.max_gpu));
    }
  }

  void read_retry(const Node& map) {
    if (map.kind != Node::Kind::map) {
      diagnostics_.add(map.at,
                       fmt::format("'retry_config' must be a map with max_retry_before_backoff and "
                                   "backoff_duration, this is {}",
                                   describe(map.kind)));
      return;
    }
    check_keys(map, kRetryKeys);
    if (const auto count = read_count(map, "max_retry_before_backoff", 0, kMostRetries)) {
      out_.rules["retry_config.max_retry_before_backoff"] = std::to_string(*count);
    }
    read_seconds(map, "backoff_duration", "retry_config.backoff_duration", Millis{0});
  }

  std::optional<NamedPath> read_path(std::string_view key) {
    const Node* node = given(root_, key);
    auto text = node != nullptr ? read_text(*node, key, kNoMatrix, diagnostics_) : std::nullopt;
    if (text && text->starts_with('~')) {
      diagnostics_.add(node->at, fmt::format("'{}': write the whole path instead of '~'", key));
    }
    return text && !text->empty() ? std::optional(NamedPath{*text, node->at}) : std::nullopt;
  }

  void read_work_dir() {
    out_.work_dir = read_path("work_dir");
    if (out_.work_dir && out_.work_dir->path.find('$') != std::string::npos) {
      out_.warnings.emplace_back(out_.work_dir->at,
                                 fmt::format("'work_dir' is taken as it is written, '{}' with its "
                                             "'$'; write the whole path instead of a variable",
                                             out_.work_dir->path));
    }
  }

  const Node& root_;
  Diagnostics& diagnostics_;
  CommandConfig out_;
};

/// The word before a colon at the beginning of a line; empty: there is none.
std::string_view key_of(std::string_view line) {
  const auto colon = line.find(':');
  return colon == std::string_view::npos ? std::string_view() : line.substr(0, colon);
}

bool is_config_key(std::string_view key) {
  return std::ranges::find(kKeys, key) != kKeys.end();
}

/// Of a job file, or of a job that somebody has left alone in one.
bool is_job_file_key(std::string_view key) {
  return key == "jobs" || key == "version" || key == "run";
}

bool begins_map_in_braces(std::string_view text) {
  text = without_mark(text);
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

enum class Indented { no, too };

template <class Test>
bool any_key(std::string_view text, const Test& test, Indented indented = Indented::no) {
  text = without_mark(text);
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (indented == Indented::too) {
      line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    }
    if (test(key_of(line))) {
      return true;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

}  // namespace

CommandConfig read_command_config(std::string_view text, Diagnostics& diagnostics) {
  CommandConfig usual;
  usual.rules = usual_rules();
  const auto root = parse_yaml(without_mark(text), diagnostics);
  if (root == nullptr || root->kind == Node::Kind::null) {
    return usual;
  }
  if (root->kind != Node::Kind::map) {
    diagnostics.add(root->at, fmt::format("a configuration is a map such as check_time: 5, this is "
                                          "{}",
                                          describe(root->kind)));
    return usual;
  }
  return ConfigReader(*root, diagnostics).read();
}

bool looks_like_command_config(std::string_view text) {
  const auto is = [text](std::string_view key) {
    return any_key(text, [key](std::string_view found) { return found == key; });
  };
  if (is("jobs")) {
    return false;
  }
  if (is("gpu_command_file") || is("gpus_command_file")) {
    return true;
  }
  // Its other keys may begin a line of a command file, too: then it is no map.
  if (!any_key(text, is_config_key) && !begins_map_in_braces(text)) {
    return false;
  }
  Diagnostics ignored("");
  const auto root = parse_yaml(without_mark(text), ignored);
  return root != nullptr && std::ranges::any_of(root->entries, is_config_key, &Node::Entry::key) &&
         std::ranges::none_of(root->entries, is_job_file_key, &Node::Entry::key);
}

bool has_config_key(std::string_view text) {
  // By its lines first, for a file that is no YAML yet should be told so.
  if (any_key(text, is_config_key)) {
    return true;
  }
  Diagnostics ignored("");
  const auto root = parse_yaml(without_mark(text), ignored);
  if (root != nullptr) {
    return std::ranges::any_of(root->entries, is_config_key, &Node::Entry::key);
  }
  // Lines that are indented wrongly are the most usual reason why it is none.
  return any_key(text, is_config_key, Indented::too);
}

std::filesystem::path resolve_work_dir(const std::optional<NamedPath>& work_dir,
                                       const std::filesystem::path& script_dir) {
  auto path = (script_dir / (work_dir ? work_dir->path : "..")).lexically_normal();
  if (!path.has_filename() && path.has_relative_path()) {
    path = path.parent_path();  // without the slash at its end
  }
  return path;
}

std::filesystem::path with_index(const std::filesystem::path& command_file, std::uint32_t index) {
  if (index == 0) {
    return command_file;
  }
  auto path = command_file;
  return path.replace_filename(fmt::format("{}_{}{}", command_file.stem().native(), index,
                                           command_file.extension().native()));
}

std::uint32_t index_of(const std::filesystem::path& command_file) {
  const auto stem = command_file.stem().native();
  const auto bar = stem.rfind('_');
  std::uint32_t index = 0;
  if (bar == std::string::npos || bar + 1 == stem.size()) {
    return 0;
  }
  const auto* end = stem.data() + stem.size();
  const auto [stop, error] = std::from_chars(stem.data() + bar + 1, end, index);
  return error == std::errc{} && stop == end ? index : 0;
}

}  // namespace berth
