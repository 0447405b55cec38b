// What the commands ask of a daemon that is scripted line by line, and what they do with answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "api/http.hpp"
#include "api/wire.hpp"
#include "cli/commands.hpp"
#include "cli/pager.hpp"
#include "cli/since.hpp"
#include "cli/watch.hpp"

namespace berth::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

/// Every request goes to `answer`; what it returns is sent.
class ScriptedDaemon {
 public:
  explicit ScriptedDaemon(std::function<HttpResponse(const HttpRequest&)> answer)
      : answer_(std::move(answer)) {
    std::string name = (fs::temp_directory_path() / "berth-daily-XXXXXX").native();
    dir_ = ::mkdtemp(name.data());
    ::setenv("BERTH_DIR", dir_.c_str(), 1);
    auto server =
        HttpServer::listen(io_, dir_ / "sock", [this](const HttpRequest& request, auto respond) {
          seen.push_back(request);
          respond(answer_(request));
        });
    EXPECT_TRUE(server.has_value());
    server_ = std::move(*server);
    thread_ = std::thread([this] { io_.run(); });
  }
  ~ScriptedDaemon() {
    boost::asio::post(io_, [this] {
      server_.reset();
      io_.stop();
    });
    thread_.join();
    ::unsetenv("BERTH_DIR");
    fs::remove_all(dir_);
  }
  ScriptedDaemon(const ScriptedDaemon&) = delete;
  ScriptedDaemon& operator=(const ScriptedDaemon&) = delete;

  std::vector<HttpRequest> seen;
  [[nodiscard]] const fs::path& dir() const { return dir_; }

 private:
  std::function<HttpResponse(const HttpRequest&)> answer_;
  fs::path dir_;
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{
      io_.get_executor()};
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

struct Ran {
  int code = 0;
  std::string out;
  std::string err;
};

Ran berth(std::vector<std::string> words) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Ran ran;
  ran.code = run_cli(std::move(words));
  std::fflush(stdout);
  ran.out = ::testing::internal::GetCapturedStdout();
  ran.err = ::testing::internal::GetCapturedStderr();
  return ran;
}

JobView a_job(std::uint64_t id, const std::string& name) {
  JobView job;
  job.id = id;
  job.name = name;
  job.queue = "default";
  job.state = JobState::succeeded;
  return job;
}

HttpResponse body(std::string text) {
  HttpResponse response;
  response.body = std::move(text);
  return response;
}

TEST(DailyTest, FiltersReachTheDaemonAndNamesAreMatchedHere) {
  ScriptedDaemon daemon([](const HttpRequest& request) {
    const JobQuery query = *parse_job_query(request.query);
    JobPage page;
    if (!query.after.id) {  // two pages
      page.jobs = {a_job(1, "lr-1"), a_job(2, "eval")};
      page.next = ListPlace{{2}};
    } else {
      page.jobs = {a_job(3, "lr-3")};
    }
    return body(encode(page));
  });
  const Millis before = read_clock().wall;
  const Ran ran = berth({"ls", "--state", "failed", "--queue", "car", "--batch", "3", "--since",
                         "2h", "--name", "lr-*", "--json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const auto jobs = decode<JobPage>("{\"jobs\":" + ran.out + "}")->jobs;
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[1].id, 3U);
  const JobQuery query = *parse_job_query(daemon.seen.at(0).query);
  EXPECT_EQ(query.states, std::vector{JobState::failed});
  EXPECT_EQ(query.queue, "car");
  EXPECT_EQ(query.batch, 3U);
  ASSERT_TRUE(query.since.has_value());
  EXPECT_GE(*query.since, before - std::chrono::hours(2));
  EXPECT_LE(*query.since, read_clock().wall - std::chrono::hours(2));
}

TEST(DailyTest, ABusyDaemonIsWaitedForAndThatIsToldOnce) {
  int busy = 2;
  ScriptedDaemon daemon([&](const HttpRequest& request) {
    if (request.path == "/api/jobs" && busy-- > 0) {
      HttpResponse response;
      response.status = 429;
      response.headers = {{"Retry-After", busy == 1 ? "0" : "1"}};
      response.body = R"({"error":{"code":"refused","message":"too much at once"}})";
      return response;
    }
    return body(encode(SubmitAnswer{0, 7, 7}));
  });
  const Millis begun = read_clock().mono;
  const Ran ran = berth({"add", "--gpus", "1", "true"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "7\n");
  EXPECT_EQ(ran.err, "berth: the daemon is busy; waiting\n");
  EXPECT_GE(read_clock().mono - begun, Millis(900));
  ASSERT_EQ(daemon.seen.size(), 3U);
  EXPECT_EQ(daemon.seen[2].body, daemon.seen[0].body);  // the same key, so never twice
}

TEST(DailyTest, JobsOfAFileThatChooseTheirOwnGpusAreNamed) {
  ScriptedDaemon daemon([](const HttpRequest& request) {
    StatusView status;
    status.probe.age = Millis(1);
    return body(request.method == "POST" ? encode(SubmitAnswer{1, 1, 8}) : encode(status));
  });
  const std::string file = daemon.dir() / "jobs.yaml";
  std::ofstream(file) << "version: 1\njobs:\n"
                         "  - {name: 'own-{n}', matrix: {n: [1, 2, 3, 4, 5, 6, 7]}, run: "
                         "'CUDA_VISIBLE_DEVICES={n} true'}\n"
                         "  - {name: good, run: 'true'}\n";
  const Ran many = berth({"run", "--detach", file});
  EXPECT_EQ(many.code, 0) << many.err;
  EXPECT_THAT(many.err, HasSubstr("jobs.yaml:3:64: this sets CUDA_VISIBLE_DEVICES itself"));
  std::ofstream(file) << "version: 1\njobs: [{name: one, run: 'CUDA_VISIBLE_DEVICES=1 true'}]\n";
  EXPECT_THAT(berth({"run", "--detach", file}).err,
              HasSubstr("jobs.yaml:2:25: this sets CUDA_VISIBLE_DEVICES itself"));
}

TEST(DailyTest, CompletionOffersWhatTheDaemonKnows) {
  ScriptedDaemon daemon([](const HttpRequest&) {
    JobPage page;
    page.jobs = {a_job(2, "two\twords"), a_job(1, "one")};
    page.jobs[0].queue = "car";
    return body(encode(page));
  });
  EXPECT_EQ(berth({"__complete", "jobs"}).out, "2\ttwo\\twords, succeeded\n1\tone, succeeded\n");
  EXPECT_EQ(berth({"__complete", "queues"}).out, "car\tqueue\ndefault\tqueue\n");
}

TEST(DailyTest, CompletionDoesNotWaitForADaemonThatHangs) {
  std::atomic<bool> leave = false;
  ScriptedDaemon daemon([&](const HttpRequest&) {
    while (!leave) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return HttpResponse();
  });
  const Ran ran = berth({"__complete", "jobs"});
  leave = true;
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out + ran.err, "");
}

TEST(DailyTest, ColourIsAsAskedFor) {
  ScriptedDaemon daemon([](const HttpRequest&) {
    JobPage page;
    page.jobs = {a_job(1, "one")};
    return body(encode(page));
  });
  EXPECT_THAT(berth({"ls", "--all", "--color=always"}).out, HasSubstr("\x1b[32msucceeded"));
  EXPECT_THAT(berth({"ls", "--all"}).out, Not(HasSubstr("\x1b")));  // it is not remembered
}

TEST(DailyTest, AWatchWithoutATerminalIsRefused) {
  ScriptedDaemon daemon([](const HttpRequest&) { return HttpResponse(); });
  const Ran ran = berth({"ls", "--watch"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("draws on a terminal, and standard output is none"));
  EXPECT_TRUE(daemon.seen.empty());
}

TEST(SinceTest, TimesAsPeopleWriteThem) {
  const char* zone = std::getenv("TZ");
  const std::string before = zone == nullptr ? "" : zone;
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  const Millis now{1'714'566'896'789};  // 2024-05-01 12:34:56.789
  const auto day = std::chrono::hours(24);
  const Millis today{1'714'521'600'000};
  EXPECT_EQ(parse_since("2h", now), now - std::chrono::hours(2));
  EXPECT_EQ(parse_since("3 days", now), now - 3 * day);
  EXPECT_EQ(parse_since("today", now), today);
  EXPECT_EQ(parse_since("yesterday", now), today - day);
  EXPECT_EQ(parse_since("2024-05-01", now), today);
  EXPECT_EQ(parse_since("2024-05-01 06:30", now), today + std::chrono::minutes(390));
  EXPECT_EQ(parse_since("2024-05-01T06:30:05", now), today + std::chrono::seconds(23'405));
  EXPECT_EQ(parse_since("100000 days", now), Millis(0));
  EXPECT_FALSE(parse_since("2024-13-01", now).has_value());
  EXPECT_FALSE(parse_since("", now).has_value());
  EXPECT_FALSE(parse_since("teatime", now).has_value());
  before.empty() ? ::unsetenv("TZ") : ::setenv("TZ", before.c_str(), 1);
  ::tzset();
}

TEST(PagerTest, TheCommandIsTheUsersChoice) {
  ::setenv("PAGER", "more", 1);
  EXPECT_EQ(pager_command(), "more");
  ::setenv("BERTH_PAGER", "most -s", 1);
  EXPECT_EQ(pager_command(), "most -s");
  ::setenv("BERTH_PAGER", "", 1);
  EXPECT_EQ(pager_command(), "");
  ::unsetenv("BERTH_PAGER");
  ::setenv("PAGER", "cat", 1);
  EXPECT_EQ(pager_command(), "");
  ::unsetenv("PAGER");
  const char* known = std::getenv("PATH");
  const std::string path = known != nullptr ? known : "";
  ::setenv("PATH", "/nonexistent", 1);
  EXPECT_EQ(pager_command(), "");  // without less, without a pager
  ::setenv("PATH", path.c_str(), 1);
}

TEST(PagerTest, LinesAreCountedAsTheScreenShowsThem) {
  Screen screen;
  screen.width = 10;
  EXPECT_EQ(screen_lines("", screen, 99), 0U);
  EXPECT_EQ(screen_lines("a\n\nb", screen, 99), 3U);
  EXPECT_EQ(screen_lines(std::string(21, 'x') + "\n", screen, 99), 3U);
  EXPECT_EQ(screen_lines("\x1b[31m" + std::string(10, 'x') + "\x1b[0m\n", screen, 99), 1U);
  EXPECT_EQ(screen_lines("a\nb\nc\nd\n", screen, 2), 2U);
}

TEST(WatchTest, APictureIsCutToTheScreen) {
  Screen screen;
  screen.width = 5;
  screen.height = 3;
  EXPECT_EQ(fit("one\ntwo words\n", screen), (std::vector<std::string>{"one", "two …"}));
  EXPECT_EQ(fit("1\n2\n3\n4\n5\n", screen), (std::vector<std::string>{"1", "2", "… 3 more lines"}));
}

}  // namespace
}  // namespace berth::cli
