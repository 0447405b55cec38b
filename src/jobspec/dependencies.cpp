#include "jobspec/dependencies.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "jobspec/values.hpp"

namespace berth {
namespace {

/// A thousand jobs that each wait for a thousand others are a million; more is a mistake.
constexpr std::size_t kMostEdges = 5'000'000;

struct Range {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t line = 0;
};

class Resolver {
 public:
  Resolver(const std::vector<JobEntry>& entries, std::vector<JobSpec>& jobs,
           Diagnostics& diagnostics)
      : entries_(entries), jobs_(jobs), diagnostics_(diagnostics) {}

  void run() {
    index_names();
    for (const auto& entry : entries_) {
      if (entry.after != nullptr && !resolve_entry(entry)) {
        return;
      }
    }
    find_circle();
  }

 private:
  void index_names() {
    ranges_.reserve(jobs_.size());
    for (const auto& entry : entries_) {
      claim(entry, entry.name, {entry.first, entry.count, entry.name_at.line});
      for (std::uint32_t i = entry.first; i < entry.first + entry.count; ++i) {
        if (jobs_[i].name != entry.name) {
          claim(entry, jobs_[i].name, {i, 1, entry.name_at.line});
        }
      }
    }
  }

  void claim(const JobEntry& entry, std::string_view name, Range range) {
    const auto [other, fresh] = ranges_.try_emplace(name, range);
    if (!fresh) {
      diagnostics_.add_once(entry.name_at, fmt::format("the job name '{}' is already used in line "
                                                       "{}; names must differ",
                                                       name, other->second.line));
    }
  }

  bool resolve_entry(const JobEntry& entry) {
    for (std::uint32_t i = 0; i < entry.count; ++i) {
      const auto combination = entry.matrix.at(i);
      const auto resolve = [&](const Node& node) {
        return resolve_name(node, combination, jobs_[entry.first + i]);
      };
      if (entry.after->kind == Node::Kind::list) {
        if (!std::all_of(entry.after->items.begin(), entry.after->items.end(),
                         [&](const NodePtr& item) { return resolve(*item); })) {
          return false;
        }
      } else if (!resolve(*entry.after)) {
        return false;
      }
      auto& after = jobs_[entry.first + i].after_index;
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
    }
    return true;
  }

  /// False when it makes no sense to go on.
  bool resolve_name(const Node& node, const Combination& combination, JobSpec& job) {
    const auto name = read_text(node, "after", combination, diagnostics_);
    if (!name) {
      return true;
    }
    const auto found = ranges_.find(*name);
    if (found == ranges_.end()) {
      std::vector<std::string_view> known;
      for (const auto& entry : entries_) {
        known.push_back(entry.name);
      }
      diagnostics_.add_once(node.at,
                            fmt::format("'after' names '{}', and there is no such job in this "
                                        "file{}",
                                        *name, did_you_mean(*name, known)));
      return true;
    }
    const auto range = found->second;
    edges_ += range.count;
    if (edges_ > kMostEdges) {
      diagnostics_.add(node.at,
                       fmt::format("more than {} dependencies; let the jobs wait for one job with "
                                   "'gpus: 0' that waits for the others",
                                   kMostEdges));
      return false;
    }
    for (std::uint32_t i = 0; i < range.count; ++i) {
      job.after_index.push_back(range.first + i);
    }
    return true;
  }

  /// Takes away what depends on nothing that is left; a rest has a circle in it.
  void find_circle() {
    const auto size = static_cast<std::uint32_t>(jobs_.size());
    std::vector<std::uint32_t> waiting_for(size);
    std::vector<std::vector<std::uint32_t>> before(edges_ == 0 ? 0 : size);
    std::vector<std::uint32_t> ready;
    for (std::uint32_t i = 0; i < size; ++i) {
      waiting_for[i] = static_cast<std::uint32_t>(jobs_[i].after_index.size());
      for (const auto needed : jobs_[i].after_index) {
        before[needed].push_back(i);
      }
      if (waiting_for[i] == 0) {
        ready.push_back(i);
      }
    }
    for (std::size_t done = 0; edges_ != 0 && done < ready.size(); ++done) {
      for (const auto next : before[ready[done]]) {
        if (--waiting_for[next] == 0) {
          ready.push_back(next);
        }
      }
    }
    const auto left = std::find_if(waiting_for.begin(), waiting_for.end(),
                                   [](std::uint32_t count) { return count > 0; });
    if (left != waiting_for.end()) {
      report_circle(static_cast<std::uint32_t>(left - waiting_for.begin()), waiting_for);
    }
  }

  /// Every job left waits for one that is left, so walking along must come back to itself.
  void report_circle(std::uint32_t start, const std::vector<std::uint32_t>& waiting_for) {
    std::vector<std::uint32_t> path;
    std::unordered_map<std::uint32_t, std::size_t> seen;
    auto at = start;
    while (seen.try_emplace(at, path.size()).second) {
      path.push_back(at);
      const auto& after = jobs_[at].after_index;
      at = *std::find_if(after.begin(), after.end(),
                         [&](std::uint32_t needed) { return waiting_for[needed] > 0; });
    }
    path.erase(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(seen[at]));
    std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
    constexpr std::size_t kShown = 8;
    std::string chain;
    for (std::size_t i = 0; i < std::min(kShown, path.size()); ++i) {
      chain += fmt::format("'{}' waits for ", jobs_[path[i]].name);
    }
    chain += path.size() > kShown ? "…" : fmt::format("'{}'", jobs_[path.front()].name);
    diagnostics_.add(entry_of(path.front()).after->at,
                     fmt::format("'after' goes round in a circle: {}", chain));
  }

  const JobEntry& entry_of(std::uint32_t job) const {
    const auto next =
        std::upper_bound(entries_.begin(), entries_.end(), job,
                         [](std::uint32_t index, const JobEntry& e) { return index < e.first; });
    return *std::prev(next);
  }

  const std::vector<JobEntry>& entries_;
  std::vector<JobSpec>& jobs_;
  Diagnostics& diagnostics_;
  std::unordered_map<std::string_view, Range> ranges_;
  std::size_t edges_ = 0;
};

}  // namespace

void resolve_dependencies(const std::vector<JobEntry>& entries, std::vector<JobSpec>& jobs,
                          Diagnostics& diagnostics) {
  Resolver(entries, jobs, diagnostics).run();
}

}  // namespace berth
