// Any bytes are a command file or are refused with places inside the text, whatever its variant.
// What is accepted is as large as it was asked to be, and survives being written as a job file.

#include <string>

#include "dialects/dialect.hpp"
#include "jobspec/job_writer.hpp"
#include "support.hpp"

namespace {

using berth::DialectOptions;

std::string write(const berth::JobFile& file) {
  std::string out = berth::job_file_head(file);
  for (std::size_t i = 0; i < file.jobs.size(); ++i) {
    out += i > 0 ? ", " : "";
    berth::append_job(out, file.jobs[i], file.jobs);
  }
  return out + "]}";
}

void check_accepted(const berth::JobFile& file) {
  BERTH_ASSERT(!file.jobs.empty() && file.queues.size() <= file.jobs.size());
  for (const berth::JobSpec& job : file.jobs) {
    BERTH_ASSERT(!job.payload.commands.empty() && job.request.gpus.min >= 1);
    BERTH_ASSERT(job.request.gpu_memory.value_or(0) > 0);
    for (const berth::Command& command : job.payload.commands) {
      BERTH_ASSERT(command.shell && !command.argv.at(0).empty());
      BERTH_ASSERT(command.argv[0].find_first_not_of("0123456789") != std::string::npos);
      BERTH_ASSERT(command.argv[0].find('\n') == std::string::npos);
    }
  }
  const auto written = write(file);
  if (written.find("\xEF\xBF\xBD") != std::string::npos) {
    return;  // bytes had to be replaced
  }
  const auto again = berth::parse_job_file(written, "again.json", "/elsewhere");
  BERTH_ASSERT(again && write(*again) == written);
}

void check(std::string_view text, DialectOptions::Cards cards) {
  DialectOptions options;
  options.dialect = berth::Dialect::commands;
  options.cards = cards;
  berth::Source source;
  source.text = text;
  source.file_name = "fuzz";
  source.base_dir = "/base/dir";
  source.read = [](const std::filesystem::path&) -> berth::Result<std::string> {
    return berth::fail(berth::ErrorCode::not_found, "there is no file");
  };
  const auto file = berth::parse_file(source, options);
  if (file) {
    return check_accepted(*file);
  }
  BERTH_ASSERT(!file.error().empty());
  for (const berth::Diagnostic& diagnostic : file.error()) {
    BERTH_ASSERT(diagnostic.at.line >= 1 && diagnostic.at.line <= text.size() + 2);
    BERTH_ASSERT(berth::is_utf8(berth::render(diagnostic, text)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using Cards = DialectOptions::Cards;
  const auto text = berth::fuzz::text_of(data, size);
  for (const auto cards : {Cards::by_file_name, Cards::single, Cards::multi}) {
    check(text, cards);
  }
  const auto dialect = berth::recognise(text, "fuzz");
  BERTH_ASSERT(dialect != berth::Dialect::commands || berth::looks_like_commands(text));
  return 0;
}
