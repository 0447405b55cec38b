// How long a page of 50 takes at many jobs, for every kind of list.
//
// pages [JOBS [DIRECTORY]]

#include <unistd.h>

#include "store/reader.hpp"
#include "store_fill.hpp"

namespace {

using namespace berth;
using namespace berth::bench;

constexpr int kRounds = 200;
/// In what no index answers, pages of a walk are followed so far.
constexpr int kPages = 20;

template <class Page>
void measure(const std::string& what, Page page) {
  std::vector<double> times;
  std::size_t rows = 0;
  for (int n = 0; n < kRounds; ++n) {
    const auto begun = std::chrono::steady_clock::now();
    rows = page();
    times.push_back(milliseconds_since(begun));
  }
  std::ranges::sort(times);
  fmt::print("{:<44} {:3} rows  p50 {:7.3f}  p99 {:7.3f}  max {:7.3f} ms\n", what, rows,
             quantile(times, 0.5), quantile(times, 0.99), times.back());
}

/// Follows the list from page to page, and from its beginning again.
void measure_sorted(StoreReader& reader, std::string what, JobFilter filter) {
  for (const auto& [name, sort] : kJobSorts) {
    for (const bool descending : {false, true}) {
      filter.sort = sort;
      filter.descending = descending;
      filter.after = {};
      int pages = 0;
      measure(fmt::format("{}, by {}{}", what, descending ? "-" : "", name), [&] {
        const JobListing page = must(reader.list(filter));
        filter.after = page.next && ++pages % kPages != 0 ? *page.next : ListPlace{};
        return page.rows.size();
      });
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t jobs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  std::string name = std::string(argc > 2 ? argv[2] : ".") + "/berth-bench-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    std::perror("bench: cannot make a directory");
    return 1;
  }
  const std::filesystem::path directory = name;
  {
    DrivenStore store(directory / "store.db");
    fill(store, jobs, true);
    StoreReader reader = must(StoreReader::open(directory / "store.db"));
    const Millis last{1'700'000'000'000 + static_cast<std::int64_t>(jobs - 10'000) * 1'000};
    std::vector<std::pair<std::string, JobFilter>> filters(1, {"all", {}});
    const auto add = [&](std::string what, auto set) {
      JobFilter filter;
      set(filter);
      filters.emplace_back(std::move(what), std::move(filter));
    };
    add("queued", [](JobFilter& f) { f.states = {JobState::queued}; });
    add("failed", [](JobFilter& f) { f.states = {JobState::failed}; });
    add("all that have ended", [](JobFilter& f) {
      f.states = {JobState::succeeded, JobState::failed, JobState::killed, JobState::cancelled};
    });
    add("running (none)", [](JobFilter& f) { f.states = {JobState::running}; });
    add("queue", [](JobFilter& f) { f.queue = "queue-3"; });
    add("queue, failed", [](JobFilter& f) {
      f.queue = "queue-4";
      f.states = {JobState::failed};
    });
    add("batch", [](JobFilter& f) { f.batch = {40}; });
    add("batch, queue, failed", [](JobFilter& f) {
      f.batch = {40};
      f.queue = "queue-4";
      f.states = {JobState::failed};
    });
    add("ids", [](JobFilter& f) { f.ids = {{{1'000}, {900'000}}}; });
    add("ids, killed (none)", [](JobFilter& f) {
      f.ids = {{{1'000}, {900'000}}};
      f.states = {JobState::killed};
    });
    add("name, frequent", [](JobFilter& f) { f.name = "lr-42-*"; });
    add("name, none (one step)", [](JobFilter& f) { f.name = "nothing*"; });
    add("since, short", [&](JobFilter& f) { f.since = last - Millis(600'000); });
    add("since, a sixth of all", [&](JobFilter& f) { f.since = last - Millis(166'000'000); });
    add("since, failed", [&](JobFilter& f) {
      f.since = last - Millis(166'000'000);
      f.states = {JobState::failed};
    });
    add("since, short, queue", [&](JobFilter& f) {
      f.since = last - Millis(600'000);
      f.queue = "queue-2";
    });
    for (auto& [what, filter] : filters) {
      for (const bool descending : {false, true}) {
        filter.descending = descending;
        measure(what + (descending ? ", newest first" : ""),
                [&] { return must(reader.list(filter)).rows.size(); });
      }
    }
    measure_sorted(reader, "all", {});
    for (const std::size_t which : {1U, 2U, 3U, 6U, 7U, 8U, 11U, 12U, 14U}) {
      measure_sorted(reader, filters.at(which).first, filters.at(which).second);
    }
    HistoryQuery history;
    history.descending = true;
    const auto lines = [&] { return must(reader.history_page(history)).rows.size(); };
    measure("history", lines);
    history.since = last - Millis(3'600'000);
    measure("history since an hour", lines);
    history.kinds = {"failed"};
    measure("history since an hour, failed", lines);
    history.since.reset();
    measure("history, failed", lines);
    history.kinds = {"nothing"};
    measure("history, none (one step)", lines);
    history.kinds.clear();
    history.batch = {40};
    measure("history of a batch", lines);
    history.batch = {};
    history.jobs = {{{400'000}, {400'099}}};
    measure("history of 100 jobs", lines);
  }
  std::filesystem::remove_all(directory);
  return 0;
}
