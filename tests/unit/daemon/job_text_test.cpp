#include "daemon/job_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth {
namespace {

using testing::HasSubstr;

FileRequest file(std::string text, std::string name = "jobs.yaml") {
  FileRequest request;
  request.text = std::move(text);
  request.name = std::move(name);
  request.cwd = "/data/exp";
  return request;
}

TEST(JobTextTest, TellsWhatAFileWouldMake) {
  const CheckedFile checked =
      check_text(file("version: 1\njobs:\n  - name: a-{lr}\n    matrix: {lr: [0.1, 0.2]}\n    run: "
                      "python t.py {lr}\n"
                      "    gpu_memory: 8GiB\n"));
  EXPECT_EQ(checked.dialect, "native");
  EXPECT_THAT(checked.problems, testing::IsEmpty());
  ASSERT_EQ(checked.total, 2U);
  EXPECT_EQ(checked.jobs[0].name, "a-0.1");
  EXPECT_EQ(checked.jobs[1].command, "python t.py 0.2");
  EXPECT_EQ(checked.jobs[0].cwd, "/data/exp");
  EXPECT_EQ(checked.jobs[0].gpu_memory, Bytes{8} << 30U);
  EXPECT_EQ(checked.jobs[1].params, (std::map<std::string, std::string>{{"lr", "0.2"}}));
}

TEST(JobTextTest, MistakesHaveTheirPlaces) {
  const CheckedFile checked = check_text(file("version: 1\njobs:\n  - name: a\n    runn: x\n"));
  ASSERT_FALSE(checked.problems.empty());
  EXPECT_EQ(checked.problems[0].severity, "error");
  EXPECT_GE(checked.problems[0].line, 3U);
  EXPECT_GE(checked.problems[0].column, 1U);
  EXPECT_EQ(checked.total, 0U);
}

TEST(JobTextTest, ADialectIsRecognisedOrNamed) {
  const std::string commands = "1\npython a.py\n8\n\n2\npython b.py\n8\n";
  const CheckedFile checked = check_text(file(commands, "command_gpu.txt"));
  EXPECT_EQ(checked.dialect, "commands");
  EXPECT_EQ(checked.total, 2U);
  FileRequest named = file(commands, "x");
  named.dialect = "commands";
  EXPECT_EQ(check_text(named).dialect, "commands");
  named.dialect = "cobol";
  EXPECT_THAT(check_text(named).problems.at(0).message, HasSubstr("there is no dialect 'cobol'"));
  EXPECT_THAT(check_dialect(named).error().message, HasSubstr("there is no dialect 'cobol'"));
}

TEST(JobTextTest, ASubmissionHasTheDaemonsEnvironmentAndTheKey) {
  ::setenv("BERTH_TEST_OF_ITS_OWN", "1", 1);
  ::setenv("SEEN_BY_JOBS", "yes", 1);
  FileRequest request = file("version: 1\njobs:\n  - run: python a.py\n");
  request.key = "k";
  auto read = file_of(request);
  ASSERT_TRUE(read);
  const auto submit = submission_of(std::move(*read), request.key, "/instance");
  ASSERT_TRUE(submit);
  EXPECT_EQ(submit->client_key, "k");
  ASSERT_EQ(submit->jobs.size(), 1U);
  const Environment& environment = *submit->jobs[0].payload.environment;
  EXPECT_THAT(environment, testing::Contains("SEEN_BY_JOBS=yes"));
  EXPECT_THAT(environment, testing::Not(testing::Contains("BERTH_TEST_OF_ITS_OWN=1")));
  EXPECT_FALSE(file_of(file("version: 1\njobs: 3\n")));
}

}  // namespace
}  // namespace berth
