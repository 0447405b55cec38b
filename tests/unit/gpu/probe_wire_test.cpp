#include "gpu/probe_wire.hpp"

#include <gtest/gtest.h>

#include <random>

#include "gpu/fake_probe.hpp"

namespace berth {
namespace {

ProbeReply full_reply() {
  FakeProbe probe(2);
  GpuProcess process;
  process.pid = 4'000'000'000;
  process.start_time = 18'446'744'073'709'551'615U;
  process.uid = 1000;
  process.name = "python \"quoted\" \\ żółw";
  process.memory = 5 * kGiB;
  process.utilization = 70;
  process.age = Millis(90'061'001);
  probe.add_process(0, process, {300, 200, 1});
  probe.mono = Millis(123'456);
  ProbeReply reply = *probe.sample();
  reply.sample.driver = "NVML 550.54.15";
  reply.sample.host_available = 180 * kGiB;
  GpuFacts& first = reply.sample.gpus[0];
  first.busy = 55;
  first.ecc_uncorrected = 18'446'744'073'709'551'615U;
  first.xids = {79, 48};
  first.numa_node = 1;
  first.links = {{"GPU-1", GpuLink::nvlink},
                 {"GPU-2", GpuLink::system},
                 {"GPU-3", GpuLink::numa},
                 {"GPU-4", GpuLink::nvlink},
                 {"GPU-5", GpuLink::pcie_switch}};
  GpuFacts& second = reply.sample.gpus[1];
  second.temperature = 40;
  second.power_mw = 25'000;
  second.memory_total = second.memory_free = second.memory_used = std::nullopt;
  second.utilization.reset();
  second.processes.reset();
  second.trouble = "GPU is lost";
  second.pci_bus_id = "00000000:02:00.0";
  return reply;
}

std::string without_newline(std::string line) {
  EXPECT_TRUE(line.ends_with('\n'));
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "an answer is one line";
  line.pop_back();
  return line;
}

TEST(ProbeWire, RequestsRoundTrip) {
  EXPECT_EQ(encode_probe_request(7), "sample 7\n");
  EXPECT_EQ(decode_probe_request("sample 7"), 7U);
  for (const char* wrong : {"", "sample", "sample ", "sample x", "sample 7 ", "sample -1", "quit",
                            "sample 99999999999999999999"}) {
    EXPECT_FALSE(decode_probe_request(wrong)) << wrong;
  }
}

TEST(ProbeWire, RepliesRoundTrip) {
  const ProbeReply reply = full_reply();
  const std::string line = without_newline(encode_probe_answer({42, reply}));
  const auto answer = decode_probe_answer(line);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->id, 42U);
  ASSERT_TRUE(answer->reply);
  EXPECT_EQ(*answer->reply, reply);
  EXPECT_EQ(*decode_probe_reply(line), reply);
}

TEST(ProbeWire, ErrorsRoundTrip) {
  for (const ErrorCode code :
       {ErrorCode::invalid, ErrorCode::not_found, ErrorCode::conflict, ErrorCode::refused,
        ErrorCode::no_space, ErrorCode::unavailable, ErrorCode::corrupt, ErrorCode::io}) {
    const std::string line =
        without_newline(encode_probe_answer({1, fail(code, "no \"driver\"\nload it")}));
    const auto answer = decode_probe_answer(line);
    ASSERT_TRUE(answer);
    ASSERT_FALSE(answer->reply);
    EXPECT_EQ(answer->reply.error().code, code);
    EXPECT_EQ(answer->reply.error().message, "no \"driver\"\nload it");
    EXPECT_EQ(decode_probe_reply(line).error().code, code);
  }
}

TEST(ProbeWire, AProcessNameCannotBreakTheLine) {
  const std::pair<const char*, const char*> names[] = {{"\xff\xfe", "??"},
                                                       {"ok\xc3", "ok?"},
                                                       {"\xed\xa0\x80", "???"},
                                                       {"\xc0\xaf", "??"},
                                                       {"\xf4\x90\x80\x80", "????"},
                                                       {"a\nb", "a\nb"},
                                                       {"\xe2\x82\xac", "\xe2\x82\xac"},
                                                       {"\xf0\x9f\x9a\xa2", "\xf0\x9f\x9a\xa2"}};
  for (const auto& [name, shown] : names) {
    FakeProbe probe(1);
    GpuProcess process;
    process.pid = 1;
    process.name = name;
    probe.add_process(0, process);
    const auto reply =
        decode_probe_reply(without_newline(encode_probe_answer({1, *probe.sample()})));
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->sample.gpus[0].processes->at(0).name, shown);
  }
}

TEST(ProbeWire, RefusesAnythingElse) {
  for (const char* wrong :
       {"",
        " ",
        "{",
        "null",
        "[]",
        "7",
        "\"text\"",
        "{}",
        "{\"id\":1}",
        "{\"id\":-1}",
        "{\"id\":\"1\",\"driver\":\"\",\"begun_mono\":1,\"gpus\":[],\"ancestors\":{}}",
        "{\"id\":1,\"driver\":\"\",\"begun_mono\":-5,\"gpus\":[],\"ancestors\":{}}",
        "{\"id\":1,\"driver\":\"\",\"begun_mono\":1e300,\"gpus\":[],\"ancestors\":{}}",
        "{\"id\":1,\"driver\":\"\",\"begun_mono\":18446744073709551615,\"gpus\":[],\"ancestors\":{}"
        "}",
        "{\"id\":1,\"driver\":\"\",\"begun_mono\":1,\"gpus\":{},\"ancestors\":{}}",
        "{\"id\":1,\"driver\":\"\",\"begun_mono\":1,\"gpus\":[{}],\"ancestors\":{}}",
        "{\"id\":1,\"driver\":\"\",\"begun_mono\":1,\"gpus\":[],\"ancestors\":[]}",
        "{\"id\":1,\"driver\":\"\",\"begun_mono\":1,\"gpus\":[],\"ancestors\":{\"x\":[]}}",
        "{\"id\":1,\"driver\":\"\",\"begun_mono\":1,\"gpus\":[],\"ancestors\":{\"1\":[4294967296]}"
        "}",
        "{\"id\":1,\"error\":{}}",
        "{\"id\":1,\"error\":{\"code\":\"odd\",\"message\":\"\"}}",
        "NVRM: something a driver prints"}) {
    const auto answer = decode_probe_answer(wrong);
    ASSERT_FALSE(answer) << wrong;
    EXPECT_EQ(answer.error().code, ErrorCode::corrupt) << wrong;
    EXPECT_NE(answer.error().message.find("the GPU probe gave an unusable answer"),
              std::string::npos);
  }
  EXPECT_FALSE(decode_probe_answer(std::string(100'000, '[')));
}

TEST(ProbeWire, WhatAnEarlierProbeDoesNotSayIsUnknown) {
  const auto reply = decode_probe_reply(
      R"({"id":1,"driver":"","begun_mono":1,"ancestors":{},"gpus":[{"uuid":"GPU-0","index":0,)"
      R"("name":"","pci_bus_id":"","trouble":"","processes":[{"pid":7,"start_time":1,"name":""}]}]})");
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->sample.host_available, std::nullopt);
  const GpuFacts& card = reply->sample.gpus.at(0);
  EXPECT_FALSE(card.busy || card.ecc_uncorrected || card.numa_node);
  EXPECT_TRUE(card.xids.empty() && card.links.empty());
  EXPECT_EQ(card.processes->at(0).age, std::nullopt);
}

TEST(ProbeWire, KindsOfLinksOfALaterProbeAreIgnored) {
  const std::string card =
      R"({"uuid":"GPU-0","index":0,"name":"","pci_bus_id":"","trouble":"","links":)";
  const auto answer = [&](const std::string& links) {
    return decode_probe_reply(R"({"id":1,"driver":"","begun_mono":1,"ancestors":{},"gpus":[)" +
                              card + links + "}]}");
  };
  const auto reply = answer(R"({"wormhole":["GPU-1"],"numa":["GPU-2"]})");
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->sample.gpus.at(0).links,
            (std::map<std::string, GpuLink>{{"GPU-2", GpuLink::numa}}));
  for (const char* wrong : {"[]", R"({"numa":"GPU-2"})", R"({"numa":[2]})"}) {
    EXPECT_FALSE(answer(wrong)) << wrong;
  }
}

TEST(ProbeWire, EveryTruncationIsRefused) {
  const std::string line = without_newline(encode_probe_answer({42, full_reply()}));
  for (std::size_t length = 0; length < line.size(); ++length) {
    EXPECT_FALSE(decode_probe_answer(line.substr(0, length))) << length;
  }
}

TEST(ProbeWire, DamagedLinesNeverDoHarm) {
  const std::string line = without_newline(encode_probe_answer({42, full_reply()}));
  std::mt19937 random(20'240);  // NOLINT: the same damage every time
  unsigned refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = line;
    const unsigned flips = 1 + random() % 4;
    for (unsigned flip = 0; flip < flips; ++flip) {
      damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    }
    const auto answer = decode_probe_answer(damaged);
    refused += answer ? 0 : 1;
    if (answer && answer->reply) {
      EXPECT_LE(answer->reply->sample.gpus.size(), 2U);
    }
  }
  EXPECT_GT(refused, 5'000U);
}

}  // namespace
}  // namespace berth
