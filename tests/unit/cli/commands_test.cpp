// The commands against a daemon played by the test: what they ask, what they print, how they end.
#include "cli/commands.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "api/control.hpp"
#include "api/http.hpp"
#include "api/routes.hpp"
#include "api/socket.hpp"
#include "api/wire.hpp"
#include "base/fd.hpp"

namespace berth::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Answers from a table of jobs; the test may put an own handler in front.
class FakeDaemon {
 public:
  FakeDaemon() {
    std::string name = (fs::temp_directory_path() / "berth-cli-XXXXXX").native();
    dir_ = ::mkdtemp(name.data());
    ::setenv("BERTH_DIR", dir_.c_str(), 1);
    auto server =
        HttpServer::listen(io_, dir_ / "sock", [this](HttpRequest request, const Respond& respond) {
          handle(std::move(request), respond);
        });
    EXPECT_TRUE(server.has_value());
    server_ = std::move(*server);
    thread_ = std::thread([this] { io_.run(); });
  }
  ~FakeDaemon() {
    boost::asio::post(io_, [this] {
      server_.reset();
      io_.stop();
    });
    thread_.join();
    ::unsetenv("BERTH_DIR");
    fs::remove_all(dir_);
  }
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  /// Returns whether it has dealt with the request.
  std::function<bool(const HttpRequest&, const Respond&)> front;
  std::vector<JobView> jobs;
  std::vector<EventView> events;
  std::vector<HttpRequest> seen;
  [[nodiscard]] const fs::path& dir() const { return dir_; }

 private:
  void handle(HttpRequest request, const Respond& respond) {
    seen.push_back(request);
    if (front && front(request, respond)) {
      return;
    }
    const RouteMatch match = match_route(request.method, request.path);
    if (match.route == nullptr) {
      return respond(error_response({ErrorCode::not_found, "no such route"}));
    }
    HttpResponse response;
    switch (match.route->id) {
      case RouteId::submit: {
        const auto submit = decode_submit(request.body);
        if (!submit) return respond(error_response(submit.error()));
        response.body =
            encode(SubmitAnswer{submit->jobs.size() > 1 ? 1U : 0U, 1, submit->jobs.size()});
        break;
      }
      case RouteId::list_jobs:
        response.body = page(*parse_job_query(request.query));
        break;
      case RouteId::show_job:
        for (const JobView& job : jobs) {
          if (job.id == match.id) {
            JobDetail detail;
            detail.job = job;
            detail.commands = {{false, {"python", "x.py"}}};
            if (!job.log.empty()) {
              AttemptView attempt;
              attempt.id = 9;
              attempt.log = job.log;
              detail.attempts = {attempt};
            }
            response.body = encode(detail);
          }
        }
        if (response.body.empty()) {
          return respond(error_response({ErrorCode::not_found, "there is no job 99"}));
        }
        break;
      case RouteId::why:
        response.body = encode(WhyView{jobs.at(0), {{"gpu", "GPU 0 is claimed by job 1"}}, 0, {}});
        break;
      case RouteId::backlog:
        response.body = encode(BacklogView{1, {{"gpu", "GPU 0 is claimed by job 1", 1, 1}}});
        break;
      case RouteId::kill:
        response.body = encode(KillAnswer{{1}, {2}, {}, {77}});
        break;
      case RouteId::pause:
      case RouteId::resume:
      case RouteId::start:
      case RouteId::move:
      case RouteId::set_jobs:
      case RouteId::retry: {
        ControlAnswer answer;
        answer.moved = {1, 2};
        answer.unchanged = {3};
        answer.refused = {{"runs already", {4, 5}}};
        response.body = encode(answer);
        break;
      }
      case RouteId::rules:
      case RouteId::set_rules:
        response.body = encode(RulesView{
            {{"log_limit", "2GiB", "1GiB", "this run", "SIZE", "of a log"}}, {"a problem"}});
        break;
      case RouteId::wait:
        response.body = encode(WaitAnswer{true, jobs, {}});
        break;
      case RouteId::gpus: {
        GpuView gpu;
        gpu.name = "Simulated GPU";
        gpu.state = "free";
        response.body = encode(std::vector{gpu});
        break;
      }
      case RouteId::status: {
        StatusView status;
        status.version = "9";
        status.probe.simulated = true;
        status.probe.age = Millis(5);
        response.body = encode(status);
        break;
      }
      case RouteId::events:
        response.body = encode(EventPage{events, 5});
        break;
      case RouteId::stop:
        response.body = "{}";
        break;
      default:  // what no test here asks for
        return respond(error_response({ErrorCode::not_found, "not here"}));
    }
    respond(std::move(response));
  }

  std::string page(const JobQuery& query) {
    JobPage page;
    std::vector<JobView> all = jobs;
    if (query.descending) std::ranges::reverse(all);
    for (const JobView& job : all) {
      const bool past = !query.after.id || (query.descending ? job.id < query.after.id.value
                                                             : job.id > query.after.id.value);
      const bool state =
          query.states.empty() || std::ranges::find(query.states, job.state) != query.states.end();
      if (!past || !state || (query.ids && !query.ids->contains(job.id))) continue;
      if (page.jobs.size() == std::min(query.limit, 3U)) {  // small pages, so that cursors matter
        page.next = ListPlace{JobId{page.jobs.back().id}};
        break;
      }
      page.jobs.push_back(job);
    }
    return encode(page);
  }

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

JobView a_job(std::uint64_t id, JobState state) {
  JobView job;
  job.id = id;
  job.name = "job-" + std::to_string(id);
  job.state = state;
  job.queue = "default";
  return job;
}

TEST(CliTest, WrongUsageIsTwoAndSaysWhereHelpIs) {
  ::setenv("BERTH_DIR", "/nonexistent/berth", 1);  // none of these may get as far as a daemon
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"frobnicate"}, "frobnicate"},
      {{"add"}, "no command"},
      {{"add", ""}, "empty"},
      {{"add", "--gpus", "many", "x"},
       "--gpus: 'many' is not a number of GPUs; write 2, 1..4 or 0"},
      {{"add", "--time", "soon", "x"}, "--time: "},
      {{"add", "--gpu-memory", "8 elephants", "x"}, "--gpu-memory: "},
      {{"add", "--env", "novalue", "x"}, "--env: 'novalue' is not NAME=VALUE"},
      {{"add", "--after", "x", "y"}, "--after: 'x' is not an id"},
      {{"add", "--resource", "gold", "y"}, "--resource: "},
      {{"add", "--priority", "1.5", "y"}, "--priority: '1.5' is not a whole number"},
      {{"add", "--time", "4", "--signal", "USR1@120", "y"},
       "--signal: would come 2m before the end, and --time is 4s; it must be less"},
      {{"sweep", "--grid", "a=1,2", "--signal", "USR1", "--time", "1m", "--", "echo", "{a}"},
       "--signal: would come 1m before the end"},
      {{"add", "--priority", "99999999999", "y"},
       "--priority: '99999999999' is not from -2147483648 to 2147483647"},
      {{"add", "--gpus", "0", "--gpu-memory", "8GiB", "y"},
       "--gpu-memory: needs at least one GPU, and --gpus is 0"},
      {{"add", "--colour", "red", "y"}, "--colour"},
      {{"ls", "--state", "happy"}, "--state: 'happy' is not a state"},
      {{"show", "3-5"}, "give one id"},
      {{"kill"}, "IDS"},
      {{"kill", "9-5"}, "write 5-9"},
      {{"wait", "3", "--all"}, "give ids, or --all"},
      {{"run"}, "FILE"},
      {{"ls", "--since", "teatime"}, "--since: 'teatime' is not a time"},
      {{"ls", "--color", "mauve"}, "--color: 'mauve' is not auto, always or never"},
      {{"ls", "--watch", "--json"}, "--watch"},
      {{"ls", "--watch=0.01"}, "at most ten times a second"},
      {{"--watch", "ls"}, "berth ls --watch"},
      {{"log", "-f", "--json"}, "leave out --follow"},
      {{"completion", "tcsh"}, "'tcsh' is not bash, zsh or fish"},
      {{"pause"}, "give ids, as 3,5-9, or all, or one of --queue NAME"},
      {{"resume", "3", "--queue", "car"}, "--queue NAME"},
      {{"start"}, "IDS"},
      {{"move", "3"}, "give one of --first, --last, --before ID, --queue NAME, --priority N"},
      {{"move", "3", "--first", "--priority", "2"}, "give one of"},
      {{"move", "3", "--before", "5-9"}, "give one id"},
      {{"set", "3-4"}, "give KEY=VALUE after the ids"},
      {{"set", "3", "colour=red"}, "'colour' of a job cannot be changed; these can: name,"},
      {{"set", "3", "time=soon"}, "time: "},
      {{"set", "a=1", "b"}, "'b' is not of the form KEY=VALUE"},
      {{"set", "3", "priority=99999999999"}, "'99999999999' is not from -2147483648 to 2147483647"},
      {{"set", "--queue", "", "gpu_left=1"}, "--queue: a queue needs a name"},
      {{"set", "--queue", "night", "max_concurrent=2"}, "berth set queue.night.limit=2"},
      {{"set", "--queue", "night", "limit=2"}, "berth set queue.night.limit=2"},
      {{"set", "max_concurrent", "--save"}, "--save needs KEY=VALUE"},
      {{"set", "3", "name=x", "--save"}, "--save is for rules"},
  };
  for (const auto& [words, message] : cases) {
    const Ran ran = berth(words);
    EXPECT_EQ(ran.code, 2) << message;
    EXPECT_THAT(ran.err, StartsWith("berth: "));
    EXPECT_THAT(ran.err, HasSubstr(message));
    EXPECT_EQ(ran.out, "");
  }
  const Ran big = berth({"add", "x", std::string(200'000, 'y')});
  EXPECT_EQ(big.code, 2);
  EXPECT_THAT(big.err, HasSubstr("word 2 of the command"));
  ::unsetenv("BERTH_DIR");
}

TEST(CliTest, EveryCommandHasHelpWithExamples) {
  for (const auto* name :
       {"add",    "run",   "ls",   "show",   "log",    "wait",       "kill",    "gpus",
        "status", "why",   "stop", "doctor", "report", "completion", "pause",   "resume",
        "start",  "retry", "move", "set",    "sweep",  "check",      "convert", "results"}) {
    const Ran ran = berth({name, "--help"});
    EXPECT_EQ(ran.code, 0) << name;
    EXPECT_THAT(ran.out, HasSubstr("Examples:\n  berth " + std::string(name))) << name;
  }
  EXPECT_THAT(berth({"--version"}).out, StartsWith("berth "));
}

TEST(CliTest, NoDaemonIsStartedFromInsideAJob) {
  ::setenv("BERTH_DIR", "/nonexistent/berth", 1);
  ::setenv("BERTH_ATTEMPT", "7", 1);
  const Ran ran = berth({"ls"});
  ::unsetenv("BERTH_ATTEMPT");
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("inside a job"));
  EXPECT_THAT(berth({"stop"}).out, HasSubstr("no daemon is running"));
  ::unsetenv("BERTH_DIR");
}

TEST(CliTest, AddPrintsTheIdAndSendsWhatWasAskedFor) {
  FakeDaemon daemon;
  const Ran ran = berth({"add",     "--name",  "n",          "--gpus",    "1..2",  "--gpu-memory",
                         "8GiB",    "--after", "3,5-6",      "--env",     "A=b c", "--env",
                         "D=",      "--time",  "2h",         "--linger",  "--cwd", "/tmp",
                         "--log",   "out.log", "--resource", "licence=2", "--",    "prog",
                         "caf\xE9", "--gpus",  "9"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "1\n");
  const auto submit = decode_submit(daemon.seen.at(0).body);
  ASSERT_TRUE(submit.has_value()) << submit.error().message;
  const JobSpec& job = submit->jobs.at(0);
  EXPECT_EQ(job.name, "n");
  EXPECT_EQ(job.request.gpus, (GpuCount{1, 2}));
  EXPECT_EQ(job.request.gpu_memory, 8 * kGiB);
  EXPECT_EQ(job.request.resources.at("licence"), 2U);
  EXPECT_EQ(job.after, (std::vector{JobId{3}, JobId{5}, JobId{6}}));
  EXPECT_EQ(job.payload.extra_env, (Environment{"A=b c", "D="}));
  EXPECT_EQ(job.payload.time_limit, std::chrono::hours(2));
  EXPECT_TRUE(job.payload.linger);
  EXPECT_EQ(job.payload.cwd, "/tmp");
  EXPECT_THAT(job.payload.log, EndsWith("/out.log"));
  EXPECT_EQ(job.payload.commands,
            (std::vector<Command>{{false, {"prog", "caf\xE9", "--gpus", "9"}}}));
  EXPECT_FALSE(submit->client_key.empty());
}

/// Takes one connection, reads one request from it and answers `response`; empty: hangs up.
std::string serve_one(int listener, const std::string& response) {
  pollfd wait{listener, POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 60'000), 1);
  const Fd fd(::accept(listener, nullptr, nullptr));
  std::string request;
  std::array<char, 4096> buffer{};
  while (true) {
    const auto head = request.find("\r\n\r\n");
    const auto field = request.find("Content-Length: ");
    if (head != std::string::npos && field != std::string::npos &&
        request.size() >= head + 4 + std::stoul(request.substr(field + 16))) {
      break;
    }
    const ssize_t size = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
    if (size <= 0) {
      break;
    }
    request.append(buffer.data(), static_cast<std::size_t>(size));
  }
  EXPECT_EQ(::send(fd.get(), response.data(), response.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(response.size()));
  return request.substr(request.find("\r\n\r\n") + 4);
}

TEST(CliTest, ALostAnswerIsAskedForAgainUnderTheSameKey) {
  std::string name = (fs::temp_directory_path() / "berth-cli-XXXXXX").native();
  const fs::path dir = ::mkdtemp(name.data());
  ::setenv("BERTH_DIR", dir.c_str(), 1);
  const Fd listener = std::move(*listen_unix(dir / "sock"));
  std::vector<std::string> bodies;
  std::thread server([&] {
    bodies.push_back(serve_one(listener.get(), ""));
    bodies.push_back(serve_one(listener.get(), "HTTP/1.1 200 OK\r\nContent-Le"));
    bodies.push_back(serve_one(listener.get(),
                               "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 26\r\n\r\n"
                               "{\"batch\":null,\"ids\":[7,7]}"));
  });
  const Ran ran = berth({"add", "--gpus", "1", "true"});
  server.join();
  ::unsetenv("BERTH_DIR");
  fs::remove_all(dir);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "7\n");
  ASSERT_EQ(bodies.size(), 3U);
  EXPECT_FALSE(decode_submit(bodies[0])->client_key.empty());
  EXPECT_EQ(bodies[1], bodies[0]);
  EXPECT_EQ(bodies[2], bodies[0]);
}

TEST(CliTest, AddWarnsWhenTheCommandChoosesItsOwnGpus) {
  FakeDaemon daemon;
  const Ran ran = berth({"add", "CUDA_VISIBLE_DEVICES=1 python x"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.err, HasSubstr("CUDA_VISIBLE_DEVICES"));
  EXPECT_EQ(berth({"add", "--gpus", "0", "CUDA_VISIBLE_DEVICES= python x"}).err, "");
}

TEST(CliTest, ErrorsOfTheDaemonReachTheUser) {
  FakeDaemon daemon;
  daemon.front = [](const HttpRequest&, const Respond& respond) {
    respond(error_response({ErrorCode::no_space, "the disk is full"}));
    return true;
  };
  const Ran ran = berth({"add", "true"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err, "berth: the disk is full\n");
}

TEST(CliTest, LsFollowsCursorsToTheEnd) {
  FakeDaemon daemon;
  for (std::uint64_t id = 1; id <= 40; ++id) {
    daemon.jobs.push_back(a_job(id, id <= 30 ? JobState::succeeded : JobState::queued));
  }
  EXPECT_EQ(decode<JobPage>("{\"jobs\":" + berth({"ls", "--all", "--json"}).out + "}")->jobs,
            daemon.jobs);
  const std::string usual = berth({"ls"}).out;
  EXPECT_THAT(usual, HasSubstr("job-21 "));  // ten that have ended, and all that have not
  EXPECT_THAT(usual, ::testing::Not(HasSubstr("job-20 ")));
  EXPECT_THAT(usual, HasSubstr("job-40 "));
  const auto some = decode<JobPage>("{\"jobs\":" + berth({"ls", "3,5-6", "--json"}).out + "}");
  EXPECT_EQ(some->jobs.size(), 3U);
  EXPECT_EQ(berth({"ls", "--all", "--limit", "2"}).out.find("job-38"), std::string::npos);
  EXPECT_THAT(berth({"ls", "99"}).err, HasSubstr("there is no job 99"));
}

TEST(CliTest, WaitSucceedsOnlyIfAllJobsDid) {
  FakeDaemon daemon;
  daemon.jobs = {a_job(1, JobState::succeeded)};
  EXPECT_EQ(berth({"wait", "1"}).code, 0);
  daemon.jobs.push_back(a_job(2, JobState::failed));
  daemon.jobs[1].exit_code = 3;
  const Ran ran = berth({"wait", "1-2"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("job 2 job-2 failed: exit 3"));
}

TEST(CliTest, KillTellsWhatBecameOfEachId) {
  FakeDaemon daemon;
  const Ran ran = berth({"kill", "1,2,77", "--grace", "5s"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.out, "killed: 1\ncancelled: 2\n");
  EXPECT_THAT(ran.err, HasSubstr("there is no job 77"));
  const auto request = decode_kill(daemon.seen.at(0).body);
  EXPECT_EQ(request->ids, (std::vector<std::uint64_t>{1, 2, 77}));
  EXPECT_EQ(request->grace, Millis(5'000));
  (void)berth({"kill", "all"});
  EXPECT_TRUE(decode_kill(daemon.seen.at(1).body)->all);
}

TEST(CliTest, MoveTellsWhatBecameOfEachId) {
  FakeDaemon daemon;
  const Ran ran = berth({"move", "1-5", "--before", "9"});
  EXPECT_EQ(ran.code, 1) << "some were refused";
  EXPECT_EQ(ran.out, "moved: 1-2\nstand there already: 3\n");
  EXPECT_THAT(ran.err, HasSubstr("jobs 4-5: runs already"));
  const auto request = decode_move_request(daemon.seen.at(0).body);
  EXPECT_EQ(request->to, event::Move::To::before);
  EXPECT_EQ(request->before, 9U);
  (void)berth({"pause", "--queue", "car"});
  EXPECT_EQ(decode_control_request(daemon.seen.at(1).body)->queue, "car");
  (void)berth({"resume", "all"});
  EXPECT_TRUE(decode_control_request(daemon.seen.at(2).body)->jobs.all);
  EXPECT_EQ(daemon.seen.at(2).path, "/api/jobs/resume");
}

TEST(CliTest, SetShowsAndChangesRules) {
  FakeDaemon daemon;
  EXPECT_EQ(berth({"set", "log_limit"}).out, "2GiB\n");
  const Ran all = berth({"set"});
  EXPECT_THAT(all.out, HasSubstr("this run"));
  EXPECT_THAT(all.err, HasSubstr("a problem"));
  EXPECT_EQ(berth({"set", "max_concurent"}).code, 1);
  EXPECT_EQ(berth({"set", "log_limit=2GiB"}).out,
            "log_limit = 2GiB (for this run; --save keeps it)\n");
  EXPECT_FALSE(decode_set_rules_request(daemon.seen.back().body)->save);
  EXPECT_EQ(berth({"set", "log_limit=2GiB", "--save"}).out,
            "log_limit = 2GiB (saved in berth.yaml)\n");
  EXPECT_TRUE(decode_set_rules_request(daemon.seen.back().body)->save);
}

TEST(CliTest, LogIsReadFromItsFile) {
  FakeDaemon daemon;
  daemon.jobs = {a_job(1, JobState::queued), a_job(2, JobState::succeeded)};
  daemon.jobs[0].reason = "GPU 0 is busy";
  daemon.jobs[1].log = daemon.dir() / "log";
  std::ofstream(daemon.jobs[1].log) << "line\n\x1b[1mraw\xFF";
  EXPECT_EQ(berth({"log", "2"}).out, "line\n\x1b[1mraw\xFF");
  EXPECT_EQ(berth({"log"}).out, "line\n\x1b[1mraw\xFF");
  EXPECT_EQ(berth({"log", "-f", "2"}).out, "line\n\x1b[1mraw\xFF");
  EXPECT_EQ(berth({"log", "1"}).err, "berth: job 1 has no log: it is queued: GPU 0 is busy\n");
  EXPECT_EQ(berth({"log", "2", "--attempt", "5"}).code, 1);
  // It has begun, and its log is about to be made.
  daemon.jobs[1].log = daemon.dir() / "later";
  const Ran early = berth({"log", "2"});
  EXPECT_EQ(early.code, 0);
  EXPECT_EQ(early.out, "");
  EXPECT_EQ(early.err, "berth: job 2 has written nothing yet\n");
}

TEST(CliTest, TheOthersPrintTextAndJson) {
  FakeDaemon daemon;
  daemon.jobs = {a_job(1, JobState::queued)};
  EXPECT_THAT(berth({"why", "1"}).out, HasSubstr("  - GPU 0 is claimed by job 1\n"));
  EXPECT_TRUE(decode<WhyView>(berth({"why", "1", "--json"}).out).has_value());
  EXPECT_THAT(berth({"why"}).out, HasSubstr("1 job waits"));
  EXPECT_THAT(berth({"show", "1"}).out, HasSubstr("python x.py"));
  EXPECT_TRUE(decode<JobDetail>(berth({"show", "1", "--json"}).out).has_value());
  EXPECT_EQ(berth({"show", "99"}).code, 1);
  EXPECT_THAT(berth({"status"}).out, HasSubstr("simulated"));
  EXPECT_TRUE(decode<StatusView>(berth({"status", "--json"}).out).has_value());
  EXPECT_THAT(berth({"gpus"}).out, HasSubstr("Simulated GPU"));
  EXPECT_THAT(berth({"gpus", "--json"}).out, StartsWith("[\n{\"index\":0"));
  EXPECT_THAT(berth({}).out, HasSubstr("job-1"));
  EXPECT_EQ(berth({"stop"}).code, 0);
}

TEST(CliTest, RunWatchesAJobFileToItsEnd) {
  FakeDaemon daemon;
  daemon.jobs = {a_job(1, JobState::succeeded), a_job(2, JobState::succeeded)};
  daemon.events = {{1, Millis(1000), "started", 1, 1, 1, ""},
                   {2, Millis(2000), "succeeded", 1, 1, 1, ""}};
  const std::string file = daemon.dir() / "jobs.yaml";
  std::ofstream(file)
      << "version: 1\njobs:\n  - {name: a, run: 'true'}\n  - {name: b, run: 'true'}\n";
  const Ran good = berth({"run", file});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("2 jobs, 1-2 (batch 1)"));
  EXPECT_THAT(good.out, HasSubstr("simulated"));
  EXPECT_THAT(good.out, HasSubstr("job 1 job-1 started without a GPU\n"));
  EXPECT_THAT(good.out, HasSubstr("2 of 2 succeeded"));
  daemon.jobs[1].state = JobState::killed;
  EXPECT_EQ(berth({"run", file}).code, 1);
  EXPECT_EQ(berth({"run", "--detach", file}).code, 0);

  const std::string bad = daemon.dir() / "bad.yaml";
  std::ofstream(bad) << "version: 1\njobs: 5\n";
  const std::size_t before = daemon.seen.size();
  const Ran refused = berth({"run", file, bad});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("nothing was submitted"));
  EXPECT_EQ(daemon.seen.size(), before);
}

}  // namespace
}  // namespace berth::cli
