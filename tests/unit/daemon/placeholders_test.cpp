#include "daemon/placeholders.hpp"

#include <gtest/gtest.h>

#include <set>

#include "daemon/attempt_env.hpp"
#include "daemon/ports.hpp"

namespace berth {
namespace {

LaunchFacts two_cards() {
  LaunchFacts facts;
  facts.job = JobId{12};
  facts.batch = BatchId{3};
  facts.uni_id = "ab.7";
  facts.gpus = {"GPU-a", "GPU-b"};
  facts.gpu_indices = {0, 3};
  facts.work_dir = "/data/work";
  facts.log_path = "/data/log";
  facts.port = 20'007;
  return facts;
}

std::string filled(const std::string& text, const LaunchFacts& facts = two_cards()) {
  Payload payload;
  payload.commands = {{true, {text}}};
  fill_placeholders(payload, facts);
  return payload.commands.front().argv.front();
}

TEST(Placeholders, EveryWordHasItsValue) {
  EXPECT_EQ(filled("{gpu_list} {gpu_count} {gpu_uuids} {job_id} {batch_id} {uni_id} {work_dir} "
                   "{log_path} {port}"),
            "0,3 2 GPU-a,GPU-b 12 3 ab.7 /data/work /data/log 20007");
}

TEST(Placeholders, OtherBracesStayAsTheyAre) {
  EXPECT_EQ(filled("${port} {other} {a,b} {} awk '{print $1}' {\"gpu_count\": 1}"),
            "${port} {other} {a,b} {} awk '{print $1}' {\"gpu_count\": 1}");
  EXPECT_EQ(filled("{{gpu_count}} {{other}}"), "{gpu_count} {{other}}");
}

TEST(Placeholders, AJobKnowsTheIdsBeforeItsOwn) {
  EXPECT_EQ(
      filled("{job_id~2} {job_id~0} {job_id} {{job_id~2}} ${job_id~2} {job_id~x} {job_id~12}"),
      "10 12 12 {job_id~2} ${job_id~2} {job_id~x} {job_id~12}");
  EXPECT_EQ(fill_log_path("/l/{job_id~3}_4.log", two_cards()), "/l/9_4.log");
}

TEST(Placeholders, WhatDoesNotApplyIsEmpty) {
  LaunchFacts none;
  none.job = JobId{1};
  EXPECT_EQ(filled("[{gpu_list}][{gpu_count}][{batch_id}]", none), "[][0][]");
}

TEST(Placeholders, VariablesHaveThemInTheirValuesAlone) {
  Payload payload;
  payload.extra_env = {"{port}={port}", "RUN={job_id}=x", "PLAIN"};
  EXPECT_TRUE(mentions_placeholder(payload, "port"));
  EXPECT_FALSE(mentions_placeholder(payload, "uni_id"));
  fill_placeholders(payload, two_cards());
  EXPECT_EQ(payload.extra_env, (Environment{"{port}=20007", "RUN=12=x", "PLAIN"}));
}

TEST(Placeholders, ALogHasOnlyThoseThatCanBeToldAgain) {
  EXPECT_EQ(fill_log_path("/l/{job_id}.{uni_id}.{gpu_list}.{port}.log", two_cards()),
            "/l/12.ab.7.0,3.{port}.log");
}

TEST(VisibleDevices, AJobThatAsksForItsIndicesGetsThem) {
  Payload payload;
  payload.extra_env = {"CUDA_VISIBLE_DEVICES={gpu_list}"};
  effect::Start start;
  start.attempt = AttemptId{7};
  start.gpus = {"GPU-a", "GPU-b"};
  start.gpu_indices = {0, 3};
  fill_placeholders(payload, launch_facts(start, "ab"));
  const auto value = [&](const Payload& of) {
    for (const std::string& entry : attempt_environment(of, start, {})) {
      if (entry.starts_with("CUDA_VISIBLE_DEVICES=")) {
        return entry;
      }
    }
    return std::string();
  };
  EXPECT_EQ(value(payload), "CUDA_VISIBLE_DEVICES=0,3");
  payload.extra_env = {"CUDA_VISIBLE_DEVICES=0,1,2,3"};
  EXPECT_EQ(value(payload), "CUDA_VISIBLE_DEVICES=GPU-a,GPU-b");
}

TEST(Ports, AreOutsideTheKernelsOwn) {
  EXPECT_EQ(usable_ports("32768\t60999\n"), (PortRange{20'000, 31'999}));
  EXPECT_EQ(usable_ports("16000 65000"), (PortRange{10'000, 15'999}));
  EXPECT_EQ(usable_ports("1024 65535"), (PortRange{20'000, 31'999}));
  EXPECT_EQ(usable_ports(""), (PortRange{20'000, 31'999}));
}

TEST(Ports, NoTwoAttemptsHaveTheSame) {
  Ports ports({100, 109}, "ab", [](std::uint16_t port) { return port != 105; });
  std::set<std::uint16_t> given;
  for (std::uint64_t attempt = 1; attempt <= 9; ++attempt) {
    const auto port = ports.take(AttemptId{attempt});
    ASSERT_TRUE(port);
    EXPECT_NE(*port, 105);
    EXPECT_TRUE(given.insert(*port).second);
  }
  EXPECT_FALSE(ports.take(AttemptId{10}));
  ports.release(AttemptId{4});
  EXPECT_TRUE(ports.take(AttemptId{10}));
}

TEST(Ports, AnotherDaemonDoesNotBeginWhereTheLastOneDid) {
  Ports before({20'000, 29'999}, "ab", [](std::uint16_t) { return true; });
  Ports after({20'000, 29'999}, "ab", [](std::uint16_t) { return true; });
  std::set<std::uint16_t> given;
  for (std::uint64_t attempt = 1; attempt <= 100; ++attempt) {
    given.insert(before.take(AttemptId{attempt}).value());
  }
  for (std::uint64_t attempt = 101; attempt <= 200; ++attempt) {
    EXPECT_FALSE(given.contains(after.take(AttemptId{attempt}).value()));
  }
}

}  // namespace
}  // namespace berth
