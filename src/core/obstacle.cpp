// Why not this card, in words.

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/reason.hpp"
#include "core/rule_table.hpp"

namespace berth {

std::string_view to_string(GpuObstacle::Kind kind) {
  using Kind = GpuObstacle::Kind;
  switch (kind) {
    case Kind::stale:
      return "stale";
    case Kind::trouble:
      return "trouble";
    case Kind::drained:
      return "drained";
    case Kind::not_allowed:
      return "not_allowed";
    case Kind::left:
      return "left";
    case Kind::other_berth:
      return "other_berth";
    case Kind::unknown:
      return "unknown";
    case Kind::claimed:
      return "claimed";
    case Kind::ending:
      return "ending";
    case Kind::own_process:
      return "own_process";
    case Kind::avoided:
      return "avoided";
    case Kind::strangers:
      return "strangers";
    case Kind::quiet:
      return "quiet";
    case Kind::utilization:
      return "utilization";
    case Kind::keep_memory:
      return "keep_memory";
    case Kind::memory:
      return "memory";
    case Kind::too_small:
      return "too_small";
    case Kind::held:
      return "held";
  }
  return "?";
}

std::string list_jobs(const std::vector<JobId>& jobs) {
  constexpr std::size_t kShown = 5;
  std::vector<std::uint64_t> shown;
  for (const JobId id : jobs) {
    if (shown.size() == kShown) {
      return fmt::format("jobs {} and {} more", fmt::join(shown, ", "), jobs.size() - kShown);
    }
    shown.push_back(id.value);
  }
  return fmt::format("job{} {}", shown.size() == 1 ? "" : "s", fmt::join(shown, ", "));
}

namespace {

/// In brackets after the number that follows from it.
std::string by_rule(const GpuObstacle& o) {
  return o.rule.empty() ? "" : fmt::format(" ({})", o.rule);
}

std::string describe_memory(const GpuObstacle& o) {
  const std::string margin =
      o.margin == 0 ? "" : fmt::format(" (memory_margin={} kept)", exact_size(o.margin));
  return fmt::format("{} free{}, {} needed{}", format_size(o.free), margin, format_size(o.needed),
                     by_rule(o)) +
         (o.jobs.empty() ? "" : ", shared with " + list_jobs(o.jobs)) +
         (o.strangers > 0
              ? fmt::format(", {} {}",
                            o.own ? "your own processes outside berth hold" : "others hold",
                            format_size(o.strangers))
              : "");
}

std::string describe_claimed(const GpuObstacle& o) {
  if (o.detail.empty()) {
    return "taken by " + list_jobs(o.jobs);
  }
  return fmt::format("{} on it, and this job wants a card to itself ({})",
                     list_jobs(o.jobs) + (o.jobs.size() == 1 ? " is" : " are"),
                     o.detail == "maximize_resource_utilization"
                         ? "maximize_resource_utilization is off"
                         : "with --gpu-memory it could share");
}

}  // namespace

std::string describe_alone(const GpuObstacle& o) {
  using Kind = GpuObstacle::Kind;
  switch (o.kind) {
    case Kind::stale:
      return o.detail.empty() ? "waiting for a fresh look at it" : o.detail;
    case Kind::trouble:
    case Kind::strangers:
      return o.detail;
    case Kind::drained:
      return "out of use: " + o.detail;
    case Kind::not_allowed:
      return "not among the cards that the rule gpus allows";
    case Kind::left:
      return "left to others by the rule " + o.detail;
    case Kind::other_berth:
      return "held by " + o.detail;
    case Kind::unknown:
      return "the driver does not say how much memory is free";
    case Kind::claimed:
      return describe_claimed(o);
    case Kind::ending:
      return fmt::format("{} ended, but {} memory is not free yet", list_jobs(o.jobs),
                         o.jobs.size() == 1 ? "its" : "their");
    case Kind::own_process:
      return "a process of yours outside berth is on it (maximize_resource_utilization is off)";
    case Kind::avoided:
      return o.strangers > 0 ? fmt::format("it ran out of memory there, and others still hold {}",
                                           format_size(o.strangers))
                             : "an attempt failed there, through no fault of its own";
    case Kind::quiet:
      return fmt::format("others have left it only just now ({})", o.detail);
    case Kind::utilization:
      return o.detail.empty()
                 ? fmt::format("{} it {} % busy, the limit is {} % (max_utilization)",
                               o.own ? "your own process outside berth keeps" : "others keep",
                               o.utilization, o.utilization_max)
                 : o.detail;
    case Kind::keep_memory:
      return fmt::format("{} of {} are in use, more than the rule {} allows", format_size(o.in_use),
                         format_size(o.total), o.detail);
    case Kind::memory:
      return describe_memory(o);
    case Kind::too_small:
      return fmt::format("has {} in all, {} are needed{}", format_size(o.free),
                         format_size(o.needed), by_rule(o));
    case Kind::held:
      return "kept for " + list_jobs(o.jobs);
  }
  return {};
}

std::string describe(const GpuObstacle& obstacle) {
  return fmt::format("GPU {}: {}", obstacle.index, describe_alone(obstacle));
}

namespace {

/// "0-3, 7" of ascending numbers.
std::string ranges(const std::vector<std::uint64_t>& numbers) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) {
      ++end;
    }
    // Two are no range.
    if (end - i > 2) {
      parts.push_back(fmt::format("{}-{}", numbers[i], numbers[end - 1]));
      i = end;
    } else {
      parts.push_back(fmt::format("{}", numbers[i++]));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// Cards that are in the way for the same reason.
struct Alike {
  std::string text;
  std::vector<std::uint64_t> cards;
};

/// On a large machine who has which card says less than that all of them are taken.
constexpr std::size_t kManyTaken = 4;

bool is_taken(const GpuObstacle& obstacle) {
  return obstacle.kind == GpuObstacle::Kind::claimed && obstacle.detail.empty();
}

std::string taken_by(const std::vector<GpuObstacle>& obstacles) {
  std::set<std::uint64_t> jobs;
  for (const GpuObstacle& obstacle : obstacles) {
    if (is_taken(obstacle)) {
      std::ranges::transform(obstacle.jobs, std::inserter(jobs, jobs.end()), &JobId::value);
    }
  }
  return fmt::format("taken by job{} {}", jobs.size() == 1 ? "" : "s",
                     ranges({jobs.begin(), jobs.end()}));
}

}  // namespace

std::vector<std::string> describe(const std::vector<GpuObstacle>& obstacles) {
  const bool many = std::ranges::count_if(obstacles, is_taken) > std::ptrdiff_t{kManyTaken};
  std::vector<Alike> groups;
  for (const GpuObstacle& obstacle : obstacles) {
    std::string text = many && is_taken(obstacle) ? taken_by(obstacles) : describe_alone(obstacle);
    auto it = std::ranges::find(groups, text, &Alike::text);
    if (it == groups.end()) {
      it = groups.insert(it, {std::move(text), {}});
    }
    it->cards.push_back(obstacle.index);
  }
  std::vector<std::string> lines;
  for (Alike& group : groups) {
    std::ranges::sort(group.cards);
    lines.push_back(fmt::format("GPU{} {}: {}", group.cards.size() == 1 ? "" : "s",
                                ranges(group.cards), group.text));
  }
  return lines;
}

}  // namespace berth
