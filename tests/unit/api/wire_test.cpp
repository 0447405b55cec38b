#include "api/wire.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "api/target.hpp"
#include "api/text.hpp"

namespace berth {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Any bytes but NUL, often not UTF-8.
rc::Gen<std::string> any_bytes() {
  return rc::gen::container<std::string>(
      rc::gen::map(rc::gen::inRange(1, 256), [](int byte) { return static_cast<char>(byte); }));
}
rc::Gen<std::string> any_text() {
  return rc::gen::element<std::string>("", "lr=0.1", "\u00e9t\u00e9 \U0001F600", "a\"b\\c\n\t",
                                       "{}");
}
template <class T>
rc::Gen<std::optional<T>> maybe(T max) {
  return rc::gen::map(
      rc::gen::pair(rc::gen::arbitrary<bool>(), rc::gen::inRange<T>(0, max)),
      [](const auto& p) { return p.first ? std::optional<T>(p.second) : std::nullopt; });
}

Environment any_environment() {
  Environment out;
  for (const std::string& value : *rc::gen::container<std::vector<std::string>>(any_bytes())) {
    out.push_back("NAME=" + value);
  }
  return out;
}

JobSpec any_job(std::shared_ptr<const Environment> environment) {
  JobSpec job;
  job.name = *any_text();
  job.queue = *rc::gen::element<std::string>("default", "other");
  job.priority = *rc::gen::arbitrary<std::int32_t>();
  job.request.gpus.min = *rc::gen::inRange(0U, 9U);
  job.request.gpus.max = job.request.gpus.min + *rc::gen::inRange(0U, 4U);
  job.request.gpu_memory = *maybe<Bytes>(1ULL << 45);
  job.request.cpus = *rc::gen::arbitrary<std::uint32_t>();
  job.request.memory = *rc::gen::inRange<std::uint64_t>(0, kNumberMax + 1);
  if (*rc::gen::arbitrary<bool>()) {
    job.request.resources = {{"licence", *rc::gen::inRange<std::uint64_t>(0, kNumberMax + 1)}};
  }
  if (*rc::gen::arbitrary<bool>()) {
    job.request.rules = {{"max_utilization", "30"}, {"foreign.policy", *any_text()}};
  }
  job.after_kind = *rc::gen::element(After::ok, After::any, After::failed);
  job.start_at = Millis(*rc::gen::inRange(0, 1'000'000));
  job.after = {JobId{*rc::gen::inRange<std::uint64_t>(1, 99)}};
  job.retries = *rc::gen::arbitrary<std::uint32_t>();
  const int commands = *rc::gen::inRange(1, 3);
  for (int i = 0; i < commands; ++i) {
    Command command;
    command.shell = *rc::gen::arbitrary<bool>();
    command.argv.push_back(*any_bytes());
    if (!command.shell) {
      command.argv.push_back(*any_bytes());
    }
    job.payload.commands.push_back(command);
  }
  job.payload.environment = std::move(environment);
  job.payload.extra_env = any_environment();
  job.payload.cwd = "/" + *any_bytes();
  job.payload.log = *rc::gen::arbitrary<bool>() ? "" : "/log" + *any_bytes();
  job.payload.umask = 027;
  job.payload.nice = 5;
  job.payload.time_limit = Millis(*rc::gen::inRange(0, 1'000'000));
  job.payload.grace = Millis(*rc::gen::inRange(0, 1'000'000));
  job.payload.linger = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) {
    job.payload.warning = {10, Millis(*rc::gen::inRange(1, 100'000))};
    if (job.payload.time_limit > Millis(0)) {  // longer than the warning
      job.payload.time_limit += job.payload.warning.before;
    }
    job.payload.params = {{"lr", *any_text()}, {"seed", "3"}};
    job.payload.fingerprint = *rc::gen::arbitrary<std::uint64_t>();
    job.payload.work_dir = "/" + *any_bytes();
  }
  return job;
}

RC_GTEST_PROP(WireProps, a_submission_arrives_as_it_was_sent, ()) {
  event::Submit sent;
  sent.client_key = *any_text();
  sent.batch_name = *any_text();
  sent.batch_max_concurrent = *rc::gen::arbitrary<std::uint32_t>();
  sent.batch_rules = {{"order", "random"}};
  if (*rc::gen::arbitrary<bool>()) {
    sent.traits = {"compete",
                   "/state" + *any_bytes(),
                   "a.log",
                   "multi",
                   *any_bytes(),
                   *rc::gen::arbitrary<std::uint32_t>(),
                   *rc::gen::inRange<std::uint64_t>(0, kNumberMax + 1)};
  }
  sent.queues = {{"serial", 1, {{"gpu_left", "1"}}},
                 {"wide", *rc::gen::arbitrary<std::uint32_t>()}};
  sent.resources = {{"licence", 3}};
  const auto environment = std::make_shared<const Environment>(any_environment());
  const int count = *rc::gen::inRange(1, 4);
  for (int i = 0; i < count; ++i) {
    sent.jobs.push_back(any_job(environment));
    if (i > 0) {
      sent.jobs.back().after_index = {static_cast<std::uint32_t>(i - 1)};
    }
  }
  const auto got = decode_submit(encode_submit(sent));
  if (!got) {
    RC_FAIL(got.error().message);
  }
  RC_ASSERT(got->client_key == sent.client_key);
  RC_ASSERT(got->batch_name == sent.batch_name);
  RC_ASSERT(got->batch_max_concurrent == sent.batch_max_concurrent);
  RC_ASSERT(got->batch_rules == sent.batch_rules);
  RC_ASSERT(got->traits == sent.traits);
  RC_ASSERT(got->queues == sent.queues);
  RC_ASSERT(got->resources == sent.resources);
  RC_ASSERT(got->jobs.size() == sent.jobs.size());
  for (std::size_t i = 0; i < sent.jobs.size(); ++i) {
    const JobSpec& a = sent.jobs[i];
    const JobSpec& b = got->jobs[i];
    RC_ASSERT(a.name == b.name);
    RC_ASSERT(a.queue == b.queue);
    RC_ASSERT(a.priority == b.priority);
    RC_ASSERT(a.request == b.request);
    RC_ASSERT(a.after == b.after);
    RC_ASSERT(a.after_index == b.after_index);
    RC_ASSERT(a.after_kind == b.after_kind);
    RC_ASSERT(a.start_at == b.start_at);
    RC_ASSERT(a.retries == b.retries);
    RC_ASSERT(a.payload.commands == b.payload.commands);
    RC_ASSERT(*a.payload.environment == *b.payload.environment);
    RC_ASSERT(b.payload.environment == got->jobs[0].payload.environment);  // stored once
    RC_ASSERT(a.payload.extra_env == b.payload.extra_env);
    RC_ASSERT(a.payload.cwd == b.payload.cwd);
    RC_ASSERT(a.payload.log == b.payload.log);
    RC_ASSERT(a.payload.umask == b.payload.umask);
    RC_ASSERT(a.payload.nice == b.payload.nice);
    RC_ASSERT(a.payload.time_limit == b.payload.time_limit);
    RC_ASSERT(a.payload.grace == b.payload.grace);
    RC_ASSERT(a.payload.linger == b.payload.linger);
    RC_ASSERT(a.payload.warning == b.payload.warning);
    RC_ASSERT(a.payload == b.payload);
  }
  const auto head = decode_stream_head(encode_stream_head(sent));
  RC_ASSERT(head.has_value());
  RC_ASSERT(head->begin.traits == sent.traits);
  const auto line = decode_stream_job(encode_stream_job(sent.jobs[0]), *head, 0);
  RC_ASSERT(line.has_value());
  RC_ASSERT(line->payload == sent.jobs[0].payload);
}

TEST(WireTest, FingerprintsLoseNoBit) {
  EXPECT_EQ(format_fingerprint(~0ULL), "ffffffffffffffff");
  EXPECT_EQ(format_fingerprint(1), "0000000000000001");
  EXPECT_EQ(format_fingerprint(0), "");
  for (const std::uint64_t value : {0ULL, 1ULL, ~0ULL, 0x0123456789abcdefULL}) {
    EXPECT_EQ(parse_fingerprint(format_fingerprint(value)), value);
  }
  for (const char* bad : {"1", "00000000000000001", "000000000000000g", "-000000000000001"}) {
    EXPECT_FALSE(parse_fingerprint(bad)) << bad;
  }
}

TEST(WireTest, WhatIsDoneIsAskedAndAnswered) {
  const DoneRequest asked{{{~0ULL, "lr-0.1"}, {7, ""}}};
  EXPECT_EQ(decode_done(encode_done(asked)).value(), asked);
  const auto none = decode_done(R"({"jobs":[{"fingerprint":"","name":"a"}]})");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message,
            "jobs[0].fingerprint: must have 16 hexadecimal digits, not all 0");
  DoneRequest many;
  many.jobs.resize(kDoneMax + 1, {1, "x"});
  EXPECT_FALSE(decode_done(encode_done(many)));
  const DoneAnswer answer{{{3, "/data/out.log", 0}, {0, "", 9}, {}}};
  EXPECT_EQ(decode<DoneAnswer>(encode(answer)).value(), answer);
  EXPECT_EQ(encode(DoneAnswer{{{}}}), R"({"jobs":[{"succeeded":null,"log":null,"alive":null}]})");
}

/// A job with every field set to something unusual.
JobView full_job() {
  JobView job;
  job.id = 7;
  job.name = "caf\u00e9";
  job.state = JobState::failed;
  job.queue = "q";
  job.priority = -3;
  job.gpus = {1, 4};
  job.node = "host";
  job.attempts = 2;
  job.exit_code = -9;
  job.failure_class = FailureClass::gpu_oom;
  job.reason = "why";
  job.batch = 3;
  job.owner = 1000;
  job.submitted_at = Millis(1'700'000'000'000);
  job.started_at = Millis(1'700'000'000'001);
  job.ended_at = Millis(1'700'000'000'002);
  job.message = "out of memory";
  job.command = "python train.py";
  job.retries = 5;
  job.retries_used = 1;
  job.gpu_memory = 8 * kGiB;
  job.cwd = "/caf\xE9";
  job.log = "/log\xFF";
  job.gpu_indices = {0, 3};
  job.gpu_uuids = {"GPU-1", "GPU-2"};
  job.params = {{"lr", "0.1"}};
  return job;
}

GpuView full_gpu() {
  GpuView gpu;
  gpu.index = 1;
  gpu.uuid = "GPU-1";
  gpu.name = "A100";
  gpu.node = "host";
  gpu.memory_total = 40 * kGiB;
  gpu.memory_used = 0;
  gpu.utilization = 0;
  gpu.temperature = 30;
  gpu.processes = std::vector<GpuProcessView>{
      {5, 0, "root", "python", "python train.py", Millis(9000), kGiB, 7, 8},
      {6, {}, "", "", "", {}, {}, 0, 0}};
  gpu.state = "claimed";
  gpu.trouble = "hot";
  gpu.reserved = "left to others";
  gpu.lost = true;
  gpu.claims = {{7, 8, kGiB}, {9, 10, {}}};
  return gpu;
}

template <class T>
void expect_round_trip(const T& value) {
  const auto back = decode<T>(encode(value));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_TRUE(*back == value) << encode(value) << "\n" << encode(*back);
}

TEST(WireTest, AnswersArriveAsTheyWereSent) {
  expect_round_trip(JobPage{{full_job(), JobView{}}, ListPlace{{12}}});
  expect_round_trip(JobPage{{}, ListPlace{{12}, -3}});
  expect_round_trip(JobPage{});
  JobDetail detail;
  detail.job = full_job();
  AttemptView attempt;
  attempt.id = 4;
  attempt.job = 7;
  attempt.number = 2;
  attempt.state = "failed";
  attempt.gpu_indices = {1};
  attempt.exit_code = 0;
  attempt.signal = 9;
  attempt.user_time = Millis(0);
  attempt.peak_memory = 5;
  attempt.leftover = 2;
  attempt.log_dropped = 1'234'567'890'123;
  attempt.log = "/l\xFFg";
  detail.attempts = {attempt, AttemptView{}};
  detail.commands = {{false, {"a", "\xFF"}}, {true, {"b"}}};
  detail.environment = Environment{"A=\xFE"};
  detail.extra_env = {"B="};
  detail.after = {1, 2};
  detail.cpus = 3;
  detail.memory = kGiB;
  detail.resources = {{"licence", 1}};
  detail.time_limit = Millis(5);
  detail.grace = Millis(6);
  detail.linger = true;
  detail.work_dir = "/runs/\xff";
  detail.log = "/runs/{job_id}.\xff";
  detail.fingerprint = ~0ULL;
  detail.batch_traits.dialect = "fedwhat";
  detail.batch_traits.state_dir = "/state";
  detail.signal = "USR1@2m";
  expect_round_trip(detail);
  expect_round_trip(WhyView{full_job(), {{"gpu", "all are busy"}}});
  WhyView why{full_job(),
              {{"gpu", "all are busy", {{"asked", 2}}, {{"queue", "night"}}, {3, 4}, {}}}};
  why.reasons[0].gpus = {{1, "memory", "1 GiB free", 1, 2, 6, 7, 8, "r", 3, true, 4, 5, {3}, "x"},
                         ObstacleView{}};
  why.job.why = CauseView{"queue_limit", {{"limit", 1}}, {{"queue", "night"}}, {7}};
  why.job.attempt = 12;
  why.foreseen = OutlookView{{0, 3}, {11, 12}, Millis(5)};
  expect_round_trip(why);
  expect_round_trip(KillAnswer{{1}, {2, 3}, {}, {4}});
  expect_round_trip(WaitAnswer{true, {full_job()}, {7}});
  expect_round_trip(SubmitAnswer{0, 5, 9});
  expect_round_trip(std::vector<GpuView>{full_gpu(), GpuView{}});
  expect_round_trip(EventPage{{{1, Millis(2), "started", 3, 4, 5, "on GPU 0"}, EventView{}}, 9});
  StatusView status;
  status.version = "1";
  status.pid = 4;
  status.instance = "/d\xFF";
  for (const auto state :
       {JobState::queued, JobState::running, JobState::paused, JobState::succeeded,
        JobState::failed, JobState::killed, JobState::cancelled}) {
    status.counts[state] = 10 + static_cast<unsigned>(state);
  }
  status.gpus = {full_gpu()};
  status.probe = {"NVML", Millis(3), "no", true};
  status.space = {true, "full"};
  expect_round_trip(status);
}

TEST(WireTest, UnknownIsNullAndNeverZero) {
  const std::string gpu = encode(std::vector<GpuView>{GpuView{}});
  for (const auto* field :
       {"memory_total", "memory_used", "memory_free", "utilization", "processes"}) {
    EXPECT_THAT(gpu, HasSubstr("\"" + std::string(field) + "\":null"));
  }
  const std::string job = encode_array(std::vector<JobView>{JobView{}});
  for (const auto* field :
       {"node", "exit_code", "failure_class", "reason", "batch", "started_at"}) {
    EXPECT_THAT(job, HasSubstr("\"" + std::string(field) + "\":null"));
  }
}

TEST(WireTest, TextThatIsNotUtf8IsShownAndBytesAreKept) {
  JobView job;
  job.message = "cannot open 'a\xFF'";
  const std::string json = encode(JobPage{{job}, {}});
  EXPECT_TRUE(is_utf8(json));
  EXPECT_EQ(decode<JobPage>(json)->jobs[0].message, "cannot open 'a\uFFFD'");
}

TEST(WireTest, APageHasTheFieldsThatWereAskedFor) {
  JobView job;
  job.id = 7;
  job.name = "a \"b\"";
  job.gpu_indices = {0, 3};
  const JobPage page{{job, JobView{}}, ListPlace{JobId{12}}};
  EXPECT_EQ(encode(page, {"id", "name", "reason", "gpu_indices"}),
            R"({"jobs":[{"id":7,"name":"a \"b\"","reason":null,"gpu_indices":[0,3]},)"
            R"({"id":0,"name":"","reason":null,"gpu_indices":[]}],"next":12})");
  // Left out when there are none.
  EXPECT_EQ(encode(JobPage{{job}, {}}, {"params"}), R"({"jobs":[{}],"next":null})");
  EXPECT_EQ(encode(page, {}), encode(page));
}

TEST(WireTest, AnOlderClientUnderstandsANewerAnswer) {
  const auto page = decode<JobPage>(
      R"({"jobs":[{"id":3,"state":"running","mood":"good"}],"next":null,"total":1})");
  ASSERT_TRUE(page.has_value()) << page.error().message;
  EXPECT_EQ(page->jobs.at(0).id, 3U);
}

std::string submit_with(const std::string& job, const std::string& top = "") {
  return R"({"jobs":[{"commands":[{"argv":["true"]}],"cwd":"/"},)" + job + "]" + top + "}";
}

TEST(WireTest, ABadRequestNamesTheField) {
  const std::string good = R"("commands":[{"argv":["x"]}],"cwd":"/")";
  const std::pair<std::string, std::string> cases[] = {
      {"", "not valid JSON"},
      {"[1]", "expected an object, got a list"},
      {"{}", "jobs: is missing"},
      {R"({"jobs":[]})", "jobs: there must be at least one"},
      {R"({"jobs":7})", "jobs: expected a list, got 7"},
      {R"({"jobs":[]} x)", "not valid JSON at byte 12"},
      {submit_with("5"), "jobs[1]: expected an object, got 5"},
      {submit_with("{" + good + R"(,"gpus":"x"})"), R"(jobs[1].gpus: expected an object, got "x")"},
      {submit_with("{" + good + R"(,"gpus":{"min":"x","max":1}})"),
       R"(jobs[1].gpus.min: expected a number, got "x")"},
      {submit_with("{" + good + R"(,"gpus":{"min":2,"max":1}})"),
       "jobs[1].gpus.max: is less than min"},
      {submit_with("{" + good + R"(,"cpus":-1})"), "jobs[1].cpus: expected a number from 0 to"},
      {submit_with("{" + good + R"(,"cpus":1.5})"),
       "jobs[1].cpus: expected a whole number, got 1.5E0"},
      {submit_with("{" + good + R"(,"cpus":null})"), "jobs[1].cpus: expected a number, got null"},
      {submit_with("{" + good + R"(,"memory":9007199254740992})"),
       "jobs[1].memory: expected a number from 0 to 9007199254740991"},
      {submit_with("{" + good + R"(,"priority":3000000000})"),
       "jobs[1].priority: expected a number from -2147483648"},
      {submit_with("{" + good + R"(,"colour":"red"})"),
       "jobs[1].colour: unknown field; known are: name"},
      {submit_with("{" + good + R"(,"signal":"KILL@9"})"),
       "jobs[1].signal: must be a signal and a time, as in USR1@120"},
      {submit_with("{" + good + R"(,"signal":"USR1@4","time_ms":4000})"),
       "jobs[1].signal: must come less than the time limit before the end"},
      {submit_with("{" + good + R"(,"linger":1})"),
       "jobs[1].linger: expected true or false, got 1"},
      {submit_with("{" + good + R"(,"env":["novalue"]})"),
       "jobs[1].env[0]: is not of the form NAME=value"},
      {submit_with("{" + good + R"(,"env":["=x"]})"), "jobs[1].env[0]: is not"},
      {submit_with("{" + good + R"(,"time_ms":-5})"), "jobs[1].time_ms: must be"},
      {submit_with("{" + good + R"(,"rules":{"gpu_left":1}})"),
       "jobs[1].rules.gpu_left: expected a string, got 1"},
      {submit_with("{" + good + R"(,"rules":["gpu_left"]})"),
       "jobs[1].rules: expected an object, got a list"},
      {submit_with("{" + good + R"(,"after_kind":"never"})"),
       R"(jobs[1].after_kind: expected ok, any or failed, got "never")"},
      {submit_with("{" + good + R"(,"start_at":-1})"), "jobs[1].start_at: must not be before 1970"},
      {submit_with("{" + good + R"(,"after_index":[1]})"),
       "jobs[1].after_index: there is no other job 1"},
      {submit_with("{" + good + R"(,"resources":{"gold":"much"}})"),
       R"(jobs[1].resources.gold: expected a number, got "much")"},
      {submit_with(R"({"cwd":"/"})"), "jobs[1].commands: a job needs at least one command"},
      {submit_with(R"({"commands":[{"argv":[]}],"cwd":"/"})"),
       "jobs[1].commands[0].argv: a command needs"},
      {submit_with(R"({"commands":[{"shell":true,"argv":["a","b"]}],"cwd":"/"})"),
       "jobs[1].commands[0].argv: a shell command is one string"},
      {submit_with(R"({"commands":[{"argv":["a\u0000b"]}],"cwd":"/"})"),
       "jobs[1].commands[0].argv[0]: contains a NUL byte"},
      {submit_with(R"({"commands":[{"argv":[{"base64":"AA=="}]}],"cwd":"/"})"),
       "jobs[1].commands[0].argv[0]: contains a NUL byte"},
      {submit_with(R"({"commands":[{"argv":[{"base64":"?"}]}],"cwd":"/"})"),
       "argv[0]: is not valid base64"},
      {submit_with(R"({"commands":[{"argv":[{"hex":"ff"}]}],"cwd":"/"})"),
       "argv[0]: expected a string or"},
      {submit_with(R"({"commands":[{"argv":["x"]}],"cwd":"here"})"),
       "jobs[1].cwd: must be an absolute path"},
      {submit_with(R"({"commands":[{"argv":["x","y",")" + std::string(131'072, 'z') +
                   R"("]}],"cwd":"/"})"),
       "jobs[1].commands[0].argv[2]: has 131072 bytes"},
      {submit_with("{" + good + "}", R"(,"umask":512)"), "umask: must be 0 to 511"},
      {submit_with("{" + good + "}", R"(,"nice":20)"), "nice: must be"},
      {submit_with("{" + good + "}", R"(,"queues":[{"name":""}])"), "queues[0].name: must have"},
      {submit_with("{" + good + "}", R"(,"owner":0)"), "owner: unknown field"},
  };
  for (const auto& [body, message] : cases) {
    const auto result = decode_submit(body);
    ASSERT_FALSE(result.has_value()) << body;
    EXPECT_EQ(result.error().code, ErrorCode::invalid);
    EXPECT_THAT(result.error().message, HasSubstr(message)) << body.substr(0, 200);
  }
  EXPECT_TRUE(decode_submit(submit_with("{" + good + "}")).has_value());
}

TEST(WireTest, DeepNestingIsAnErrorNotACrash) {
  EXPECT_FALSE(decode_submit(std::string(100'000, '[')).has_value());
}

RC_GTEST_PROP(WireProps, no_bytes_break_the_decoder, (const std::string& noise)) {
  std::string body = submit_with(R"({"commands":[{"argv":["x"]}],"cwd":"/"})");
  const auto at = *rc::gen::inRange<std::size_t>(0, body.size());
  body.replace(at, *rc::gen::inRange<std::size_t>(0, 4), noise);
  if (const auto result = decode_submit(body); !result) {
    RC_ASSERT(!result.error().message.empty());
    RC_ASSERT(is_utf8(encode_error(result.error())));
  }
}

TEST(WireTest, KillTakesIdsOrAll) {
  const KillRequest some{false, {3, 5}, Millis(100)};
  EXPECT_EQ(*decode_kill(encode_kill(some)), some);
  const KillRequest all{true, {}, {}};
  EXPECT_EQ(*decode_kill(encode_kill(all)), all);
  for (const auto* bad : {"{}", R"({"all":true,"ids":[3]})", R"({"ids":[]})", R"({"ids":[-1]})",
                          R"({"ids":[1],"grace_ms":-1})", R"({"ids":"3"})"}) {
    EXPECT_FALSE(decode_kill(bad).has_value()) << bad;
  }
}

TEST(WireTest, WhatIsToBeForgottenIsSaid) {
  RemoveRequest all;
  all.all = true;
  EXPECT_EQ(*decode_remove(encode_remove(all)), all);
  RemoveRequest some;
  some.ids = *IdSet::parse("3,5-9");
  some.after = 7;
  EXPECT_EQ(*decode_remove(encode_remove(some)), some);
  for (const auto* good : {R"({"states":["failed"]})", R"({"queue":"a"})", R"({"older_ms":1})",
                           R"({"keep":1})", R"({"ids":"3","states":["failed"]})"}) {
    EXPECT_TRUE(decode_remove(good).has_value()) << good;
  }
  for (const auto* bad :
       {"{}", R"({"ids":""})", R"({"ids":" "})", R"({"ids":null})", R"({"all":false})",
        R"({"dry_run":true})", R"({"after":3})", R"({"states":[]})", R"({"keep":0})",
        R"({"ids":"","states":["failed"]})", R"({"all":true,"ids":"3"})",
        R"({"all":true,"queue":"a"})", R"({"states":["running"]})"}) {
    EXPECT_FALSE(decode_remove(bad).has_value()) << bad;
  }
}

template <class T, class Parse>
void expect_query(const T& query, const std::string& target, Parse parse) {
  const auto parsed = parse_target(target);
  ASSERT_TRUE(parsed.has_value()) << target;
  const auto back = parse(parsed->query);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_TRUE(*back == query) << target;
}

TEST(WireTest, QueriesArriveAsTheyWereSent) {
  JobQuery jobs{{JobState::queued, JobState::failed},
                "a&b=c",
                3,
                *IdSet::parse("3,5-9"),
                ListPlace{{12}},
                50,
                true,
                Millis(1'700'000'000'123)};
  expect_query(jobs, job_query_target(jobs), parse_job_query);
  expect_query(JobQuery{}, job_query_target(JobQuery{}), parse_job_query);
  jobs.sort = JobSort::ended;
  jobs.after.key = -7;
  expect_query(jobs, job_query_target(jobs), parse_job_query);
  EXPECT_EQ(parse_job_query({{"sort", "-submitted"}, {"after", "12"}})->sort, JobSort::id);
  EXPECT_EQ(parse_job_query({{"after", "5.12"}})->after, (ListPlace{{12}, 5}));
  EXPECT_FALSE(parse_job_query({{"since", "-5"}}).has_value());
  EXPECT_FALSE(parse_job_query({{"since", "-1"}}).has_value());
  EXPECT_FALSE(parse_job_query({{"since", "yesterday"}}).has_value());
  const WaitQuery wait{*IdSet::parse("1-4"), Millis(1000)};
  expect_query(wait, wait_query_target(wait), parse_wait_query);
  const EventQuery events{5, 6, 7, Millis(800), 9};
  expect_query(events, event_query_target(events), parse_event_query);
}

TEST(WireTest, QueriesAreStrict) {
  const Query bad[] = {{{"state", "happy"}}, {{"state", "queued,"}}, {{"limit", "0"}},
                       {{"limit", "10001"}}, {{"limit", "5x"}},      {{"batch", "-1"}},
                       {{"ids", "x"}},       {{"order", "up"}},      {{"sort", "up"}},
                       {{"after", ""}},      {{"after", "5."}},      {{"after", ".5"}},
                       {{"after", "1.2.3"}}, {{"sort", "--id"}},     {{"sort", "name"}}};
  for (const Query& query : bad) {
    const auto result = parse_job_query(query);
    ASSERT_FALSE(result.has_value()) << query.begin()->first << query.begin()->second;
    EXPECT_THAT(result.error().message, StartsWith(query.begin()->first + ": "));
  }
  EXPECT_FALSE(parse_job_query({{"sort", "priority"}, {"after", "1"}}).has_value())
      << "no page by priority tells such a place";
  EXPECT_TRUE(parse_job_query({{"sort", "priority"}, {"after", "0"}}).has_value());
  EXPECT_TRUE(parse_job_query({{"sort", "started"}, {"after", "1"}}).has_value());
  EXPECT_THAT(parse_job_query({{"state", "happy"}}).error().message, HasSubstr("queued, running"));
  EXPECT_THAT(parse_job_query({{"fields", "happy"}}).error().message, HasSubstr("id, name"));
  EXPECT_THAT(parse_wait_query({{"ids", "1"}, {"x", "1"}}).error().message,
              HasSubstr("x: unknown parameter; there are ids, timeout_ms"));
  EXPECT_FALSE(parse_event_query({{"kind", "finsihed"}}).has_value());
  EXPECT_TRUE(parse_event_query({{"kind", "failed,drained"}}).has_value());
  EXPECT_FALSE(parse_wait_query({}).has_value());
  EXPECT_FALSE(parse_event_query({{"limit", "0"}}).has_value())
      << "it would be waited for for ever";
  EXPECT_FALSE(parse_job_query({{"batch", "9007199254740992"}}).has_value());
  EXPECT_TRUE(parse_job_query({{"batch", "9007199254740991"}}).has_value());
  EXPECT_EQ(parse_wait_query({{"ids", "1"}, {"timeout_ms", "99999999"}})->timeout, kLongPollMax);
}

TEST(WireTest, ErrorsKeepTheirCodeOverTheWire) {
  for (const auto code :
       {ErrorCode::invalid, ErrorCode::not_found, ErrorCode::conflict, ErrorCode::refused,
        ErrorCode::no_space, ErrorCode::unavailable, ErrorCode::corrupt, ErrorCode::io}) {
    const HttpResponse response = error_response({code, "the \"thing\" is \xFF"});
    EXPECT_GE(response.status, 400);
    const auto back = body_or_error(response);
    ASSERT_FALSE(back.has_value());
    EXPECT_EQ(back.error().code, code);
    EXPECT_EQ(back.error().message, "the \"thing\" is \uFFFD");
  }
  EXPECT_EQ(*body_or_error(HttpResponse{200, "{}", "", {}, {}}), "{}");
  EXPECT_THAT(body_or_error(HttpResponse{502, "<html>", "", {}, {}}).error().message,
              HasSubstr("502"));
  // The code alone is something, but not for people.
  const auto silent =
      body_or_error(HttpResponse{404, R"({"error":{"code":"not_found"}})", "", {}, {}});
  EXPECT_EQ(silent.error().code, ErrorCode::not_found);
  EXPECT_THAT(silent.error().message, HasSubstr("404"));
}

TEST(WireStream, AHeadAndJobsComeBackAsTheyWere) {
  event::Submit submit;
  submit.client_key = "k";
  submit.batch_name = "sweep";
  submit.batch_max_concurrent = 3;
  submit.queues = {{"car", 1}};
  submit.resources = {{"licence", 2}};
  JobSpec job;
  job.name = "one";
  job.payload.commands = {{false, {"true"}}};
  job.payload.cwd = "/";
  job.payload.umask = 077;
  job.payload.environment = std::make_shared<const Environment>(Environment{"A=b"});
  submit.jobs = {job, job};
  submit.jobs[1].after_index = {0};
  const auto head = decode_stream_head(encode_stream_head(submit));
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head->begin.client_key, "k");
  EXPECT_EQ(head->begin.batch_name, "sweep");
  EXPECT_EQ(head->begin.batch_max_concurrent, 3U);
  EXPECT_EQ(head->begin.queues, submit.queues);
  EXPECT_EQ(head->begin.resources, submit.resources);
  EXPECT_EQ(head->begin.count, 2U);
  const auto second = decode_stream_job(encode_stream_job(submit.jobs[1]), *head, 1);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->payload, submit.jobs[1].payload);
  EXPECT_EQ(second->after_index, submit.jobs[1].after_index);
  const auto first = decode_stream_job(encode_stream_job(submit.jobs[1]), *head, 0);
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().message, "line 2: after_index 0 is not an earlier job of this stream");
}

}  // namespace
}  // namespace berth
