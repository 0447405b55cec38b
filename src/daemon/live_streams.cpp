#include "daemon/live_streams.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "daemon/views.hpp"

namespace berth {
namespace {

/// So many streams at once; a browser that is refused comes back by itself.
constexpr std::size_t kListeners = 400;
/// Of the history at a time.
constexpr std::size_t kPage = 500;
/// Whoever has more than this before it does not keep up.
constexpr std::size_t kPendingMax = 256UL * 1024;
/// News of a busy daemon are told in handfuls.
constexpr Millis kPace{50};
constexpr Millis kTick{1'000};
/// Those who come together are told together how things are.
constexpr Millis kSoon{10};
/// Every listener is a call of the kernel's: so many hold the loop for less than a millisecond.
constexpr std::size_t kToldAtOnce = 25;
constexpr std::uint32_t kTicksBetweenHeartbeats = 15;

std::optional<std::uint64_t> parse_position(const std::map<std::string, std::string>& headers) {
  const auto header = headers.find("last-event-id");
  if (header == headers.end()) {
    return std::nullopt;
  }
  std::uint64_t position = 0;
  const char* end = header->second.data() + header->second.size();
  const auto [at, error] = std::from_chars(header->second.data(), end, position);
  return error == std::errc() && at == end ? std::optional(position) : std::nullopt;
}

}  // namespace

std::string server_sent_event(std::string_view id, std::string_view event, std::string_view data) {
  return fmt::format("{}{}{}event: {}\ndata: {}\n\n", id.empty() ? "" : "id: ", id,
                     id.empty() ? "" : "\n", event, data);
}

LiveStreams::LiveStreams(Loop& loop, Worker& readers, StoreReader& reader, Hooks hooks)
    : loop_(loop), readers_(readers), reader_(reader), hooks_(std::move(hooks)) {}

template <class Query, class Then>
void LiveStreams::read_store(Query query, Then then) {
  readers_.post([this, query = std::move(query), then = std::move(then)]() mutable {
    auto result = std::make_shared<decltype(query(reader_))>(query(reader_));
    loop_.post([result, then = std::move(then)]() mutable { then(std::move(*result)); });
  });
}

void LiveStreams::open(const HttpRequest& request, const Respond& respond) {
  auto query = parse_stream_query(request.query);
  if (!query) {
    respond(error_response(query.error()));
    return;
  }
  if (listeners_.size() >= kListeners) {
    respond(
        error_response({ErrorCode::busy,
                        fmt::format("{} live streams are open already; close some", kListeners)}));
    return;
  }
  // A browser that comes back says where it was; what its address says is older.
  if (const auto position = parse_position(request.headers)) {
    query->after = position;
  }
  HttpResponse response;
  response.content_type = "text/event-stream";
  response.headers.emplace_back("Cache-Control", "no-store");
  response.headers.emplace_back("X-Accel-Buffering", "no");
  response.stream = [this, query = *query](const std::shared_ptr<ResponseSink>& sink) {
    begin(query, sink);
  };
  respond(std::move(response));
}

void LiveStreams::begin(StreamQuery query, const std::shared_ptr<ResponseSink>& sink) {
  auto listener = std::make_shared<Listener>();
  listener->query = query;
  listener->sink = sink;
  listeners_.push_back(listener);
  sink->on_gone([this, weak = std::weak_ptr(listener)] {
    if (const auto gone = weak.lock()) {
      drop(gone);
    }
  });
  sink->write(": berth\n\n");
  if (query.events) {
    join(listener);
  }
  // At once what there is, then whatever changes.
  tick_soon();
}

void LiveStreams::join(const ListenerPtr& listener) {
  const auto is_current = [](const ListenerPtr& other) { return other->current; };
  if (listener->query.after.value_or(at_ + 1) <= at_ &&
      std::ranges::any_of(listeners_, is_current)) {
    listener->at = *listener->query.after;
    catch_up(listener);
    return;
  }
  listener->reading = true;
  read_store([](StoreReader& reader) { return reader.last_history(); },
             [this, listener, is_current](const Result<std::uint64_t>& last) {
               listener->reading = false;
               if (!last || !listener->sink) {
                 drop(listener);
                 return;
               }
               // A position that was never issued is of another store: from now on, then.
               listener->at = std::min(listener->query.after.value_or(*last), *last);
               if (std::ranges::none_of(listeners_, is_current)) {
                 at_ = std::max(at_, *last);
               }
               catch_up(listener);
             });
}

namespace {

template <class News>
Result<News> read_page(StoreReader& reader, std::uint64_t after) {
  HistoryQuery query;
  query.after = after;
  query.limit = kPage;
  TRY_ASSIGN(const HistoryPage page, reader.history_page(query));
  News news;
  news.last = page.last;
  news.more = page.more;
  for (const HistoryRow& row : page.rows) {
    news.begins.emplace_back(row.seq, news.text.size());
    news.text += server_sent_event(fmt::format("{}", row.seq), "event", encode(event_view(row)));
  }
  return news;
}

}  // namespace

bool LiveStreams::falls_behind(const ListenerPtr& listener) {
  if (listener->sink->pending() <= kPendingMax) {
    return false;
  }
  if (!std::exchange(listener->waiting, true)) {
    listener->sink->on_drained([this, weak = std::weak_ptr(listener)] {
      const auto behind = weak.lock();
      if (behind && behind->sink) {
        behind->waiting = false;
        catch_up(behind);
      }
    });
  }
  return true;
}

void LiveStreams::catch_up(const ListenerPtr& listener) {
  if (listener->reading || listener->current || !listener->query.events) {
    return;
  }
  if (listener->at >= at_) {
    listener->current = true;
    read_news();  // something may have come meanwhile
    return;
  }
  if (falls_behind(listener)) {
    return;
  }
  listener->reading = true;
  read_store([after = listener->at](StoreReader& reader) { return read_page<News>(reader, after); },
             [this, listener](const Result<News>& news) { take_page(listener, news); });
}

void LiveStreams::take_page(const ListenerPtr& listener, const Result<News>& news) {
  listener->reading = false;
  if (!listener->sink) {
    return;
  }
  if (!news) {
    drop(listener);
    return;
  }
  if (!news->text.empty()) {
    listener->sink->write(news->text);
  }
  // Lines that are no longer kept are not waited for.
  listener->at = news->more ? news->last : std::max(news->last, at_);
  catch_up(listener);
}

void LiveStreams::on_durable() {
  if (listeners_.empty() || pace_) {
    return;
  }
  pace_ = loop_.after(kPace, [this] {
    pace_.reset();
    read_news();
  });
}

void LiveStreams::read_news() {
  if (std::ranges::none_of(listeners_, [](const ListenerPtr& one) { return one->current; })) {
    return;
  }
  if (reading_) {
    again_ = true;  // that reading may have begun too early to see it
    return;
  }
  reading_ = true;
  again_ = false;
  read_store([after = at_](StoreReader& reader) { return read_page<News>(reader, after); },
             [this](Result<News> news) {
               if (news) {
                 tell_news(std::move(*news));
               } else {
                 reading_ = false;
               }
             });
}

void LiveStreams::tell_news(News news) {
  at_ = std::max(at_, news.last);
  const auto shared = std::make_shared<const News>(std::move(news));
  tell_all(
      [this, shared](const ListenerPtr& listener) {
        if (!listener->current || listener->at >= shared->last) {
          return;
        }
        if (!shared->text.empty() && falls_behind(listener)) {
          listener->current = false;
          return;
        }
        // Who has just been brought up to date may know the first of them.
        const auto fresh = std::ranges::upper_bound(shared->begins, listener->at, {},
                                                    &std::pair<std::uint64_t, std::size_t>::first);
        if (fresh != shared->begins.end()) {
          listener->sink->write(shared->text.substr(fresh->second));
        }
        listener->at = shared->last;
      },
      [this, shared] {
        // Not before: news must not overtake each other.
        reading_ = false;
        if (shared->more || std::exchange(again_, false)) {
          read_news();
        }
      });
}

struct LiveStreams::Telling {
  std::vector<ListenerPtr> listeners;
  std::size_t told = 0;
  std::function<void(const ListenerPtr&)> tell;
  std::function<void()> then;
};

void LiveStreams::tell_all(std::function<void(const ListenerPtr&)> tell,
                           std::function<void()> then) {
  tell_some(std::make_shared<Telling>(
      Telling{{listeners_.begin(), listeners_.end()}, 0, std::move(tell), std::move(then)}));
}

void LiveStreams::tell_some(const std::shared_ptr<Telling>& telling) {
  const std::size_t end = std::min(telling->told + kToldAtOnce, telling->listeners.size());
  for (; telling->told < end; ++telling->told) {
    const ListenerPtr& listener = telling->listeners[telling->told];
    if (listener->sink) {
      telling->tell(listener);
    }
  }
  if (end < telling->listeners.size()) {
    loop_.post([this, telling] { tell_some(telling); });
  } else if (telling->then) {
    telling->then();
  }
}

bool LiveStreams::watches_gpus() const {
  return std::ranges::any_of(listeners_, [](const ListenerPtr& one) { return one->query.gpus; });
}

void LiveStreams::tick_soon() {
  if (!std::exchange(soon_, true)) {
    tick_ = loop_.after(kSoon, [this] { tick(); });
  }
}

void LiveStreams::tick() {
  soon_ = false;
  if (listeners_.empty()) {
    return;
  }
  if (ticks_ != 0 && ticks_ % kTicksBetweenHeartbeats == 0) {
    tell_all([](const ListenerPtr& listener) { listener->sink->write(":\n\n"); });
  }
  ++ticks_;
  tell_gpus();
  tell_status();
  tick_ = loop_.after(kTick, [this] { tick(); });
}

void LiveStreams::tell_gpus() {
  if (looking_ || !watches_gpus()) {
    return;
  }
  looking_ = true;
  hooks_.gpus([this](const std::vector<GpuView>& gpus) {
    const std::string text = encode_line(gpus);
    tell_all(
        [this, text, event = server_sent_event({}, "gpus", text)](const ListenerPtr& listener) {
          if (listener->query.gpus && listener->gpus_sent != text && !falls_behind(listener)) {
            listener->gpus_sent = text;
            listener->sink->write(event);
          }
        },
        [this] { looking_ = false; });
  });
}

void LiveStreams::tell_status() {
  if (counting_ ||
      std::ranges::none_of(listeners_, [](const ListenerPtr& one) { return one->query.status; })) {
    return;
  }
  counting_ = true;
  read_store([](StoreReader& reader) { return reader.counts(); },
             [this](const Result<StateCounts>& counts) {
               if (!counts) {
                 counting_ = false;
                 return;
               }
               hooks_.status(*counts, [this](const LiveStatus& status) { tell(status); });
             });
}

void LiveStreams::tell(const LiveStatus& status) {
  const std::string text = encode(status);
  tell_all(
      [this, text, event = server_sent_event({}, "status", text)](const ListenerPtr& listener) {
        if (listener->query.status && listener->status_sent != text && !falls_behind(listener)) {
          listener->status_sent = text;
          listener->sink->write(event);
        }
      },
      [this] { counting_ = false; });
}

void LiveStreams::drop(const ListenerPtr& listener) {
  listener->sink.reset();
  listener->current = false;
  listeners_.remove(listener);
}

void LiveStreams::close() {
  for (const ListenerPtr& listener : std::exchange(listeners_, {})) {
    listener->sink->close();
    listener->sink.reset();
    listener->current = false;
  }
  tick_.reset();
  pace_.reset();
}

}  // namespace berth
