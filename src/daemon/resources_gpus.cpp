// What cards did, and what attempts used of them.

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "daemon/resources.hpp"
#include "ring/sample.hpp"

namespace berth {
namespace {

constexpr Millis kHistorySpan = std::chrono::hours(1);

/// By its UUID or by its index.
const Gpu* find_gpu(const State& state, const std::string& text) {
  if (const Gpu* gpu = state.gpu(text)) {
    return gpu;
  }
  std::uint32_t index = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, index);
  for (const Gpu& gpu : state.gpus) {
    if (error == std::errc() && at == end && gpu.facts.index == index) {
      return &gpu;
    }
  }
  return nullptr;
}

/// An attempt of a job, as far as its use of cards goes.
struct Attempted {
  AttemptRow row;
  bool any = false;
};

Result<Attempted> find_attempt(StoreReader& reader, std::uint64_t job, std::uint32_t number) {
  TRY_ASSIGN(const auto known, reader.job(JobId{job}));
  if (!known) {
    return fail(ErrorCode::not_found,
                fmt::format("there is no job {}; `berth ls --all` lists them", job));
  }
  TRY_ASSIGN(auto attempts, reader.attempts(JobId{job}));
  Attempted found;
  for (AttemptRow& attempt : attempts) {
    if (number == 0 || attempt.number == number) {
      found = {std::move(attempt), true};
    }
  }
  if (!found.any && number != 0) {
    return fail(ErrorCode::not_found, fmt::format("job {} has no attempt {}", job, number));
  }
  return found;
}

}  // namespace

void Resources::gpu_history(const HttpRequest& request, Respond respond) {
  const auto query = parse_gpu_history_query(request.query);
  if (!query) {
    respond(error_response(query.error()));
    return;
  }
  const Gpu* gpu = find_gpu(needs_.engine.state(), query->gpu);
  // A card that is gone has a past all the same.
  const std::string uuid = gpu == nullptr ? query->gpu : gpu->facts.uuid;
  const Millis to = query->to.value_or(read_clock().wall);
  const Millis from = query->from.value_or(to - kHistorySpan);
  history_.read(GpuHistory::Of::gpus, ring_key(uuid), from, to, query->limit,
                [uuid, known = gpu != nullptr,
                 respond = std::move(respond)](const Result<std::vector<RingSample>>& samples) {
                  if (!samples) {
                    respond(error_response(samples.error()));
                    return;
                  }
                  if (!known && samples->empty()) {
                    respond(error_response(
                        {ErrorCode::not_found,
                         fmt::format("there is no GPU '{}'; GET /api/gpus lists them", uuid)}));
                    return;
                  }
                  GpuHistoryView view{uuid, {}};
                  for (const RingSample& sample : *samples) {
                    view.points.push_back({sample.time, sample.memory, sample.utilization,
                                           sample.temperature, sample.power_mw});
                  }
                  respond(ok(encode(view)));
                });
}

void Resources::usage(std::uint64_t job, const HttpRequest& request, Respond respond) {
  const auto query = parse_usage_query(request.query);
  if (!query) {
    respond(error_response(query.error()));
    return;
  }
  read_store(
      [job, number = query->attempt](StoreReader& reader) {
        return find_attempt(reader, job, number);
      },
      [this, points = query->points,
       respond = std::move(respond)](const Result<Attempted>& found) mutable {
        if (!found) {
          respond(error_response(found.error()));
          return;
        }
        UsageView view;
        if (!found->any) {
          respond(ok(encode(view)));
          return;
        }
        view.attempt = found->row.number;
        if (found->row.gpu_memory != 0) {
          view.claim = found->row.gpu_memory * found->row.gpus.size();
        }
        const Millis to = found->row.ended.value_or(read_clock().wall);
        history_.read(GpuHistory::Of::attempts, found->row.id.value, found->row.started, to, points,
                      [view = std::move(view), respond = std::move(respond)](
                          const Result<std::vector<RingSample>>& samples) mutable {
                        if (!samples) {
                          respond(error_response(samples.error()));
                          return;
                        }
                        for (const RingSample& sample : *samples) {
                          view.points.push_back({sample.time, sample.memory, sample.utilization});
                        }
                        respond(ok(encode(view)));
                      });
      });
}

}  // namespace berth
