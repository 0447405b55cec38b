#include "daemon/batch_reader.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace berth {
namespace {

constexpr std::size_t kPage = 1'000;
constexpr std::size_t kBatchPage = 100;
constexpr int kBatchPages = 10;

/// Calls `look` with batches, the newest first, until it returns true.
template <class Look>
Status look_through(StoreReader& reader, const Look& look) {
  BatchId after{};
  for (int page = 0; page < kBatchPages; ++page) {
    TRY_ASSIGN(const auto rows, reader.batches(after, kBatchPage, true));
    for (const BatchRow& row : rows) {
      if (look(row)) {
        return {};
      }
    }
    if (rows.size() < kBatchPage) {
      break;
    }
    after = rows.back().id;
  }
  return {};
}

}  // namespace

Result<BatchReport> read_batch(StoreReader& reader, BatchId batch, const BatchTraits& traits) {
  BatchReport report;
  report.id = batch;
  report.traits = traits;
  JobFilter filter;
  filter.batch = batch;
  filter.limit = kPage;
  for (bool more = true; more;) {
    TRY_ASSIGN(JobListing page, reader.list(filter));
    for (std::size_t i = 0; i < page.rows.size(); ++i) {
      report.jobs.push_back({std::move(page.rows[i]), std::move(page.heads[i].commands)});
    }
    more = page.next.has_value();
    filter.after = page.next.value_or(ListPlace{});
  }
  return report;
}

Result<std::vector<FoundBatch>> command_batches(StoreReader& reader, std::vector<BatchId> ids) {
  std::ranges::sort(ids, std::greater());
  std::vector<FoundBatch> found;
  for (const BatchId id : ids) {
    TRY_ASSIGN(auto traits, reader.traits(id));
    if (!traits || traits->mode.empty()) {
      continue;
    }
    TRY_ASSIGN(const StateCounts counts, reader.counts(id));
    if (FoundBatch batch{id, std::move(*traits), counts}; batch.alive()) {
      found.push_back(std::move(batch));
    }
  }
  return found;
}

Result<std::optional<FoundBatch>> last_batch_of(StoreReader& reader,
                                                const std::string& config_file) {
  std::optional<FoundBatch> found;
  TRY(look_through(reader, [&](const BatchRow& row) {
    if (!row.traits.mode.empty() && row.traits.config_file == config_file) {
      found = FoundBatch{row.id, row.traits, row.counts};
    }
    return found.has_value();
  }));
  return found;
}

Result<bool> is_batch_log(StoreReader& reader, const std::string& path) {
  bool found = false;
  TRY(look_through(reader, [&](const BatchRow& row) {
    if (row.traits.state_dir.empty() || row.traits.log.empty()) {
      return false;
    }
    const std::string log = fmt::format("{}/{}", row.traits.state_dir, row.traits.log);
    const bool older = path.size() == log.size() + 2 && path.starts_with(log) &&
                       path[log.size()] == '.' && path.back() >= '1' && path.back() <= '9';
    found = path == log || older;
    return found;
  }));
  return found;
}

}  // namespace berth
