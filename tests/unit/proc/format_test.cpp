// The bytes daemon and supervisor exchange: total readers, exact round trips.

#include <gtest/gtest.h>

#include <csignal>

#include <random>

#include "proc/cgroup.hpp"
#include "proc/control.hpp"
#include "proc/launch_spec.hpp"
#include "proc/launch_spec_view.hpp"
#include "proc/proc_stat.hpp"
#include "proc/record.hpp"
#include "proc/record_line.hpp"
#include "proc/uni_entry_view.hpp"

namespace berth {
namespace {

std::string random_bytes(std::mt19937_64& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random());
  }
  return bytes;
}

std::string sample_record() {
  RecordLine start("START");
  std::string text(
      start.number("v", 1).number("pid", 41).number("start", 900).number("wall", 5).finish());
  RecordLine command("COMMAND");
  text += command.number("index", 0).number("signal", 9).finish();
  RecordLine signal("SIGNAL");
  text += signal.text("what", "kill").finish();
  RecordLine ending("ENDING");
  text += ending.text("names", "cat[7] in D").finish();
  RecordLine exit("EXIT");
  text += exit.text("why", "cannot_start")
              .text("stage", "cwd")
              .number("errno", 2)
              .text("name", "/a b%*\n\xff")
              .number("utime", 12)
              .number("maxrss", 7)
              .number("peak", 123456789012)
              .finish();
  return text;
}

// --- uni_id.json, as the supervisor reads it

UniEntryView entry_in(std::string_view text) {
  return UniEntryReader(text).find("ab.1");
}

TEST(UniEntryTest, FindsPidAndState) {
  const auto entry = entry_in(R"( {"x": {"pid": 1, "a": [1, {"ab.1": {"pid": 2}}, "}\"{"]},
      "ab.1" :{"state":"running" , "pid" : 812,"retry_count":0,"error_type":null}, "ab.10":{"pid":3}} )");
  EXPECT_TRUE(entry.complete);
  EXPECT_EQ(entry.pid, 812);
  EXPECT_TRUE(entry.running);
  EXPECT_FALSE(entry_in(R"({"ab.1":{"pid":812,"state":"normal_exit"}})").running);
  EXPECT_EQ(entry_in(R"({"ab.1":{"pid":1},"ab.1":{"pid":2}})").pid, 2);
}

TEST(UniEntryTest, NoPidIsNone) {
  for (const auto* text :
       {"{}", R"({"ab.1":{}})", R"({"ab.1":{"pid":null}})", R"({"ab.1":{"pid":-5}})",
        R"({"ab.1":{"pid":1.5}})", R"({"ab.1":{"pid":99999999999999999999}})", R"({"ab.1":812})",
        R"({"ab.1":{"pid":"812"}})", R"({"ab.1":[{"pid":812}]})"}) {
    EXPECT_EQ(entry_in(text).pid, 0) << text;
    EXPECT_TRUE(entry_in(text).complete) << text;
  }
}

TEST(UniEntryTest, TakesAnyBytesAndTornTexts) {
  const std::string whole = R"({"y":["\\",{}],"ab.1":{"pid":812,"state":"running"},"z":"\""})";
  ASSERT_EQ(entry_in(whole).pid, 812);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(entry_in(whole.substr(0, size)).complete) << size;
  }
  std::mt19937_64 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string text = whole;
    text[random() % text.size()] = static_cast<char>(random());
    (void)entry_in(text);
    (void)entry_in(random_bytes(random, random() % 40));
  }
  EXPECT_FALSE(entry_in(std::string(1'000'000, '[')).complete);
  EXPECT_FALSE(entry_in(R"({"a":)" + std::string(1'000'000, '{')).complete);
}

TEST(RecordTest, ReadsWhatWasWritten) {
  const Record record = parse_record(sample_record());
  ASSERT_TRUE(record.start && record.exit);
  EXPECT_EQ(record.start->pid, 41);
  EXPECT_EQ(record.start->start_ticks, 900U);
  ASSERT_EQ(record.commands.size(), 1U);
  EXPECT_EQ(record.commands[0].signal, 9);
  EXPECT_EQ(record.commands[0].code, std::nullopt);
  EXPECT_EQ(record.signals, std::vector<std::string>{"kill"});
  EXPECT_EQ(record.ending, "cat[7] in D");
  EXPECT_EQ(record.exit->name, "/a b%*\n\xff");
  EXPECT_EQ(record.exit->max_rss, 7 * kKiB);
  EXPECT_EQ(record.exit->peak_memory, 123456789012U);
  EXPECT_EQ(record.damaged, 0U);
  EXPECT_FALSE(record.revoked);
}

TEST(RecordTest, EveryTornTailIsIgnored) {
  const std::string text = sample_record();
  const std::size_t exit_at = text.find("EXIT");
  for (std::size_t size = 0; size < text.size(); ++size) {
    const Record record = parse_record(std::string_view(text).substr(0, size));
    EXPECT_FALSE(record.exit) << size;
    EXPECT_EQ(record.start.has_value(), size > text.find('\n')) << size;
    EXPECT_LE(record.damaged, 1U);
  }
  // A writer that goes on after a torn line starts a new one.
  const Record record = parse_record(text.substr(0, 9) + "\n" + text.substr(exit_at));
  EXPECT_TRUE(record.exit && !record.start);
  EXPECT_EQ(record.damaged, 1U);
}

TEST(RecordTest, EveryFlippedBitIsNoticed) {
  const std::string text = sample_record();
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string bent = text;
    bent[bit / 8] = static_cast<char>(bent[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_GE(parse_record(bent).damaged, 1U) << bit;
  }
}

TEST(RecordTest, TakesAnyBytes) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::string bytes = random_bytes(random, random() % 300);
    const Record record = parse_record(bytes);
    EXPECT_FALSE(record.start || record.exit || record.revoked);
    // With a valid checksum, still any content.
    RecordLine line(i % 2 == 0 ? "EXIT" : "START");
    line.text("pid", random_bytes(random, 20)).text("why", bytes).text("code", bytes);
    const Record closed = parse_record(line.finish());
    EXPECT_EQ(closed.exit.has_value(), i % 2 == 0);
    if (closed.exit) {
      EXPECT_EQ(closed.exit->why, bytes);
      EXPECT_EQ(verdict_of(*closed.exit).failure.has_value(), bytes != "ok");
    }
  }
}

TEST(RecordTest, ALineNeverOutgrowsItsBuffer) {
  RecordLine line("EXIT");
  for (int i = 0; i < 100; ++i) {
    line.text("name", std::string(5000, '\x01')).number("code", -9223372036854775807LL - 1);
  }
  const std::string text(line.finish());
  EXPECT_LT(text.size(), 4096U);
  EXPECT_EQ(parse_record(text).damaged, 0U);
}

TEST(RecordTest, Messages) {
  Record::Exit exit;
  exit.why = "timeout";
  exit.time_limit = Millis(5000);
  EXPECT_EQ(verdict_of(exit).message, "ran into its time limit of 5.0 s");
  exit = {};
  exit.why = "host_oom";
  exit.signal = 9;
  EXPECT_EQ(verdict_of(exit).failure, FailureClass::host_oom);
  exit = {};
  exit.why = "something of a later version";
  EXPECT_EQ(verdict_of(exit).failure, FailureClass::exit);
  exit = {};
  exit.why = "ok";
  exit.output_lost = 7;
  EXPECT_EQ(verdict_of(exit).message, "7 bytes of output lost: disk full");
  EXPECT_EQ(signal_name(11), "SIGSEGV");
  EXPECT_EQ(signal_name(99), "signal 99");
}

LaunchSpec sample_spec() {
  LaunchSpec spec;
  spec.attempt = {~0ULL};
  spec.job = {3};
  spec.commands = {{true, {"echo \xff\xfe"}}, {false, {"a", "", std::string(200'000, 'x')}}};
  spec.environment = {"A=1", "B=\xc3\x28", "not a pair"};
  spec.cwd = "/w";
  spec.log = "/l";
  spec.log_named_by_user = true;
  spec.log_limit = 9;
  spec.umask = 077;
  spec.nice = -20;
  spec.time_limit = Millis(1);
  spec.grace = Millis(2);
  spec.linger = true;
  spec.cgroup_parent = "/sys/fs/cgroup/x";
  spec.daemon_lock = "/s/daemon.lock";
  return spec;
}

TEST(LaunchSpecTest, RoundTrips) {
  LaunchSpec spec = sample_spec();
  auto bytes = encode_launch_spec(spec);
  ASSERT_TRUE(bytes);
  EXPECT_TRUE(decode_launch_spec(*bytes).value() == spec);
  spec.environment.clear();
  spec.log_named_by_user = spec.linger = false;
  bytes = encode_launch_spec(spec);
  ASSERT_TRUE(bytes);
  EXPECT_TRUE(decode_launch_spec(*bytes).value() == spec);
}

TEST(LaunchSpecTest, TakesNoTruncatedOrBentBytes) {
  LaunchSpec spec = sample_spec();
  spec.commands[1].argv[2].resize(20);
  const std::string bytes = *encode_launch_spec(spec);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_launch_spec(std::string_view(bytes).substr(0, size))) << size;
  }
  EXPECT_FALSE(decode_launch_spec(bytes + "x"));
  std::mt19937_64 random(2);
  for (int i = 0; i < 20'000; ++i) {
    std::string bent = bytes;
    for (std::uint64_t flips = 1 + random() % 4; flips > 0; --flips) {
      bent[random() % bent.size()] = static_cast<char>(random());
    }
    // Whatever is accepted is self-consistent: it encodes to bytes that decode to the same.
    if (const auto decoded = decode_launch_spec(bent)) {
      const auto again = encode_launch_spec(*decoded);
      ASSERT_TRUE(again);
      EXPECT_TRUE(decode_launch_spec(*again).value() == *decoded);
    }
  }
}

TEST(LaunchSpecTest, CpusComeWithAVersionOfTheirOwn) {
  LaunchSpec spec = sample_spec();
  const std::string without = *encode_launch_spec(spec);
  EXPECT_EQ(without.substr(kLaunchMagic.size(), 4), std::string("\1\0\0\0", 4))
      << "supervisors of the first version must understand it";
  spec.cpus = {9, 0, 4, 9};
  const std::string bytes = *encode_launch_spec(spec);
  EXPECT_EQ(bytes.substr(kLaunchMagic.size(), 4), std::string("\2\0\0\0", 4));
  spec.cpus = {0, 4, 9};
  EXPECT_TRUE(decode_launch_spec(bytes).value() == spec);
  for (std::size_t size = without.size(); size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_launch_spec(std::string_view(bytes).substr(0, size))) << size;
  }
  for (const std::uint32_t wrong : {4U, 3U, kLaunchCpusMax}) {  // the last CPU; 4 comes before it
    std::string bent = bytes;
    std::memcpy(bent.data() + bent.size() - sizeof wrong, &wrong, sizeof wrong);
    EXPECT_FALSE(decode_launch_spec(bent)) << wrong;
  }
  spec.cpus = {kLaunchCpusMax};
  EXPECT_EQ(encode_launch_spec(spec).error().code, ErrorCode::invalid);
}

TEST(LaunchSpecTest, AWarningComesWithAVersionOfItsOwn) {
  for (const std::vector<std::uint32_t>& cpus : {std::vector<std::uint32_t>{}, {1, 3}}) {
    LaunchSpec spec = sample_spec();
    spec.cpus = cpus;
    const std::size_t without = encode_launch_spec(spec)->size();
    spec.warning = {SIGUSR1, Millis(120'000)};
    const std::string bytes = *encode_launch_spec(spec);
    EXPECT_EQ(bytes.substr(kLaunchMagic.size(), 4), std::string("\3\0\0\0", 4));
    EXPECT_TRUE(decode_launch_spec(bytes).value() == spec);
    for (std::size_t size = without; size < bytes.size(); ++size) {
      EXPECT_FALSE(decode_launch_spec(std::string_view(bytes).substr(0, size))) << size;
    }
    constexpr std::size_t kWarningSize = 12;
    for (const std::uint32_t wrong : {0U, 65U}) {
      std::string bent = bytes;
      std::memcpy(bent.data() + bent.size() - kWarningSize, &wrong, sizeof wrong);
      EXPECT_FALSE(decode_launch_spec(bent)) << wrong;
    }
  }
}

TEST(LaunchSpecTest, RefusesWhatNoProcessCanBeGiven) {
  LaunchSpec spec = sample_spec();
  spec.environment = {std::string("A=\0", 3)};
  EXPECT_EQ(encode_launch_spec(spec).error().code, ErrorCode::invalid);
  spec = sample_spec();
  spec.commands = {{false, {}}};
  EXPECT_FALSE(encode_launch_spec(spec));
  spec.commands = {{true, {"a", "b"}}};
  EXPECT_FALSE(encode_launch_spec(spec));
}

TEST(ProcStatTest, NamesMayContainAnything) {
  ProcStat stat;
  ASSERT_TRUE(
      parse_proc_stat("12 (x) R 1 (y) S 7 8 9 0 -1 0 1 2 3 4 5 6 7 8 20 0 33 0 555 1 2\n", stat));
  EXPECT_EQ(stat.pid, 12);
  EXPECT_EQ(std::string(stat.name), "x) R 1 (y");
  EXPECT_EQ(stat.state, 'S');
  EXPECT_EQ(stat.parent, 7);
  EXPECT_EQ(stat.group, 8);
  EXPECT_EQ(stat.session, 9);
  EXPECT_EQ(stat.threads, 33);
  EXPECT_EQ(stat.start_ticks, 555U);
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    ProcStat any;
    const std::string tail = random_bytes(random, random() % 80);
    if (parse_proc_stat("1 (" + tail, any)) {
      EXPECT_LT(std::string(any.name).size(), 16U);
    }
  }
}

TEST(ControlTest, WordsRoundTrip) {
  for (const ControlKind kind : {ControlKind::kill, ControlKind::pause, ControlKind::forward}) {
    for (const std::uint32_t value : {0U, 1U, 100U, kControlValueMax, kOwnGrace}) {
      const ControlWord word = decode_control(encode_control({kind, value}));
      EXPECT_EQ(word.kind, kind);
      EXPECT_EQ(word.value, value);
    }
  }
}

TEST(CgroupTest, FindsTheUnifiedHierarchy) {
  EXPECT_EQ(cgroup2_mount("24 1 0:22 / /proc rw - proc proc rw\n"
                          "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"),
            "/sys/fs/cgroup");
  EXPECT_EQ(cgroup2_mount("24 1 0:22 / /c rw - cgroup cgroup rw,memory\n"), std::nullopt);
  EXPECT_EQ(cgroup2_mount(""), std::nullopt);
  EXPECT_EQ(cgroup2_path("4:memory:/a\n0::/user.slice/x\n"), "/user.slice/x");
  EXPECT_EQ(cgroup2_path("4:memory:/a\n"), std::nullopt);
}

}  // namespace
}  // namespace berth
