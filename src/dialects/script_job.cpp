#include "dialects/script_job.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace berth {
namespace {

NodePtr scalar(std::string text, Position at) {
  auto node = std::make_shared<Node>();
  node->kind = Node::Kind::scalar;
  node->text = std::move(text);
  node->at = at;
  return node;
}

const ScriptOption* find(std::span<const ScriptOption> known, std::string_view name) {
  const auto found = std::ranges::find(known, name, &ScriptOption::name);
  return found == known.end() ? nullptr : &*found;
}

const ScriptOption* find(std::span<const ScriptOption> known, char letter) {
  const auto found = std::ranges::find(known, letter, &ScriptOption::letter);
  return found == known.end() ? nullptr : &*found;
}

void warn_unknown(std::string_view word, std::span<const ScriptOption> known, Position at,
                  const ScriptReport& report) {
  std::vector<std::string_view> names;
  for (const auto& option : known) {
    names.push_back(option.name);
  }
  report.warn(
      at, fmt::format("'{}' is not known here and is left out{}", word, did_you_mean(word, names)));
}

}  // namespace

std::shared_ptr<Node> NativeKeys::replace(std::string_view key, Node::Kind kind, Position at) {
  auto node = std::make_shared<Node>();
  node->kind = kind;
  node->at = at;
  std::erase_if(map_->entries, [&](const Node::Entry& entry) { return entry.key == key; });
  map_->entries.push_back({std::string(key), at, node});
  return node;
}

void NativeKeys::set(std::string_view key, std::string text, Position at) {
  replace(key, Node::Kind::scalar, at)->text = std::move(text);
}

void NativeKeys::set_start(std::string_view key, std::string text, Position at) {
  std::erase_if(map_->entries,
                [](const Node::Entry& entry) { return entry.key == "at" || entry.key == "in"; });
  set(key, std::move(text), at);
}

void NativeKeys::put(std::string_view key, std::string name, std::string text, Position at) {
  auto& node = nested_[std::string(key)];
  if (node == nullptr) {
    node = replace(key, Node::Kind::map, at);
  }
  std::erase_if(node->entries, [&](const Node::Entry& entry) { return entry.key == name; });
  node->entries.push_back({std::move(name), at, scalar(std::move(text), at)});
}

void NativeKeys::set_list(std::string_view key, const std::vector<std::string>& texts,
                          Position at) {
  const auto node = replace(key, Node::Kind::list, at);
  for (const auto& text : texts) {
    node->items.push_back(scalar(text, at));
  }
}

std::vector<GivenOption> read_options(const DirectiveLine& line,
                                      std::span<const ScriptOption> known,
                                      const ScriptReport& report) {
  std::vector<GivenOption> out;
  const auto& words = line.words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto& [word, at] = words[i];
    const bool is_long = word.starts_with("--") && word.size() > 2;
    const bool is_letter = !is_long && word.size() > 1 && word[0] == '-';
    if (!is_long && !is_letter) {
      report.warn(at, fmt::format("'{}' is no option and is left out", word));
      continue;
    }
    const auto equals = is_long ? word.find('=') : std::string::npos;
    const auto name = is_long ? word.substr(0, equals) : word.substr(0, 2);
    const auto* option = is_long ? find(known, name) : find(known, word[1]);
    if (option == nullptr) {
      warn_unknown(name, known, at, report);
      const bool alone = equals == std::string::npos && word.size() == name.size();
      // What follows is most likely its value.
      i += alone && i + 1 < words.size() && !words[i + 1].text.starts_with('-') ? 1 : 0;
      continue;
    }
    GivenOption given{std::string(option->name), {}, at};
    if (equals != std::string::npos) {
      given.value = word.substr(equals + 1);
    } else if (is_letter && word.size() > 2) {
      given.value = word.substr(2);
    } else if (option->takes == Takes::value && i + 1 < words.size()) {
      given.value = words[++i].text;
    }
    if (option->takes == Takes::value && given.value.empty()) {
      report.diagnostics.add(at, fmt::format("'{}' needs a value", name));
      continue;
    }
    out.push_back(std::move(given));
  }
  return out;
}

bool set_after_kind(ScriptJob& job, After kind, Position at, const ScriptReport& report) {
  if ((!job.after.empty() || !job.after_arrays.empty()) && job.after_kind != kind) {
    report.diagnostics.add(at,
                           "a job has one kind of dependency: all must succeed, all must end, or "
                           "all must fail; let a job without GPUs wait for the others, as in "
                           "'berth add --gpus 0 --after-any 3 true', and follow that one");
    return false;
  }
  job.after_kind = kind;
  return true;
}

}  // namespace berth
