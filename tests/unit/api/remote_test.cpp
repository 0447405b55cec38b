#include "api/remote.hpp"

#include <gtest/gtest.h>

#include <climits>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace berth {
namespace {

template <class Decode>
std::string refusal(Decode decode, const std::string& text) {
  const auto read = decode(text);
  return read ? "accepted" : read.error().message;
}

/// A JSON list of `count` times the same.
std::string list_of(std::size_t count, const std::string& one) {
  std::string list = "[";
  for (std::size_t i = 0; i < count; ++i) {
    list += (i == 0 ? "" : ",") + one;
  }
  return list + "]";
}

TEST(RemoteWireTest, FilesComeBackAsTheyWereWhateverBytesTheyHold) {
  FilesRequest request;
  request.files = {{"/data/a.yaml", "lr: 0.1\n"}, {"/data/\xff", "\x01\xfe"}};
  EXPECT_EQ(decode_files_request(encode(request)).value(), request);
  request.state_dir = "/data/logs";
  request.files.clear();
  EXPECT_EQ(encode(request), R"({"files":[],"state_dir":"/data/logs"})");
  EXPECT_EQ(decode_files_request(encode(request)).value(), request);
}

TEST(RemoteWireTest, FilesThatCannotBeAreNamed) {
  const auto why = [](const std::string& text) { return refusal(decode_files_request, text); };
  EXPECT_EQ(why("{}"), "files: is missing");
  EXPECT_EQ(why(R"({"files": [{"path": "a", "content": ""}]})"),
            "files[0].path: must be an absolute path");
  EXPECT_EQ(why(R"({"files": [{"content": ""}]})"), "files[0].path: must be an absolute path");
  EXPECT_EQ(why(R"({"files": [{"path": "/a\u0000b", "content": ""}]})"),
            "files[0].path: contains a NUL byte");
  EXPECT_EQ(why(R"({"files": [{"path": "/a", "content": {"base64": "AA=="}}]})"),
            "files[0].content: contains a NUL byte");
  EXPECT_EQ(why(R"({"files": [], "state_dir": "logs"})"), "state_dir: must be an absolute path");
  EXPECT_EQ(why(R"({"files": [], "colour": "red"})"),
            "colour: unknown field; known are: files, state_dir");
  const std::string file = R"({"path":"/a","content":""})";
  EXPECT_EQ(why(fmt::format(R"({{"files": {}}})", list_of(10'001, file))),
            "files: are more than 10000");
  EXPECT_TRUE(decode_files_request(fmt::format(R"({{"files": {}}})", list_of(10'000, file))));
  const std::string longest = "/" + std::string(PATH_MAX - 2, 'a');
  EXPECT_TRUE(decode_files_request(encode(FilesRequest{{{longest, ""}}, ""})));
  EXPECT_FALSE(decode_files_request(encode(FilesRequest{{{longest + "a", ""}}, ""})));
}

TEST(RemoteWireTest, SnapshotsComeBackAsTheyWere) {
  SnapshotRequest request{"0123-abc_DEF", {"/data/run", "/data/\xff"}, std::nullopt};
  EXPECT_EQ(decode_snapshot_request(encode(request)).value(), request);
  request.limit = Bytes{1} << 40;
  EXPECT_EQ(decode_snapshot_request(encode(request)).value(), request);
  const SnapshotAnswer answer{{"/state/1/\xff"}, {"/data"}, {"a link leads out of it"}};
  EXPECT_EQ(decode_snapshot_answer(encode(answer)).value(), answer);
  // A later daemon may say more.
  EXPECT_EQ(decode_snapshot_answer(R"({"places": [], "roots": [], "warnings": [], "more": 1})"),
            SnapshotAnswer{});
}

TEST(RemoteWireTest, SnapshotsThatCannotBeAreNamed) {
  const auto why = [](const std::string& key, const std::string& dirs) {
    return refusal(decode_snapshot_request, fmt::format(R"({{"key": {}, "dirs": {}}})", key, dirs));
  };
  const std::string bad_key = "key: must be 1 to 128 letters, digits, - and _";
  // It becomes the name of a directory.
  for (const char* key : {R"("")", R"("..")", R"("a/b")", R"("a b")", R"("ä")"}) {
    EXPECT_EQ(why(key, R"(["/a"])"), bad_key) << key;
  }
  EXPECT_EQ(why('"' + std::string(129, 'k') + '"', R"(["/a"])"), bad_key);
  EXPECT_EQ(why('"' + std::string(128, 'k') + '"', R"(["/a"])"), "accepted");
  const std::string bad_dirs = "dirs: must be 1 to 10000 absolute paths";
  for (const char* dirs : {"[]", R"(["a"])", R"(["/a", ""])"}) {
    EXPECT_EQ(why(R"("k")", dirs), bad_dirs) << dirs;
  }
  EXPECT_EQ(why(R"("k")", list_of(10'001, R"("/a")")), bad_dirs);
  EXPECT_EQ(refusal(decode_snapshot_request, R"({"dirs": ["/a"]})"), "key: is missing");
}

TEST(RemoteWireTest, QuestionsAboutRunsComeBackAsTheyWere) {
  RunsRequest request;
  request.ids = IdSet::parse("1-8,12").value();
  EXPECT_EQ(decode_runs_request(encode(request)).value(), request);
  request.after = 3;
  request.metrics = {{"acc", "acc=([0-9.]+)"}, {"loss", "(.)"}};
  request.files = {"{name}/metrics.json", "\xff"};
  request.points = true;
  EXPECT_EQ(decode_runs_request(encode(request)).value(), request);
}

TEST(RemoteWireTest, QuestionsAboutRunsThatCannotBeAreNamed) {
  const auto why = [](const std::string& text) { return refusal(decode_runs_request, text); };
  EXPECT_EQ(why("{}"), "ids: is missing");
  for (const char* ids : {"3-1", "a", "1;2"}) {
    EXPECT_TRUE(why(fmt::format(R"({{"ids": "{}"}})", ids)).starts_with("ids: ")) << ids;
  }
  EXPECT_EQ(why(R"({"ids": "1", "metrics": [{"name": "acc"}]})"), "metrics[0].pattern: is missing");
  const std::string metric = R"({"name":"a","pattern":"b"})";
  EXPECT_EQ(why(fmt::format(R"({{"ids": "1", "metrics": {}}})", list_of(101, metric))),
            "metrics: are more than 100");
  EXPECT_EQ(why(fmt::format(R"({{"ids": "1", "files": {}}})", list_of(10'001, R"("a")"))),
            "files: are more than 10000");
}

}  // namespace
}  // namespace berth
