// The instance: its numbers, its health, the description of its API.

#include <utility>

#include "access/gate.hpp"
#include "daemon/metrics.hpp"
#include "daemon/openapi.hpp"
#include "daemon/resources.hpp"
#include "daemon/views.hpp"

namespace berth {
namespace {

constexpr Millis kScrapePatience{1'000};

}  // namespace

void Resources::metrics(Respond respond) {
  // Nobody may have looked at the cards for long where nothing waits. But what collects numbers has
  // little patience, and wants them most when the driver has stopped to answer.
  struct Scrape {
    Respond respond;
    Loop::Handle patience;
  };
  auto scrape = std::make_shared<Scrape>(Scrape{std::move(respond), {}});
  const auto tell = [this](Scrape& of) {
    if (of.respond) {
      tell_metrics(std::exchange(of.respond, nullptr));
    }
  };
  scrape->patience =
      needs_.loop.after(kScrapePatience, [tell, late = std::weak_ptr<Scrape>(scrape)] {
        if (const auto still = late.lock()) {
          tell(*still);
        }
      });
  needs_.after_fresh_look([tell, scrape] { tell(*scrape); });
}

void Resources::tell_metrics(Respond respond) {
  read_store([](StoreReader& reader) { return reader.counts(); },
             [this, respond = std::move(respond)](const Result<StateCounts>& counts) {
               if (!counts) {
                 respond(error_response(counts.error()));
                 return;
               }
               const State& state = needs_.engine.state();
               const Now now = read_clock();
               MetricsFacts facts;
               facts.uptime = now.mono - started_;
               facts.counts = *counts;
               facts.gpus = make_gpu_views(state, needs_.config.node, now);
               facts.queues = queue_details(state);
               if (last_look_) {
                 facts.probe_age = now.mono - *last_look_;
               }
               facts.probe_failed = !state.probe_error.empty();
               facts.low_space = state.low_space;
               facts.loop = needs_.loop.stats();
               facts.streams = streams_.listeners();
               HttpResponse response;
               response.content_type = "text/plain; version=0.0.4";
               response.body = format_metrics(facts, meter_);
               respond(std::move(response));
             });
}

void Resources::health(const Respond& respond) {
  const HealthView health =
      judge_health(needs_.engine.state(), needs_.settings.problems(), needs_.engine.broken());
  HttpResponse response = ok(encode(health));
  response.status = health.status == "failing" ? 503 : 200;
  respond(std::move(response));
}

void Resources::openapi(Respond respond) {
  work_long([cookie = cookie_name(needs_.config.instance)] { return openapi_json(cookie); },
            [respond = std::move(respond)](std::string text) { respond(ok(std::move(text))); });
}

void Resources::docs(Respond respond) {
  work_long([] { return std::string_view(openapi_page()); },
            [respond = std::move(respond)](std::string_view text) {
              HttpResponse response;
              response.content_type = "text/html; charset=utf-8";
              response.headers.emplace_back(
                  "Content-Security-Policy",
                  "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
              response.body = text;
              respond(std::move(response));
            });
}

}  // namespace berth
