#pragma once
// What happens, told to whoever listens, as Server-Sent Events.
//
// Those who are up to date share one reading of the history for each round of news. Whoever comes
// back with an old position, or does not read as fast as things happen, is brought up to date page
// by page on its own, and only when what it was sent has left: memory stays bounded.

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "api/http.hpp"
#include "api/resources.hpp"
#include "daemon/loop.hpp"
#include "daemon/worker.hpp"
#include "store/reader.hpp"

namespace berth {

class LiveStreams {
 public:
  struct Hooks {
    /// The cards as they are, after a fresh look.
    std::function<void(std::function<void(std::vector<GpuView>)>)> gpus;
    /// All but the counts.
    std::function<void(StateCounts, std::function<void(LiveStatus)>)> status;
  };

  LiveStreams(Loop& loop, Worker& readers, StoreReader& reader, Hooks hooks);

  void open(const HttpRequest& request, const Respond& respond);
  /// There may be news.
  void on_durable();
  void close();
  [[nodiscard]] std::size_t listeners() const { return listeners_.size(); }
  /// Whether somebody looks at the cards.
  [[nodiscard]] bool watches_gpus() const;

 private:
  struct Listener {
    StreamQuery query;
    std::shared_ptr<ResponseSink> sink;
    std::uint64_t at = 0;   ///< the last event it was sent
    bool current = false;   ///< knows all that `at_` says, and shares in the common reading
    bool reading = false;   ///< its own page is on its way
    bool waiting = false;   ///< until what it was sent has left
    std::string gpus_sent;  ///< what it was told last
    std::string status_sent;
  };
  using ListenerPtr = std::shared_ptr<Listener>;
  /// Some of the history, as it is sent.
  struct News {
    std::string text;
    std::vector<std::pair<std::uint64_t, std::size_t>> begins;  ///< of each, where in `text`
    std::uint64_t last = 0;
    bool more = false;
  };

  void begin(StreamQuery query, const std::shared_ptr<ResponseSink>& sink);
  void join(const ListenerPtr& listener);
  void catch_up(const ListenerPtr& listener);
  void take_page(const ListenerPtr& listener, const Result<News>& news);
  void read_news();
  void tell_news(News news);
  /// Calls `tell` with each listener that is still there, some at a time, then `then`.
  void tell_all(std::function<void(const ListenerPtr&)> tell, std::function<void()> then = {});
  struct Telling;
  void tell_some(const std::shared_ptr<Telling>& telling);
  void tick_soon();
  void tick();
  void tell_gpus();
  void tell_status();
  void tell(const LiveStatus& status);
  void drop(const ListenerPtr& listener);
  /// Whether it has so much to read that it gets no more for now.
  [[nodiscard]] bool falls_behind(const ListenerPtr& listener);
  template <class Query, class Then>
  void read_store(Query query, Then then);

  Loop& loop_;
  Worker& readers_;
  StoreReader& reader_;
  Hooks hooks_;
  std::list<ListenerPtr> listeners_;
  std::uint64_t at_ = 0;  ///< what those who are current have been told
  bool reading_ = false;  ///< or telling what was read
  bool again_ = false;    ///< something became durable during the reading
  std::uint32_t ticks_ = 0;
  bool soon_ = false;  ///< a tick is about to come, for whoever is new
  bool looking_ = false;
  bool counting_ = false;
  Loop::Handle pace_;
  Loop::Handle tick_;
};

/// "id: 7\nevent: event\ndata: …\n\n"; `id` may be empty.
[[nodiscard]] std::string server_sent_event(std::string_view id, std::string_view event,
                                            std::string_view data);

}  // namespace berth
