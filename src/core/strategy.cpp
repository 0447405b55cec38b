#include "core/strategy.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/assert.hpp"

namespace berth {
namespace {

/// Of a card that nobody knows anything of, the worst is assumed.
std::uint32_t busy(const CardChoice& card) {
  return card.facts->busy.value_or(card.facts->utilization.value_or(100));
}

/// Sorts by a key, the least first; equal ones by index. Asks once for each key: one that looks at
/// all shapes is dear.
template <class Key>
void sort_by(std::vector<CardChoice>& cards, const Key& key) {
  const auto keyed = [&key](const CardChoice& card) {
    return std::pair(std::tuple(key(card), card.facts->index, card.gpu), card);
  };
  std::vector<std::invoke_result_t<decltype(keyed), const CardChoice&>> pairs;
  std::ranges::transform(cards, std::back_inserter(pairs), keyed);
  std::ranges::sort(pairs, {}, [](const auto& pair) -> const auto& { return pair.first; });
  std::ranges::transform(pairs, cards.begin(), [](const auto& pair) { return pair.second; });
}

/// How much of a card's free memory would be of no use, on average over what usually is asked for:
/// all of it to a job that does not fit.
double wasted(Bytes free, bool empty, Bytes total, const Shapes& shapes) {
  double sum = 0;
  double weight = 0;
  shapes.for_each([&](ShapeId, const Shape& shape) {
    const Request& request = shape.key.request;
    if (request.gpus.max == 0) {
      return;
    }
    const auto jobs = static_cast<double>(shape.jobs);
    const bool fits = request.gpu_memory ? *request.gpu_memory <= free : empty && free > total / 2;
    weight += jobs;
    sum += fits ? 0.0 : jobs * static_cast<double>(free);
  });
  return weight == 0 ? 0 : sum / weight;
}

/// What taking `need` of the card costs those who come later.
double loss(const CardChoice& card, Bytes need, const Shapes& shapes) {
  const Bytes left = need == 0 ? 0 : card.free - std::min(need, card.free);
  return wasted(left, false, card.total, shapes) -
         wasted(card.free, card.claims == 0, card.total, shapes);
}

GpuLink link(const CardChoice& a, const CardChoice& b) {
  const auto it = a.facts->links.find(b.facts->uuid);
  return it == a.facts->links.end() ? GpuLink::system : it->second;
}

}  // namespace

void rank(std::vector<CardChoice>& cards, Strategy strategy, std::optional<std::uint32_t> last,
          Bytes need, const Shapes& shapes) {
  const auto less_free = [](const CardChoice& c) { return c.total - c.free; };
  // More free memory is better: what is measured is the best guess of who will be left in peace.
  const auto most_free = [](const CardChoice& c) { return ~c.free; };
  switch (strategy) {
    case Strategy::most_free:
      sort_by(cards, most_free);
      return;
    case Strategy::least_utilized:
      sort_by(cards, [&](const CardChoice& c) { return std::tuple(busy(c), less_free(c)); });
      return;
    case Strategy::round_robin:
      sort_by(cards, [last](const CardChoice& c) { return last && c.facts->index <= *last; });
      return;
    case Strategy::best_fit:
      sort_by(cards, [](const CardChoice& c) { return c.free; });
      return;
    case Strategy::pack:
      sort_by(cards, [](const CardChoice& c) { return std::tuple(c.claims == 0, c.free); });
      return;
    case Strategy::spread:
      sort_by(cards, [&](const CardChoice& c) { return std::tuple(c.claims, most_free(c)); });
      return;
    case Strategy::memory_save:
      sort_by(cards, [](const CardChoice& c) {
        return std::tuple(static_cast<double>(busy(c)) * static_cast<double>(c.free), c.free);
      });
      return;
    case Strategy::fragmentation:
      sort_by(cards,
              [&](const CardChoice& c) { return std::tuple(loss(c, need, shapes), c.free); });
      return;
    case Strategy::memory_spend:
      sort_by(cards, [&](const CardChoice& c) {
        return std::tuple(static_cast<double>(busy(c)) * static_cast<double>(less_free(c)),
                          less_free(c), busy(c));
      });
      return;
  }
}

bool Allowances::can_pay(const CardChoice& card) const {
  for (std::size_t i = 0; i < left_.size(); ++i) {
    if ((card.costs >> i & 1U) != 0 && left_[i] == 0) {
      return false;
    }
  }
  return true;
}

bool Allowances::pay(const CardChoice& card) {
  if (!can_pay(card)) {
    return false;
  }
  for (std::size_t i = 0; i < left_.size(); ++i) {
    left_[i] -= card.costs >> i & 1U;
  }
  return true;
}

std::vector<CardChoice> closest(const std::vector<CardChoice>& cards, std::size_t count,
                                const Allowances& allowances) {
  std::vector<std::size_t> best;
  std::tuple<GpuLink, std::uint64_t> best_score{GpuLink::system, UINT64_MAX};
  for (std::size_t seed = 0; seed < cards.size(); ++seed) {
    std::vector<std::size_t> group{seed};
    Allowances left = allowances;
    if (!left.pay(cards[seed])) {
      continue;
    }
    GpuLink worst = GpuLink::nvlink;
    std::uint64_t sum = 0;
    while (group.size() < count) {
      std::size_t next = cards.size();
      std::tuple<GpuLink, std::uint64_t> next_score;
      for (std::size_t i = 0; i < cards.size(); ++i) {
        if (std::ranges::find(group, i) != group.end() || !left.can_pay(cards[i])) {
          continue;
        }
        GpuLink farthest = GpuLink::nvlink;
        std::uint64_t distance = 0;
        for (const std::size_t member : group) {
          farthest = std::max(farthest, link(cards[member], cards[i]));
          distance += static_cast<std::uint64_t>(link(cards[member], cards[i]));
        }
        if (next == cards.size() || std::tuple(farthest, distance) < next_score) {
          next = i;
          next_score = {farthest, distance};
        }
      }
      // Quotas are nested, so the count can be reached whichever cards are taken on the way.
      BERTH_ASSERT(next < cards.size());
      left.pay(cards[next]);
      group.push_back(next);
      worst = std::max(worst, std::get<0>(next_score));
      sum += std::get<1>(next_score);
    }
    if (best.empty() || std::tuple(worst, sum) < best_score) {
      best = std::move(group);
      best_score = {worst, sum};
    }
  }
  std::ranges::sort(best);
  std::vector<CardChoice> result;
  for (const std::size_t i : best) {
    result.push_back(cards[i]);
  }
  return result;
}

}  // namespace berth
