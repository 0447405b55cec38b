// What docs/guide says in tables is what the code does. After a wanted change:
// BERTH_BLESS=1 build/tests/guide_test, then draw the pictures anew (docs/guide/pictures/draw.py).

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "core/reason.hpp"
#include "core/room.hpp"
#include "core/rule_table.hpp"
#include "core/strategy.hpp"

namespace berth {
namespace {

const std::filesystem::path kGuide = BERTH_GUIDE_DIR;

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// Compares what stands in a page between two marks, or puts it there.
void expect_block(const std::string& page, std::string_view name, const std::string& wanted) {
  const auto path = kGuide / page;
  std::string text = slurp(path);
  const std::string begin = fmt::format("<!-- {}: written by guide_test -->\n", name);
  const std::string end = fmt::format("<!-- end of {} -->", name);
  const std::size_t from = text.find(begin);
  const std::size_t to = text.find(end);
  ASSERT_NE(from, std::string::npos) << page << " lacks " << begin;
  ASSERT_NE(to, std::string::npos) << page << " lacks " << end;
  const std::size_t inside = from + begin.size();
  ASSERT_LE(inside, to);
  if (std::getenv("BERTH_BLESS") != nullptr) {
    text.replace(inside, to - inside, wanted);
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  EXPECT_EQ(text.substr(inside, to - inside), wanted)
      << "after a wanted change: BERTH_BLESS=1 build/tests/guide_test";
}

// --- rules ---

std::string type_text(std::string_view type) {
  constexpr std::array kTypes = {std::pair{std::string_view("N"), "number"},
                                 std::pair{std::string_view("SIZE"), "size"},
                                 std::pair{std::string_view("TIME"), "time"},
                                 std::pair{std::string_view("PERCENT"), "percent"},
                                 std::pair{std::string_view("BOOL"), "`true`, `false`"},
                                 std::pair{std::string_view("LIST"), "list"}};
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= type.size();) {
    const std::size_t bar = std::min(type.find('|', begin), type.size());
    const std::string_view part = type.substr(begin, bar - begin);
    const auto* const known =
        std::ranges::find(kTypes, part, [](const auto& pair) { return pair.first; });
    parts.push_back(known == kTypes.end() ? fmt::format("`{}`", part) : known->second);
    begin = bar + 1;
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string_view scope_text(RuleScope scope) {
  switch (scope) {
    case RuleScope::instance:
      return "instance";
    case RuleScope::batch:
      return "instance, batch";
    case RuleScope::any:
      return "anywhere";
  }
  return "?";
}

TEST(Guide, ListsEveryRule) {
  std::string table = "| Rule | Value | Where | Default | Meaning |\n|---|---|---|---|---|\n";
  const Rules defaults;
  for (const RuleDef& rule : rule_definitions()) {
    table += fmt::format("| `{}` | {} | {} | `{}` | {} |\n", rule.key, type_text(rule.type),
                         scope_text(rule.scope), rule.get(defaults), rule.help);
  }
  table += fmt::format("| `{}NAME` | number | instance | | {} |\n", kResourcePrefix, kResourceHelp);
  table +=
      fmt::format("| `{}` | number | instance | `0` | {} |\n", queue_rule("NAME"), kQueueLimitHelp);
  expect_block("scheduling.md", "rules", table);
}

// --- strangers ---

constexpr Now kNow{Millis{100'000'000}, Millis{100'000'000}};

Gpu a_card(std::uint32_t index) {
  Gpu gpu;
  gpu.known = true;
  gpu.sampled = gpu.seen = kNow.mono;
  gpu.facts.index = index;
  gpu.facts.uuid = fmt::format("GPU-{}", index);
  gpu.facts.memory_total = gpu.facts.memory_free = 24 * kGiB;
  gpu.facts.utilization = 0;
  gpu.facts.processes.emplace();
  return gpu;
}

State a_machine(std::uint32_t cards) {
  State state;
  state.seen = kNow.mono;
  for (std::uint32_t i = 0; i < cards; ++i) {
    state.gpus.push_back(a_card(i));
  }
  return state;
}

void add_stranger(Gpu& gpu, Bytes memory, std::uint32_t busy, Millis age) {
  GpuProcess process;
  process.pid = 4711;
  process.memory = memory;
  process.utilization = busy;
  process.age = age;
  gpu.facts.processes->push_back(process);
  gpu.facts.utilization = busy;
  gpu.facts.memory_free = *gpu.facts.memory_free - memory;
}

struct Stranger {
  std::string_view who;
  std::string_view memory;
  std::uint32_t busy;
  std::string_view age;
};

std::string judge(const Stranger& stranger, Foreign policy) {
  State state = a_machine(1);
  add_stranger(state.gpus[0], parse_size(stranger.memory).value(), stranger.busy,
               parse_duration(stranger.age).value());
  Request request;
  request.gpu_memory = 8 * kGiB;
  Rules rules;
  rules.foreign.policy = policy;
  Wish wish;
  wish.request = &request;
  wish.rules = &rules;
  const Room room(state, kNow);
  if (const auto obstacle = room.obstacle(0, wish)) {
    const std::string why = describe(*obstacle);
    return "wait: " + why.substr(why.find(": ") + 2);
  }
  const bool present = strangers_on(state.gpus[0].facts, false, rules.foreign, {}).present;
  return present && policy != Foreign::ignore ? "share" : "ignore";
}

TEST(Guide, TellsHowStrangersAreJudged) {
  constexpr std::array kStrangers = {
      Stranger{"a desktop", "300 MiB", 0, "5 d"},
      Stranger{"a notebook left open", "600 MiB", 0, "9 h"},
      Stranger{"the same, a moment after its start", "600 MiB", 0, "4 s"},
      Stranger{"a notebook with a model in it, idle", "6 GiB", 0, "9 h"},
      Stranger{"an inference server with few users", "6 GiB", 20, "3 d"},
      Stranger{"a small training", "900 MiB", 85, "10 min"},
      Stranger{"a large training", "14 GiB", 97, "2 h"},
      Stranger{"a large model, idle", "18 GiB", 0, "2 h"},
  };
  std::string table =
      "| On a card of 24 GiB | Memory | Busy | Age | For a job of 8 GiB |\n|---|---|---|---|---|\n";
  for (const Stranger& stranger : kStrangers) {
    table += fmt::format("| {} | {} | {} % | {} | {} |\n", stranger.who, stranger.memory,
                         stranger.busy, stranger.age, judge(stranger, Foreign::grade));
  }
  expect_block("scheduling.md", "strangers", table);

  std::string policies = "| | `grade` | `ignore` | `share` | `wait` |\n|---|---|---|---|---|\n";
  for (const Stranger& stranger : kStrangers) {
    policies += fmt::format("| {} |", stranger.who);
    for (const Foreign policy : {Foreign::grade, Foreign::ignore, Foreign::share, Foreign::wait}) {
      const std::string verdict = judge(stranger, policy);
      policies += fmt::format(" {} |", verdict.substr(0, verdict.find(':')));
    }
    policies += '\n';
  }
  expect_block("scheduling.md", "policies", policies);
}

// --- quotas ---

struct QuotaCase {
  std::uint32_t ours;
  std::uint32_t strangers;
  std::uint32_t gpu_left;
  LeftMode mode;
  std::uint32_t min_gpu;
  std::uint32_t max_gpu;
};

/// The cards that the formula begins with.
std::uint32_t available_to(State state) {
  if (state.rules.gpu_left_mode == LeftMode::any) {
    state.rules.gpu_left = 0;
  }
  state.rules.min_gpu = 0;
  state.rules.max_gpu = 1000;  // so that there is a quota to read it from
  const Request request;
  Wish wish;
  wish.request = &request;
  wish.rules = &state.rules;
  const auto quotas = Room(state, kNow).quotas(wish);
  return quotas.empty() ? 0 : quotas.front().allowed;
}

std::string quota_row(const QuotaCase& example) {
  constexpr std::uint32_t kCards = 8;
  State state = a_machine(kCards);
  for (std::uint32_t i = 0; i < example.ours; ++i) {
    Claim claim;
    claim.attempt = AttemptId{i + 1};
    claim.job = JobId{i + 1};
    state.gpus[i].claims.push_back(claim);
  }
  for (std::uint32_t i = example.ours; i < example.ours + example.strangers; ++i) {
    add_stranger(state.gpus[i], 14 * kGiB, 97, Millis{7'200'000});
  }
  state.rules.gpu_left = example.gpu_left;
  state.rules.gpu_left_mode = example.mode;
  state.rules.min_gpu = example.min_gpu;
  state.rules.max_gpu = example.max_gpu;
  const Request request;
  Wish wish;
  wish.request = &request;
  wish.rules = &state.rules;
  Room room(state, kNow);
  const auto quotas = room.quotas(wish);
  const std::uint32_t available = available_to(state);
  std::uint32_t more = 0;
  for (; const auto gpus = room.place(wish); ++more) {
    wish.job = JobId{100 + more};
    room.take(wish, *gpus);
  }
  const std::string left =
      example.gpu_left == 0
          ? "0"
          : fmt::format("{} {}", example.gpu_left, example.mode == LeftMode::any ? "any" : "last");
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", example.ours, example.strangers,
                     left, example.min_gpu, example.max_gpu, available,
                     quotas.empty() ? "none" : fmt::format("{}", quotas.front().allowed), more);
}

TEST(Guide, WorksOutQuotas) {
  constexpr std::array kCases = {
      QuotaCase{0, 0, 0, LeftMode::last, 0, 0}, QuotaCase{0, 0, 2, LeftMode::last, 0, 0},
      QuotaCase{0, 3, 2, LeftMode::last, 0, 0}, QuotaCase{0, 3, 2, LeftMode::any, 0, 0},
      QuotaCase{3, 5, 2, LeftMode::any, 0, 0},  QuotaCase{0, 6, 2, LeftMode::any, 1, 0},
      QuotaCase{0, 0, 2, LeftMode::any, 0, 4},  QuotaCase{0, 0, 2, LeftMode::last, 0, 4},
      QuotaCase{2, 3, 2, LeftMode::any, 1, 4},  QuotaCase{0, 8, 2, LeftMode::any, 2, 4},
  };
  std::string table =
      "| Ours | Strangers' | `gpu_left` | `min_gpu` | `max_gpu` | Available | Quota | Cards it "
      "takes "
      "now |\n|---|---|---|---|---|---|---|---|\n";
  for (const QuotaCase& example : kCases) {
    table += quota_row(example);
  }
  expect_block("scheduling.md", "quotas", table);
}

// --- strategies ---

struct ExampleCard {
  std::string_view what;
  Bytes free;
  std::uint32_t busy;
  std::uint32_t claims;
};

constexpr std::array kExample = {
    ExampleCard{"a job of yours, 14 GiB", 10 * kGiB, 70, 1},
    ExampleCard{"a stranger, 2 GiB", 22 * kGiB, 5, 0},
    ExampleCard{"a stranger, 15 GiB", 9 * kGiB, 0, 0},
    ExampleCard{"a job of yours, 17 GiB", 7 * kGiB, 10, 1},
};

/// The cards that three jobs of 6 GiB get one after the other, in one decision; as many of 10 GiB
/// wait.
std::vector<std::size_t> cards_of_three(Strategy strategy) {
  constexpr Bytes kNeed = 6 * kGiB;
  Shapes shapes;
  std::vector<Bytes> asked{14 * kGiB, 17 * kGiB, kNeed, kNeed, kNeed};  // that run, and A, B, C
  asked.insert(asked.end(), 6, 10 * kGiB);                              // that wait
  for (const Bytes memory : asked) {
    Request request;
    request.gpu_memory = memory;
    bool fresh = false;
    shapes.add({request, {}, {}}, fresh);
  }
  std::vector<GpuFacts> facts(kExample.size());
  std::vector<CardChoice> cards;
  for (std::size_t i = 0; i < kExample.size(); ++i) {
    facts[i].index = static_cast<std::uint32_t>(i);
    facts[i].busy = kExample.at(i).busy;
    cards.push_back({i, &facts[i], kExample.at(i).free, 24 * kGiB, kExample.at(i).claims});
  }
  std::vector<std::size_t> taken;
  std::optional<std::uint32_t> last = 1;
  for (int job = 0; job < 3; ++job) {
    std::vector<CardChoice> fitting;
    std::ranges::copy_if(cards, std::back_inserter(fitting),
                         [](const CardChoice& card) { return card.free >= kNeed; });
    rank(fitting, strategy, last, kNeed, shapes);
    CardChoice& card = cards[fitting.front().gpu];
    card.free -= kNeed;
    ++card.claims;
    last = card.facts->index;
    taken.push_back(card.gpu);
  }
  return taken;
}

TEST(Guide, ShowsWhatStrategiesTake) {
  std::string table = "| GPU | On it | Free | Busy |\n|---|---|---|---|\n";
  for (std::size_t i = 0; i < kExample.size(); ++i) {
    const ExampleCard& card = kExample.at(i);
    table +=
        fmt::format("| {} | {} | {} GiB | {} % |\n", i, card.what, card.free / kGiB, card.busy);
  }
  expect_block("strategies.md", "cards", table);

  table = "| Strategy | A | B | C |\n|---|---|---|---|\n";
  const RuleDef* rule = find_rule("strategy");
  ASSERT_NE(rule, nullptr);
  for (int i = 0; i <= static_cast<int>(Strategy::memory_spend); ++i) {
    Rules rules;
    rules.strategy = static_cast<Strategy>(i);
    const auto taken = cards_of_three(rules.strategy);
    table += fmt::format("| `{}` | GPU {} | GPU {} | GPU {} |\n", rule->get(rules), taken.at(0),
                         taken.at(1), taken.at(2));
  }
  expect_block("strategies.md", "choices", table);
}

}  // namespace
}  // namespace berth
