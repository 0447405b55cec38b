// One attempt under a real supervisor, from its first command to its verdict.

#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <algorithm>

#include "proc/launch_spec_view.hpp"
#include "shim_fixture.hpp"

namespace berth::test {
namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST_F(ShimTest, SuccessIsSilent) {
  const LaunchSpec job = shell("echo out; echo err >&2");
  const Verdict verdict = run(job);
  EXPECT_EQ(verdict.failure, std::nullopt);
  EXPECT_EQ(verdict.exit_code, 0);
  EXPECT_EQ(verdict.message, "");
  EXPECT_GT(verdict.ended_wall.count(), 0);
  EXPECT_TRUE(verdict.max_rss && *verdict.max_rss > 100 * kKiB);
  EXPECT_EQ(log_of(job), "out\nerr\n");
}

TEST_F(ShimTest, ExitCodesAndSignalsAreReported) {
  const Verdict exited = run(shell("exit 3"));
  EXPECT_EQ(exited.failure, FailureClass::exit);
  EXPECT_EQ(exited.exit_code, 3);
  EXPECT_EQ(exited.message, "exited with code 3");
  const Verdict crashed = run(shell("ulimit -c 0; kill -SEGV $$"));
  EXPECT_EQ(crashed.failure, FailureClass::exit);
  EXPECT_EQ(crashed.signal, SIGSEGV);
  EXPECT_EQ(crashed.exit_code, std::nullopt);
  EXPECT_EQ(crashed.message, "killed by SIGSEGV");
}

TEST_F(ShimTest, CommandsRunInOrderAndStopAtTheFirstFailure) {
  const LaunchSpec job = spec({{false, {"echo", "one"}},
                               {true, {"echo two"}},
                               {true, {"exit 4"}},
                               {false, {"echo", "never"}}});
  const Verdict verdict = run(job);
  EXPECT_EQ(log_of(job), "one\ntwo\n");
  EXPECT_EQ(verdict.message, "exited with code 4; in command 3");
  const Record record = launcher_->read(job.attempt);
  ASSERT_EQ(record.commands.size(), 3U);
  EXPECT_EQ(record.commands[1].code, 0);
  EXPECT_EQ(record.commands[2].code, 4);
  EXPECT_EQ(record.damaged, 0U);
}

TEST_F(ShimTest, ItsPidIsKnownEvenWhenItsRecordIsGone) {
  const LaunchSpec job = shell("true");
  EXPECT_EQ(launcher_->pid(job.attempt), std::nullopt);
  (void)run(job);
  const auto start = launcher_->read(job.attempt).start;
  ASSERT_TRUE(start);
  EXPECT_EQ(launcher_->pid(job.attempt), start->pid);
  launcher_->forget(job.attempt);
  EXPECT_FALSE(launcher_->read(job.attempt).start);
  EXPECT_EQ(launcher_->pid(job.attempt), start->pid);
}

TEST_F(ShimTest, StaysOnTheCpusItIsGiven) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  std::uint32_t last = 0;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    last = CPU_ISSET(cpu, &allowed) ? cpu : last;
  }
  LaunchSpec job = spec({{false, {"grep", "Cpus_allowed_list", "/proc/self/status"}},
                         {true, {"grep Cpus_allowed_list /proc/self/status"}}});
  job.cpus = {last};
  EXPECT_EQ(run(job).failure, std::nullopt);
  const std::string line = fmt::format("Cpus_allowed_list:\t{}\n", last);
  EXPECT_EQ(log_of(job), line + line);
}

TEST_F(ShimTest, RunsElsewhereWhenItsCpusAreNotToBeHad) {
  LaunchSpec job = shell("echo ran");
  job.cpus = {kLaunchCpusMax - 1};
  EXPECT_EQ(run(job).failure, std::nullopt);
  EXPECT_EQ(log_of(job), fmt::format("[berth: cannot stay on the CPUs near the GPUs: errno {}]\n"
                                     "ran\n",
                                     EINVAL));
}

TEST_F(ShimTest, ReproducesTheSubmittersSurroundings) {
  LaunchSpec job =
      spec({{true,
             {"umask; nice; pwd; echo \"$GREETING\"; env | wc -l; readlink /proc/self/fd/0; "
              "ls /proc/self/fd | wc -l; ps -o sid= -p $$ | tr -d ' '; "
              "grep SigIgn /proc/self/status; grep SigBlk /proc/self/status"}}});
  job.environment = {"PATH=/usr/bin:/bin", "GREETING=hello \xff world"};
  job.umask = 027;
  job.nice = 7;
  job.cwd = path("");
  const Shim shim = start(job);
  const pid_t session = shim.pid;
  EXPECT_EQ(verdict(finish(job.attempt, shim)).failure, std::nullopt);
  const std::string log = log_of(job);
  EXPECT_TRUE(has_line(log, "0027")) << log;
  EXPECT_TRUE(has_line(log, "7")) << log;
  EXPECT_TRUE(has_line(log, dir_)) << log;
  EXPECT_TRUE(has_line(log, "hello \xff world")) << log;
  EXPECT_TRUE(has_line(log, "5")) << log;  // the two, and bash's PWD, SHLVL, _
  EXPECT_TRUE(has_line(log, "/dev/null")) << log;
  EXPECT_TRUE(has_line(log, "4")) << log;  // 0, 1, 2 and ls's own
  EXPECT_TRUE(has_line(log, std::to_string(session))) << log;
  EXPECT_TRUE(has_line(log, "SigIgn:\t0000000000000000")) << log;
  EXPECT_TRUE(has_line(log, "SigBlk:\t0000000000000000")) << log;
}

TEST_F(ShimTest, ArgumentsArriveByteForByte) {
  const std::string odd = "a\xff\x01 'b\"\n*";
  const LaunchSpec job = spec({{false, {"printf", "%s|", odd, "", std::string(100'000, 'y')}}});
  EXPECT_EQ(run(job).failure, std::nullopt);
  EXPECT_EQ(log_of(job), odd + "||" + std::string(100'000, 'y') + "|");
}

TEST_F(ShimTest, AnArgumentOf200KilobytesIsRefusedWithItsSize) {
  const Verdict verdict = run(spec({{false, {"true", std::string(200'000, 'x')}}}));
  EXPECT_EQ(verdict.failure, FailureClass::cannot_start);
  EXPECT_NE(verdict.message.find("cannot start: true: arguments and environment take 200"),
            std::string::npos)
      << verdict.message;
  EXPECT_NE(verdict.message.find("the longest of them 200001"), std::string::npos)
      << verdict.message;
}

TEST_F(ShimTest, UsesThePathOfTheJob) {
  std::filesystem::create_directory(path("bin"));
  std::ofstream(path("bin/tool")) << "#!/bin/sh\necho mine \"$@\"\n";
  std::ofstream(path("bin/plain")) << "echo no first line \"$@\"\n";
  ::chmod(path("bin/tool").c_str(), 0755);
  ::chmod(path("bin/plain").c_str(), 0755);
  LaunchSpec job = spec({{false, {"tool", "x"}}, {false, {"plain", "y"}}});
  job.environment = {"PATH=" + path("nowhere") + ":" + path("bin")};
  EXPECT_EQ(run(job).failure, std::nullopt);
  EXPECT_EQ(log_of(job), "mine x\nno first line y\n");
}

TEST_F(ShimTest, SaysExactlyWhyACommandCannotStart) {
  const auto message = [this](const LaunchSpec& job) {
    const Verdict verdict = run(job);
    EXPECT_EQ(verdict.failure, FailureClass::cannot_start) << verdict.message;
    EXPECT_EQ(verdict.exit_code, std::nullopt);
    return verdict.message;
  };
  EXPECT_EQ(message(spec({{false, {"no-such-command"}}})),
            "cannot start: no-such-command: command not found in the job's PATH");
  EXPECT_EQ(message(spec({{false, {"/no/such/command"}}})),
            "cannot start: /no/such/command: command not found; check the path");
  EXPECT_EQ(message(spec({{false, {""}}})), "cannot start: : command not found in the job's PATH");
  std::ofstream(path("data")) << "x";
  EXPECT_EQ(message(spec({{false, {path("data")}}})),
            "cannot start: " + path("data") + ": permission denied; is it executable?");
  std::ofstream(path("script")) << "#!/no/interpreter\n";
  ::chmod(path("script").c_str(), 0755);
  EXPECT_EQ(
      message(spec({{false, {path("script")}}})),
      "cannot start: " + path("script") + ": its interpreter does not exist; check its first line");
  EXPECT_EQ(message(spec({{true, {"true"}}, {false, {"nope"}}})),
            "cannot start: nope: command not found in the job's PATH; in command 2");
}

TEST_F(ShimTest, ADeletedDirectoryIsNamed) {
  LaunchSpec job = shell("true");
  job.cwd = path("gone");
  const Verdict verdict = run(job);
  EXPECT_EQ(verdict.failure, FailureClass::cannot_start);
  EXPECT_EQ(verdict.message,
            "cannot start: " + job.cwd + ": No such file or directory; check its work directory");
}

TEST_F(ShimTest, MakesTheLogDirectoryAnew) {
  LaunchSpec own = shell("echo x");
  own.log = path("logs/deep/own.log");
  EXPECT_EQ(run(own).failure, std::nullopt);
  EXPECT_EQ(log_of(own), "x\n");
  LaunchSpec named = shell("echo y");
  named.log = path("theirs/deep/named.log");
  named.log_named_by_user = true;
  named.umask = 077;
  std::filesystem::create_directories(path("theirs/deep"));
  std::ofstream(named.log) << "before\n";
  EXPECT_EQ(run(named).failure, std::nullopt);
  EXPECT_EQ(log_of(named), "before\ny\n");
  std::filesystem::remove_all(path("theirs"));
  LaunchSpec again = named;
  again.attempt = {next_attempt_++};
  EXPECT_EQ(run(again).failure, std::nullopt);
  EXPECT_EQ(log_of(again), "y\n");
  EXPECT_EQ(std::filesystem::status(again.log).permissions(), std::filesystem::perms(0600));
}

TEST_F(ShimTest, ALogThatCannotBeOpenedIsNamed) {
  std::ofstream(path("file")) << "x";
  for (const bool named : {false, true}) {
    LaunchSpec job = shell("true");
    job.log = path("file/log");
    job.log_named_by_user = named;
    const Verdict verdict = run(job);
    EXPECT_EQ(verdict.failure, FailureClass::cannot_start);
    EXPECT_EQ(verdict.message, "cannot start: cannot open the log " + job.log +
                                   ": Not a directory; check the job's log");
  }
}

TEST_F(ShimTest, APathThatHangsHoldsUpTheChildAlone) {
  // A FIFO nobody reads hangs in open(2) as a dead mount does.
  LaunchSpec job = shell("true");
  job.log = path("fifo");
  job.log_named_by_user = true;
  ASSERT_EQ(::mkfifo(job.log.c_str(), 0600), 0);
  const Shim shim = start(job);
  EXPECT_FALSE(ended_within(shim, Millis(200)));
  ASSERT_TRUE(launcher_->control(shim, control::Kill{Millis(60'000)}));
  EXPECT_TRUE(verdict(finish(job.attempt, shim)).killed);

  // The same with the supervisor shot: nothing is left waiting for the path to come back.
  job.attempt = {next_attempt_++};
  const Shim shot = start(job);
  ASSERT_TRUE(eventually([&] { return launcher_->read(job.attempt).start.has_value(); }));
  EXPECT_FALSE(ended_within(shot, Millis(200)));
  ::kill(shot.pid, SIGKILL);
  const Recovery outcome = finish(job.attempt, shot);
  EXPECT_TRUE(std::holds_alternative<recovery::Lost>(outcome)) << outcome.index();
}

TEST_F(ShimTest, TimeLimitEndsEvenWhatIgnoresTerm) {
  LaunchSpec job = shell("trap '' TERM; sleep 100 & sleep 100; sleep 100");
  job.time_limit = Millis(300);
  job.grace = Millis(200);
  const auto before = std::chrono::steady_clock::now();
  const Verdict verdict = run(job);
  const auto took = std::chrono::steady_clock::now() - before;
  EXPECT_EQ(verdict.failure, FailureClass::timeout);
  EXPECT_FALSE(verdict.killed);
  EXPECT_EQ(verdict.message, "ran into its time limit of 0.3 s");
  EXPECT_GE(took, Millis(300));
  EXPECT_LT(took, Millis(30'000));
}

TEST_F(ShimTest, KillGivesGraceToCleanUp) {
  LaunchSpec job = shell("trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.02; done");
  job.grace = Millis(20'000);
  const Shim shim = start(job);
  ASSERT_TRUE(eventually([&] { return log_of(job) == "up\n"; }));
  ASSERT_TRUE(launcher_->control(shim, control::Kill{}));
  const Verdict verdict = ShimTest::verdict(finish(job.attempt, shim));
  EXPECT_TRUE(verdict.killed);
  EXPECT_EQ(verdict.exit_code, 0);
  EXPECT_NE(log_of(job).find("saved\n"), std::string::npos);
}

TEST_F(ShimTest, ASecondKillShortensTheGraceButNeverLengthensIt) {
  LaunchSpec job = shell("trap '' TERM; echo up; sleep 1000; sleep 1000");
  const Shim shim = start(job);
  ASSERT_TRUE(eventually([&] { return log_of(job) == "up\n"; }));
  ASSERT_TRUE(launcher_->control(shim, control::Kill{Millis(3'600'000)}));
  EXPECT_FALSE(ended_within(shim, Millis(400)));
  ASSERT_TRUE(launcher_->control(shim, control::Kill{Millis(0)}));
  ASSERT_TRUE(launcher_->control(shim, control::Kill{Millis(3'600'000)}));
  EXPECT_TRUE(ShimTest::verdict(finish(job.attempt, shim)).killed);
  EXPECT_EQ(launcher_->control(shim, control::Kill{}).error().code, ErrorCode::not_found);
}

TEST_F(ShimTest, LeftoversAreEndedAndReported) {
  // Until they have become `sleep` they are named after the shell.
  const LaunchSpec job = shell(
      "sleep 1000 & one=$!; sleep 1001 & two=$!; for pid in $one $two; do"
      " until read -r name </proc/$pid/comm && [ \"$name\" = sleep ]; do :; done; done; exit 0");
  const Verdict verdict = run(job);
  EXPECT_EQ(verdict.failure, std::nullopt);
  EXPECT_EQ(verdict.leftover, 2U);
  EXPECT_NE(verdict.message.find("2 processes were left running after the last command and ended: "
                                 "sleep["),
            std::string::npos)
      << verdict.message;
}

TEST_F(ShimTest, LingerWaitsForWhatWasLeftBehind) {
  LaunchSpec job = shell("(setsid sleep 0.5; echo late) & exit 0");
  job.linger = true;
  const Verdict verdict = run(job);
  EXPECT_EQ(verdict.failure, std::nullopt);
  EXPECT_EQ(verdict.leftover, 0U);
  EXPECT_EQ(log_of(job), "late\n");
}

TEST_F(ShimTest, WhatAFailedCommandLeftBehindIsEndedThoughItLingers) {
  LaunchSpec job = shell("sleep 1000 & exit 3");
  job.linger = true;
  const Verdict verdict = run(job);
  EXPECT_EQ(verdict.exit_code, 3);
  EXPECT_EQ(verdict.leftover, 1U);
}

TEST_F(ShimTest, PauseStopsEverythingAndResumeGoesOn) {
  LaunchSpec job = shell("setsid bash -c 'while :; do echo x; sleep 0.01; done' & wait");
  job.time_limit = Millis(3'600'000);
  const Shim shim = start(job);
  ASSERT_TRUE(eventually([&] { return log_of(job).size() > 4; }));
  ASSERT_TRUE(launcher_->control(shim, control::Pause{}));
  ASSERT_TRUE(eventually([&] {
    const auto signals = launcher_->read(job.attempt).signals;
    return std::ranges::count(signals, "pause") == 1;
  }));
  std::size_t paused_at = 0;
  ASSERT_TRUE(eventually([&] {  // what was in the pipe may come a little later
    paused_at = log_of(job).size();
    std::this_thread::sleep_for(Millis(300));
    return log_of(job).size() == paused_at;
  }));
  std::this_thread::sleep_for(Millis(300));
  EXPECT_EQ(log_of(job).size(), paused_at);
  ASSERT_TRUE(launcher_->control(shim, control::Resume{}));
  EXPECT_TRUE(eventually([&] { return log_of(job).size() > paused_at; }));
  ASSERT_TRUE(launcher_->control(shim, control::Pause{}));
  ASSERT_TRUE(launcher_->control(shim, control::Kill{Millis(60'000)}));  // continues, so TERM works
  EXPECT_EQ(ShimTest::verdict(finish(job.attempt, shim)).signal, SIGTERM);
}

TEST_F(ShimTest, TimeSpentPausedDoesNotCountAgainstTheLimit) {
  LaunchSpec job = shell("echo up; sleep 0.2; sleep 0.2; echo done");
  job.time_limit = Millis(20'000);
  const Shim shim = start(job);
  ASSERT_TRUE(eventually([&] { return log_of(job) == "up\n"; }));
  ASSERT_TRUE(launcher_->control(shim, control::Pause{}));
  std::this_thread::sleep_for(Millis(300));
  ASSERT_TRUE(launcher_->control(shim, control::Resume{}));
  EXPECT_EQ(ShimTest::verdict(finish(job.attempt, shim)).failure, std::nullopt);
}

TEST_F(ShimTest, ForwardsASignalToTheCommand) {
  LaunchSpec job =
      shell("trap 'echo checkpoint; exit 0' USR1; echo up; while :; do sleep 0.02; done");
  const Shim shim = start(job);
  ASSERT_TRUE(eventually([&] { return log_of(job) == "up\n"; }));
  ASSERT_TRUE(launcher_->control(shim, control::Forward{SIGUSR1}));
  EXPECT_EQ(ShimTest::verdict(finish(job.attempt, shim)).failure, std::nullopt);
  EXPECT_NE(log_of(job).find("checkpoint\n"), std::string::npos);
}

TEST_F(ShimTest, StrangeControlWordsAreIgnored) {
  const LaunchSpec job = shell("sleep 0.5; echo done");
  const Shim shim = start(job);
  for (const int bits : {0, 6, 255, -256, 4, (99999 << 8) | 4}) {
    sigval value{};
    value.sival_int = bits;
    ASSERT_EQ(::sigqueue(shim.pid, SIGRTMIN + 1, value), 0);
  }
  ASSERT_EQ(::kill(shim.pid, SIGRTMIN + 1), 0);  // not queued with a word: not a command
  ASSERT_EQ(::kill(shim.pid, SIGHUP), 0);
  EXPECT_EQ(ShimTest::verdict(finish(job.attempt, shim)).failure, std::nullopt);
  EXPECT_EQ(log_of(job), "done\n");
}

TEST_F(ShimTest, FastOutputIsComplete) {
  constexpr int kLines = 300'000;
  const LaunchSpec job = shell(fmt::format("seq 1 {}", kLines));
  EXPECT_EQ(run(job).failure, std::nullopt);
  const std::string log = log_of(job);
  EXPECT_EQ(std::ranges::count(log, '\n'), kLines);
  EXPECT_TRUE(log.ends_with(fmt::format("\n{}\n", kLines)));
}

TEST_F(ShimTest, AFullDiskCostsOutputNotTheJob) {
  const std::string small = path("small");
  std::filesystem::create_directory(small);
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "mounting a small file system needs root";
  }
  LaunchSpec job = shell("head -c 300000 /dev/zero; rm " + small + "/fill; echo after; exit 0");
  job.log = small + "/log";
  std::ofstream(small + "/fill") << std::string(16'384, 'f');
  const Verdict verdict = run(job);
  const std::string log = log_of(job);
  ::umount(small.c_str());
  EXPECT_EQ(verdict.failure, std::nullopt);
  EXPECT_NE(verdict.message.find("bytes of output lost: disk full"), std::string::npos)
      << verdict.message;
  EXPECT_NE(log.find("[berth] "), std::string::npos);
  EXPECT_NE(log.find("after\n"), std::string::npos);
}

TEST_F(ShimTest, PayloadDoesNotInheritTheRecord) {
  const LaunchSpec job = shell("ls -l /proc/self/fd");
  EXPECT_EQ(run(job).failure, std::nullopt);
  EXPECT_NE(log_of(job).find("/dev/null"), std::string::npos);
  EXPECT_EQ(log_of(job).find(".rec"), std::string::npos) << log_of(job);
}

TEST_F(ShimTest, ASupervisorCostsLessThanAMegabyte) {
  LaunchSpec job = shell("echo up; sleep 1000");
  job.environment.push_back("BIG=" + std::string(120'000, 'e'));
  const Shim shim = start(job);
  ASSERT_TRUE(eventually([&] { return log_of(job) == "up\n"; }));
  const std::string status = read_small_file(fmt::format("/proc/{}/status", shim.pid));
  const auto at = status.find("VmRSS:");
  ASSERT_NE(at, std::string::npos);
  const int kib = std::atoi(status.c_str() + at + 6);
  RecordProperty("shim_rss_kib", kib);
  EXPECT_LT(kib, 1024);
  EXPECT_GT(kib, 0);
  ASSERT_TRUE(launcher_->control(shim, control::Kill{Millis(0)}));
  EXPECT_TRUE(ShimTest::verdict(finish(job.attempt, shim)).killed);
}

TEST_F(ShimTest, RunsOnWhenItsBinaryIsReplaced) {
  std::filesystem::copy_file(BERTH_SHIM_PATH, path("shim"));
  auto opened = Launcher::open({dir_, path("shim"), kInstance, {}, {}});
  ASSERT_TRUE(opened);
  launcher_ = std::move(*opened);
  std::filesystem::remove(path("shim"));
  std::ofstream(path("shim")) << "not a program";
  const LaunchSpec job = shell("echo fine");
  EXPECT_EQ(run(job).failure, std::nullopt);
  EXPECT_EQ(log_of(job), "fine\n");
}

}  // namespace
}  // namespace berth::test
