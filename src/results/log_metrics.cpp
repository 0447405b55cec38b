#include "results/log_metrics.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <utility>

#include "results/known_metrics.hpp"

namespace berth {
namespace {

constexpr std::string_view kBlanks = " \t";
/// The bars of Lightning's tables, as UTF-8.
constexpr std::array<std::string_view, 3> kBars{"\xe2\x94\x82", "\xe2\x94\x83", "|"};
constexpr std::size_t kNameMax = 80;

/// Words that belong to the name behind them, as in "best test accuracy".
constexpr std::array<std::string_view, 16> kPrefixes{
    "train", "training", "val",  "valid", "validation", "test",  "testing", "eval",
    "best",  "final",    "mean", "avg",   "average",    "top-1", "top-5",   "global"};

/// The same in Chinese, where no blank separates them: 测试集准确率.
constexpr std::array kChinese{
    std::pair{std::string_view("准确率"), std::string_view("accuracy")},
    std::pair{std::string_view("正确率"), std::string_view("accuracy")},
    std::pair{std::string_view("精确率"), std::string_view("precision")},
    std::pair{std::string_view("召回率"), std::string_view("recall")},
    std::pair{std::string_view("损失值"), std::string_view("loss")},
    std::pair{std::string_view("损失"), std::string_view("loss")},
    std::pair{std::string_view("困惑度"), std::string_view("perplexity")}};
constexpr std::array kChinesePrefixes{
    std::pair{std::string_view("训练"), std::string_view("train_")},
    std::pair{std::string_view("测试"), std::string_view("test_")},
    std::pair{std::string_view("验证"), std::string_view("val_")},
    std::pair{std::string_view("最佳"), std::string_view("best_")},
    std::pair{std::string_view("最好"), std::string_view("best_")},
    std::pair{std::string_view("最终"), std::string_view("final_")},
    std::pair{std::string_view("平均"), std::string_view("average_")},
    std::pair{std::string_view("当前"), std::string_view("")},
    std::pair{std::string_view("集"), std::string_view("")},
    std::pair{std::string_view("的"), std::string_view("")}};
constexpr std::string_view kWideColon = "：";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name_byte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '/' || c == '.' ||
         c == '@' || c == '-';
}

/// Takes away what is at the end of `text`.
void trim_end(std::string_view& text, std::string_view these) {
  while (!text.empty() && these.find(text.back()) != std::string_view::npos) {
    text.remove_suffix(1);
  }
}

bool trim_bar(std::string_view& text) {
  for (const std::string_view bar : kBars) {
    if (text.ends_with(bar)) {
      text.remove_suffix(bar.size());
      return true;
    }
  }
  return false;
}

/// The name `before` ends with, taken away from it; empty: it ends with something else.
std::string_view take_name(std::string_view& before) {
  std::size_t length = 0;
  while (length < before.size() && length <= kNameMax &&
         is_name_byte(before[before.size() - length - 1])) {
    ++length;
  }
  std::string_view name = before.substr(before.size() - length);
  while (!name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) == 0) {
    name.remove_prefix(1);
  }
  if (name.empty() || length > kNameMax) {
    return {};
  }
  before.remove_suffix(name.size());
  return name;
}

/// The name in Chinese that `before` ends with, as English has it; empty: it ends with none, or
/// with one that something unknown belongs to, as in 目标准确率, the accuracy that is aimed at.
std::string take_chinese_name(std::string_view& before) {
  const auto take = [&](const auto& words) {
    const auto found =
        std::ranges::find_if(words, [&](const auto& word) { return before.ends_with(word.first); });
    if (found != words.end()) {
      before.remove_suffix(found->first.size());
    }
    return found;
  };
  const std::string_view all = before;
  const auto metric = take(kChinese);
  if (metric == kChinese.end()) {
    return {};
  }
  std::string name(metric->second);
  while (true) {
    const std::string_view so_far = before;
    trim_end(before, kBlanks);
    const auto prefix = take(kChinesePrefixes);
    if (prefix == kChinesePrefixes.end()) {
      before = so_far;
      break;
    }
    name.insert(0, prefix->second);
  }
  // Signs such as （ and ， are further up than the words.
  constexpr unsigned char kFirstOfWord = 0xe4;
  constexpr unsigned char kLastOfWord = 0xe9;
  const auto lead = before.size() < 3 ? 0 : static_cast<unsigned char>(before[before.size() - 3]);
  if (lead >= kFirstOfWord && lead <= kLastOfWord) {
    before = all;
    return {};
  }
  return name;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) {
    return static_cast<char>(c < 128 ? std::tolower(c) : c);
  });
  return out;
}

/// What stands between a name and its number.
enum class Between : std::uint8_t { nothing, blanks, sign };

struct Named {
  std::string name;
  Between between = Between::nothing;
};

/// The name in front of a number, with the words that belong to it.
Named name_before(std::string_view before) {
  Named named;
  if (before.ends_with('\'') || before.ends_with('"')) {
    before.remove_suffix(1);  // of the number
  }
  const std::size_t size = before.size();
  trim_end(before, kBlanks);
  if (!before.empty() && (before.back() == ':' || before.back() == '=')) {
    before.remove_suffix(1);
    named.between = Between::sign;
    trim_end(before, kBlanks);
  } else if (before.ends_with(kWideColon)) {
    before.remove_suffix(kWideColon.size());
    named.between = Between::sign;
    trim_end(before, kBlanks);
  } else {
    while (trim_bar(before)) {
      trim_end(before, kBlanks);
    }
    named.between = before.size() < size ? Between::blanks : Between::nothing;
  }
  if (named.between == Between::nothing) {
    return named;
  }
  trim_end(before, "'\"");
  named.name = take_chinese_name(before);
  if (!named.name.empty()) {
    return named;
  }
  named.name = lower(take_name(before));
  while (before.ends_with(' ')) {
    before.remove_suffix(1);
    const std::string word = lower(take_name(before));
    if (std::ranges::find(kPrefixes, word) == kPrefixes.end()) {
      break;
    }
    named.name.insert(0, word + "_");
  }
  return named;
}

/// Whether a number may end where `rest` begins: not in the middle of a time, a version, a word.
bool ends_number(std::string_view rest) {
  if (rest.empty()) {
    return true;
  }
  const char c = rest.front();
  if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':') {
    return false;
  }
  const bool more = rest.size() > 1 && std::isalnum(static_cast<unsigned char>(rest[1])) != 0;
  return !more || (c != '-' && c != '.');
}

/// "0" of "0,75" and "1" of "1,234" are half of a number in the writing of some countries.
bool goes_on_behind_a_comma(std::string_view rest) {
  return rest.size() > 1 && rest[0] == ',' &&
         std::isdigit(static_cast<unsigned char>(rest[1])) != 0;
}

/// `value` of `text` that goes on with "/100".
std::optional<NumberAt> ratio(const NumberAt& number, std::string_view rest) {
  if (!rest.starts_with('/')) {
    return std::nullopt;
  }
  const auto of = number_at(rest.substr(1));
  if (!of || of->value <= 0) {
    return std::nullopt;
  }
  return NumberAt{number.value / of->value, number.length + 1 + of->length, true};
}

/// Of "Accuracy of the network on the 10000 test images: 54 %", as tutorials have it, the name. One
/// of many classes is not what people look for.
std::string accuracy_told(std::string_view before) {
  constexpr std::string_view kAccuracy = "accuracy ";
  trim_end(before, kBlanks);
  if (!before.ends_with(':')) {
    return {};
  }
  const std::string text = lower(before);
  const auto at = text.rfind(kAccuracy);
  if (at == std::string::npos ||
      (at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1])))) {
    return {};
  }
  const std::string_view rest = std::string_view(text).substr(at + kAccuracy.size());
  const bool whole = rest.starts_with("of ") || rest.starts_with("on ");
  if (!whole || rest.find("class") != std::string_view::npos ||
      rest.find_first_of(":=%") + 1 != rest.size()) {
    return {};
  }
  constexpr std::array kSets{std::pair{"test ", "test_"}, std::pair{"train", "train_"},
                             std::pair{"valid", "val_"}};
  for (const auto& [word, prefix] : kSets) {
    if (rest.find(word) != std::string_view::npos) {
      return std::string(prefix) + "accuracy";
    }
  }
  return "accuracy";
}

/// Behind the settings that `text` begins with, printed as an object of Python; 0: with none. What
/// stands in them was wanted, not measured: Namespace(target_accuracy=0.99).
std::size_t end_of_settings(std::string_view text) {
  constexpr std::array<std::string_view, 5> kObjects{"Namespace(", "Config(", "Args(", "Arguments(",
                                                     "Options("};
  const auto object =
      std::ranges::find_if(kObjects, [&](std::string_view name) { return text.starts_with(name); });
  if (object == kObjects.end()) {
    return 0;
  }
  int depth = 0;
  for (std::size_t at = object->size() - 1; at < text.size(); ++at) {
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    if (depth == 0) {
      return at + 1;
    }
  }
  return text.size();
}

/// The line without terminal sequences; they are short, and an unfinished one ends with the line.
void strip_colors(std::string_view text, std::string& out) {
  out.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      out += text[i];
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == '[') {
      i += 2;
      while (i < text.size() && (text[i] < '@' || text[i] > '~')) {
        ++i;
      }
    } else {
      ++i;
    }
  }
}

struct Pair {
  std::string name;
  double value = 0;
};

/// All "name: number" of a line that are of known names. `epoch` is set where the line tells it.
std::vector<Pair> known_pairs(std::string_view text, std::optional<double>& epoch) {
  std::vector<Pair> pairs;
  const bool objects = text.find('(') != std::string_view::npos;
  for (std::size_t i = 1; i < text.size(); ++i) {
    const char before = text[i - 1];
    if (const auto size = objects ? end_of_settings(text.substr(i - 1)) : 0; size > 0) {
      i += size - 1;
      continue;
    }
    const bool may_begin = std::string_view(" =:\t'\"").find(before) != std::string_view::npos ||
                           text.substr(0, i).ends_with(kWideColon);
    if (!may_begin || text[i] == ' ') {
      continue;
    }
    auto number = number_at(text.substr(i));
    if (!number) {
      continue;
    }
    Named named = name_before(text.substr(0, i));
    std::string_view rest = text.substr(i + number->length);
    if (rest.starts_with(" %") || rest.starts_with('%')) {
      if (std::string told = accuracy_told(text.substr(0, i)); !told.empty()) {
        named.name = std::move(told);
      }
      rest.remove_prefix(rest.starts_with(' ') ? 1 : 0);
    }
    if (named.name == "epoch") {
      epoch = number->value;
    }
    const Known known = named.name.empty() ? Known::no : known_metric(named.name);
    const bool percent = rest.starts_with('%');
    const bool exact = number->fraction || percent;
    if (known == Known::no || (known == Known::maybe && !exact) ||
        (named.between == Between::blanks && !exact)) {
      i += number->length - 1;
      continue;
    }
    if (rest.starts_with('/')) {
      number = is_accuracy(named.name) ? ratio(*number, rest) : std::nullopt;
    } else if (!ends_number(rest) || (!number->fraction && goes_on_behind_a_comma(rest))) {
      number.reset();
    }
    if (number) {
      pairs.push_back({named.name, number->value});
      i += number->length - 1;
    }
  }
  return pairs;
}

}  // namespace

std::optional<NumberAt> number_at(std::string_view text) {
  std::size_t at = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const bool negative = at == 1 && text[0] == '-';
  const std::string word = lower(text.substr(at, 3));
  if (word == "nan" || word == "inf") {
    const double value = word == "nan" ? std::numeric_limits<double>::quiet_NaN()
                                       : std::numeric_limits<double>::infinity();
    const std::string_view rest = text.substr(at + 3);
    const bool whole = rest.empty() || std::isalnum(static_cast<unsigned char>(rest[0])) == 0;
    return whole ? std::optional(NumberAt{negative ? -value : value, at + 3, true}) : std::nullopt;
  }
  if (at >= text.size() || !(is_digit(text[at]) ||
                             (text[at] == '.' && at + 1 < text.size() && is_digit(text[at + 1])))) {
    return std::nullopt;
  }
  double value = 0;
  const char* begin = text.data() + at;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error != std::errc()) {
    return std::nullopt;
  }
  const std::string_view written(begin, static_cast<std::size_t>(end - begin));
  return NumberAt{negative ? -value : value, at + written.size(),
                  written.find_first_of(".eE") != std::string_view::npos};
}

std::optional<double> parse_value(std::string_view text) {
  while (!text.empty() && kBlanks.find(text.front()) != std::string_view::npos) {
    text.remove_prefix(1);
  }
  trim_end(text, " \t%");
  const auto number = number_at(text);
  return number && number->length == text.size() ? std::optional(number->value) : std::nullopt;
}

void LogScanner::note(const std::string& name, double value) {
  found_[name].add(value, epoch_);
}

void LogScanner::line(std::string_view text) {
  if (text.empty() || patience_.ends_after(text.size())) {
    return;
  }
  if (text.find('\x1b') != std::string_view::npos) {
    strip_colors(text, plain_);
    text = plain_;
  }
  const std::vector<Pair> pairs = known_pairs(text, epoch_);
  for (const LogMetric& metric : metrics_) {
    for (std::size_t from = 0; from <= text.size();) {
      const auto match = metric.pattern.find(text, from, patience_);
      if (!match) {
        break;
      }
      if (const auto value = parse_value(match->caught)) {
        note(metric.name, *value);
      }
      from = match->end > match->begin ? match->end : match->end + 1;
    }
  }
  for (const Pair& pair : pairs) {
    if (std::ranges::find(metrics_, pair.name, &LogMetric::name) == metrics_.end()) {
      note(pair.name, pair.value);
    }
  }
}

void LogScanner::feed(std::string_view text) {
  while (!text.empty()) {
    const auto end = text.find_first_of("\r\n");
    const std::string_view part = text.substr(0, end);
    if (partial_.size() + part.size() > kLineMax) {
      const std::size_t fits = kLineMax - partial_.size();
      partial_ += part.substr(0, fits);
      line(partial_);
      partial_.clear();
      text.remove_prefix(fits);
      continue;
    }
    if (end == std::string_view::npos) {
      partial_ += part;
      return;
    }
    if (partial_.empty()) {
      line(part);
    } else {
      partial_ += part;
      line(partial_);
      partial_.clear();
    }
    text.remove_prefix(end + 1);
  }
}

Observations LogScanner::take() && {
  line(partial_);
  return std::move(found_);
}

}  // namespace berth
