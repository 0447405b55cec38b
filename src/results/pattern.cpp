#include "results/pattern.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <limits>

#include "results/pattern_tree.hpp"

namespace berth {
namespace {

using Step = Pattern::Step;
using Kind = PatternNode::Kind;

constexpr std::size_t kStepsMax = 20'000;
constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

/// Turns a tree into steps. Gives up silently beyond kStepsMax; whoever calls looks.
class Writer {
 public:
  Writer(std::vector<Step>& steps, std::vector<Pattern::Bytes256>& sets)
      : steps_(steps), sets_(sets) {}

  void write(const PatternNode& node) {
    if (steps_.size() > kStepsMax) {
      return;
    }
    switch (node.kind) {
      case Kind::empty:
        break;
      case Kind::bytes:
        add({Step::Kind::bytes, {}, static_cast<std::uint32_t>(sets_.size()), 0});
        sets_.push_back(node.bytes);
        break;
      case Kind::check:
        add({Step::Kind::check, node.check, 0, 0});
        break;
      case Kind::sequence:
        for (const PatternNode& child : node.children) {
          write(child);
        }
        break;
      case Kind::either:
        write_either(node);
        break;
      case Kind::repeat:
        write_repeat(node);
        break;
      case Kind::group:
        write_group(node);
        break;
    }
  }

  std::uint32_t add(Step step) {
    steps_.push_back(step);
    return static_cast<std::uint32_t>(steps_.size() - 1);
  }

 private:
  [[nodiscard]] std::uint32_t here() const { return static_cast<std::uint32_t>(steps_.size()); }

  void write_either(const PatternNode& node) {
    std::vector<std::uint32_t> ends;
    for (std::size_t i = 0; i + 1 < node.children.size(); ++i) {
      const std::uint32_t fork = add({Step::Kind::fork, {}, here() + 1, 0});
      write(node.children[i]);
      ends.push_back(add({Step::Kind::jump, {}, 0, 0}));
      steps_[fork].other = here();
    }
    write(node.children.back());
    for (const std::uint32_t end : ends) {
      steps_[end].to = here();
    }
  }

  /// Sets where a fork leads: into what is repeated, or past it.
  void aim(std::uint32_t fork, std::uint32_t into, std::uint32_t past, bool lazy) {
    steps_[fork].to = lazy ? past : into;
    steps_[fork].other = lazy ? into : past;
  }

  void write_repeat(const PatternNode& node) {
    const PatternNode& child = node.children.front();
    for (std::uint32_t i = 0; i < node.least; ++i) {
      write(child);
    }
    if (node.most == PatternNode::kNoMost) {
      const std::uint32_t fork = add({Step::Kind::fork, {}, 0, 0});
      write(child);
      add({Step::Kind::jump, {}, fork, 0});
      aim(fork, fork + 1, here(), node.lazy);
      return;
    }
    std::vector<std::uint32_t> forks;
    for (std::uint32_t i = node.least; i < node.most && steps_.size() <= kStepsMax; ++i) {
      forks.push_back(add({Step::Kind::fork, {}, 0, 0}));
      write(child);
    }
    for (const std::uint32_t fork : forks) {
      aim(fork, fork + 1, here(), node.lazy);
    }
  }

  /// Only the first group is of interest.
  void write_group(const PatternNode& node) {
    if (node.number == 1) {
      add({Step::Kind::save, {}, 0, 0});
    }
    write(node.children.front());
    if (node.number == 1) {
      add({Step::Kind::save, {}, 1, 0});
    }
  }

  std::vector<Step>& steps_;
  std::vector<Pattern::Bytes256>& sets_;
};

bool is_word(std::string_view text, std::size_t at) {
  return at < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
}

bool holds(Step::Check check, std::string_view text, std::size_t at) {
  const bool edge = (at > 0 && is_word(text, at - 1)) != is_word(text, at);
  switch (check) {
    case Step::Check::begin:
      return at == 0;
    case Step::Check::end:
      return at == text.size();
    case Step::Check::word:
      return edge;
    case Step::Check::no_word:
      return !edge;
  }
  return false;
}

/// One way through the pattern, as far as it has come.
struct Way {
  std::uint32_t step = 0;
  std::size_t begin = 0;
  std::array<std::size_t, 2> group{kNowhere, kNowhere};
};

/// Ways at one position, the most wanted first, each step at most once.
class Ways {
 public:
  explicit Ways(std::size_t steps) : seen_(steps, 0) {}

  void clear() {
    list_.clear();
    ++round_;
  }
  /// Adds the way and all that it leads to without taking a byte.
  void add(const std::vector<Step>& steps, Way way, std::string_view text, std::size_t at) {
    stack_.push_back(way);
    while (!stack_.empty()) {
      Way one = stack_.back();
      stack_.pop_back();
      if (seen_[one.step] == round_) {
        continue;
      }
      seen_[one.step] = round_;
      const Step& step = steps[one.step];
      switch (step.kind) {
        case Step::Kind::jump:
          one.step = step.to;
          stack_.push_back(one);
          break;
        case Step::Kind::fork: {
          Way other = one;
          other.step = step.other;
          stack_.push_back(other);
          one.step = step.to;
          stack_.push_back(one);
          break;
        }
        case Step::Kind::save:
          one.group[step.to] = at;
          ++one.step;
          stack_.push_back(one);
          break;
        case Step::Kind::check:
          if (holds(step.check, text, at)) {
            ++one.step;
            stack_.push_back(one);
          }
          break;
        case Step::Kind::bytes:
        case Step::Kind::match:
          list_.push_back(one);
          break;
      }
    }
  }
  [[nodiscard]] const std::vector<Way>& list() const { return list_; }

 private:
  std::vector<Way> list_;
  std::vector<Way> stack_;
  std::vector<std::uint64_t> seen_;
  std::uint64_t round_ = 1;
};

}  // namespace

Result<Pattern> Pattern::compile(std::string_view text) {
  TRY_ASSIGN(const PatternTree tree, parse_pattern(text));
  Pattern pattern;
  Writer writer(pattern.steps_, pattern.sets_);
  writer.write(tree.root);
  writer.add({});
  if (pattern.steps_.size() > kStepsMax) {
    return fail(ErrorCode::invalid, "the pattern is too large: repeat less often");
  }
  pattern.text_ = text;
  pattern.has_group_ = tree.groups > 0;
  pattern.find_first_bytes();
  return pattern;
}

void Pattern::find_first_bytes() {
  std::vector<bool> seen(steps_.size());
  std::vector<std::uint32_t> left{0};
  while (!left.empty()) {
    const std::uint32_t at = left.back();
    left.pop_back();
    if (seen[at]) {
      continue;
    }
    seen[at] = true;
    const Step& step = steps_[at];
    switch (step.kind) {
      case Step::Kind::bytes:
        first_ |= sets_[step.to];
        break;
      case Step::Kind::fork:
        left.push_back(step.other);
        left.push_back(step.to);
        break;
      case Step::Kind::jump:
        left.push_back(step.to);
        break;
      case Step::Kind::save:
      case Step::Kind::check:
        left.push_back(at + 1);
        break;
      case Step::Kind::match:
        may_be_empty_ = true;
        break;
    }
  }
}

std::optional<Pattern::Match> Pattern::find(std::string_view text, std::size_t from,
                                            Patience& patience) const {
  if (patience.ends_after(steps_.size())) {
    return std::nullopt;
  }
  Ways now(steps_.size());
  Ways next(steps_.size());
  std::optional<Match> found;
  for (std::size_t at = from; at <= text.size(); ++at) {
    if (!found && now.list().empty() && !may_be_empty_) {
      while (at < text.size() && !first_[static_cast<unsigned char>(text[at])]) {
        ++at;
      }
    }
    if (!found) {
      now.add(steps_, {0, at, {kNowhere, kNowhere}}, text, at);
    }
    if (now.list().empty()) {
      if (found) {
        break;
      }
      now.clear();
      continue;
    }
    if (patience.ends_after(now.list().size())) {
      return std::nullopt;
    }
    next.clear();
    for (const Way& way : now.list()) {
      const Step& step = steps_[way.step];
      if (step.kind == Step::Kind::match) {
        const bool caught = way.group[0] != kNowhere && way.group[1] != kNowhere;
        found = Match{way.begin, at,
                      !has_group_ ? text.substr(way.begin, at - way.begin)
                      : caught    ? text.substr(way.group[0], way.group[1] - way.group[0])
                                  : std::string_view()};
        break;  // what follows is less wanted
      }
      if (at < text.size() && sets_[step.to][static_cast<unsigned char>(text[at])]) {
        Way on = way;
        ++on.step;
        next.add(steps_, on, text, at + 1);
      }
    }
    std::swap(now, next);
  }
  return found;
}

}  // namespace berth
