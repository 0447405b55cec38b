#include "daemon/live_streams.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "store/sqlite_store.hpp"

namespace berth {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

/// A client whose network is slow when the test says so.
class FakeSink : public ResponseSink {
 public:
  void write(std::string piece) override {
    text += piece;
    pending_ += slow ? piece.size() : 0;
  }
  void close() override { closed = true; }
  [[nodiscard]] std::size_t pending() const override { return pending_; }
  void on_drained(std::function<void()> then) override { drained_ = std::move(then); }
  void on_gone(std::function<void()> then) override { gone_ = std::move(then); }

  void drain() {
    pending_ = 0;
    if (const auto then = std::exchange(drained_, {})) {
      then();
    }
  }
  void go() { std::exchange(gone_, {})(); }
  [[nodiscard]] std::vector<std::uint64_t> ids() const {
    std::vector<std::uint64_t> out;
    for (auto at = text.find("id: "); at != std::string::npos; at = text.find("\nid: ", at + 1)) {
      out.push_back(std::stoull(text.substr(text.find(' ', at) + 1)));
    }
    return out;
  }

  std::string text;
  bool slow = false;
  bool closed = false;

 private:
  std::size_t pending_ = 0;
  std::function<void()> drained_;
  std::function<void()> gone_;
};

class LiveStreamsTest : public testing::Test {
 protected:
  LiveStreamsTest() {
    char name[] = "/tmp/berth-live-XXXXXX";
    dir_ = ::mkdtemp(name);
    StoreOptions options;
    options.file = dir_ / "store.db";
    options.boot_id = "boot";
    options.ballast = 0;
    options.post = [this](std::function<void()> task) { loop_.post(std::move(task)); };
    store_ = std::move(*SqliteStore::open(std::move(options)));
    reader_.emplace(*StoreReader::open(dir_ / "store.db"));
    readers_ = std::make_unique<Worker>("reader");
    LiveStreams::Hooks hooks;
    hooks.gpus = [this](const auto& then) { then(gpus_); };
    hooks.status = [this](const StateCounts&, const auto& then) { then(status_); };
    streams_ = std::make_unique<LiveStreams>(loop_, *readers_, *reader_, std::move(hooks));
  }
  ~LiveStreamsTest() override {
    readers_.reset();
    streams_.reset();
    reader_.reset();
    store_.reset();
    fs::remove_all(dir_);
  }

  /// Events become durable, as those of the daemon do.
  void happen(int count) {
    Transaction transaction;
    for (int i = 0; i < count; ++i) {
      transaction.changes.push_back(
          change::History{"started", JobId{1}, {}, {}, fmt::format("no {}", ++happened_), {}});
    }
    bool done = false;
    store_->commit(std::move(transaction), [&](const CommitOutcome& outcome) {
      EXPECT_TRUE(outcome.status);
      done = true;
      streams_->on_durable();
      loop_.stop();
    });
    while (!done) {
      turn();
    }
  }

  std::shared_ptr<FakeSink> listen(const std::string& topics, const std::string& last = {}) {
    HttpRequest request;
    request.query["topics"] = topics;
    if (!last.empty()) {
      request.headers["last-event-id"] = last;
    }
    auto sink = std::make_shared<FakeSink>();
    streams_->open(request, [&](const HttpResponse& response) {
      EXPECT_EQ(response.status, 200);
      EXPECT_EQ(response.content_type, "text/event-stream");
      response.stream(sink);
    });
    return sink;
  }

  /// Runs the loop until it is so; a minute at most.
  template <class Condition>
  void until(const Condition& condition) {
    const auto patience = loop_.after(Millis(60'000), [this] {
      ADD_FAILURE() << "it has not come to that";
      given_up_ = true;
      loop_.stop();
    });
    while (!condition() && !given_up_) {
      const auto look = loop_.after(Millis(5), [this] { loop_.stop(); });
      turn();
    }
  }

  /// Until somebody stops it.
  void turn() {
    loop_.io().restart();
    loop_.run();
  }

  static std::vector<std::uint64_t> from_to(std::uint64_t first, std::uint64_t last) {
    std::vector<std::uint64_t> out;
    for (; first <= last; ++first) {
      out.push_back(first);
    }
    return out;
  }

  fs::path dir_;
  Loop loop_;
  std::unique_ptr<SqliteStore> store_;
  std::optional<StoreReader> reader_;
  std::unique_ptr<Worker> readers_;
  std::unique_ptr<LiveStreams> streams_;
  std::vector<GpuView> gpus_;
  LiveStatus status_;
  int happened_ = 0;
  bool given_up_ = false;
};

TEST_F(LiveStreamsTest, WithoutAPositionItBeginsNow) {
  happen(3);
  const auto sink = listen("events");
  // It has joined when it hears of what comes next.
  until([&] {
    happen(1);
    return !sink->ids().empty();
  });
  EXPECT_GT(sink->ids().front(), 3U);
  EXPECT_THAT(sink->text, HasSubstr("event: event\ndata: {\"seq\":"));
}

TEST_F(LiveStreamsTest, WhoComesBackMissesNothingAndHearsNothingTwice) {
  happen(1'700);  // several pages
  const auto sink = listen("events", "4");
  const auto other = listen("events", "1650");
  until([&] { return sink->ids().size() >= 1'696 && other->ids().size() >= 50; });
  happen(20);
  until([&] { return sink->ids().size() >= 1'716 && other->ids().size() >= 70; });
  EXPECT_EQ(sink->ids(), from_to(5, 1'720));
  EXPECT_EQ(other->ids(), from_to(1'651, 1'720));
}

TEST_F(LiveStreamsTest, WhoDoesNotReadGetsNoMoreUntilItDoes) {
  const auto slow = listen("events", "0");
  const auto quick = listen("events", "0");
  slow->slow = true;
  for (int i = 0; i < 12; ++i) {
    happen(500);
    until([&] { return quick->ids().size() >= static_cast<std::size_t>(happened_); });
  }
  EXPECT_LT(slow->pending(), 512U * 1024);
  EXPECT_LT(slow->ids().size(), 6'000U);
  until([&] {
    slow->drain();
    return slow->ids().size() >= 6'000;
  });
  EXPECT_EQ(slow->ids(), from_to(1, 6'000));
}

TEST_F(LiveStreamsTest, ManyHearTheSameWhileOthersGo) {
  std::vector<std::shared_ptr<FakeSink>> many;
  for (int i = 0; i < 130; ++i) {
    many.push_back(listen("events,status", "0"));
  }
  for (int round = 0; round < 5; ++round) {
    happen(40);
    const auto& watched = many.back();
    until([&] { return watched->ids().size() >= static_cast<std::size_t>(happened_) - 20; });
    for (int i = 0; i < 20; ++i) {  // the others come up in another handful
      many[static_cast<std::size_t>(i)]->go();
    }
    many.erase(many.begin(), many.begin() + 20);
  }
  for (const auto& sink : many) {
    until([&] { return sink->ids().size() >= 200; });
    EXPECT_EQ(sink->ids(), from_to(1, 200));
    until([&] { return sink->text.find("event: status") != std::string::npos; });
    EXPECT_EQ(sink->text.find("event: status"), sink->text.rfind("event: status"));
  }
}

TEST_F(LiveStreamsTest, CardsAndStatusAreToldWhenTheyChange) {
  status_.paused = false;
  const auto sink = listen("gpus,status");
  until([&] { return sink->text.find("event: status") != std::string::npos; });
  EXPECT_THAT(sink->text, HasSubstr("event: gpus\ndata: []\n\n"));
  const std::size_t told = sink->text.size();
  GpuView gpu;
  gpu.uuid = "GPU-1";
  gpus_ = {gpu};
  until([&] { return sink->text.find("GPU-1") != std::string::npos; });
  EXPECT_THAT(sink->text.substr(told), Not(HasSubstr("event: status"))) << "nothing new of it";
  EXPECT_THAT(sink->text, Not(HasSubstr("event: event")));
  EXPECT_TRUE(streams_->watches_gpus());
}

TEST_F(LiveStreamsTest, NobodyIsThereAnyMore) {
  const auto sink = listen("events,gpus");
  EXPECT_EQ(streams_->listeners(), 1U);
  sink->go();
  EXPECT_EQ(streams_->listeners(), 0U);
  EXPECT_FALSE(streams_->watches_gpus());
  const auto last = listen("events");
  streams_->close();
  EXPECT_TRUE(last->closed);
}

TEST_F(LiveStreamsTest, AnUnknownTopicIsRefused) {
  HttpRequest request;
  request.query["topics"] = "weather";
  int status = 0;
  streams_->open(request, [&](const HttpResponse& response) { status = response.status; });
  EXPECT_EQ(status, 400);
}

}  // namespace
}  // namespace berth
