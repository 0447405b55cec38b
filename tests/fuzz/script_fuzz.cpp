// Any bytes are a script or are refused with places inside the text. What is accepted makes jobs,
// and written as a native file it makes the same ones.

#include <string>
#include <string_view>

#include "dialects/dialect.hpp"
#include "jobspec/job_yaml.hpp"
#include "support.hpp"

namespace {

berth::Source source_of(std::string_view text, const std::string& name) {
  berth::Source source;
  source.text = text;
  source.file_name = name;
  source.base_dir = "/base";
  source.here = "/here";
  source.user = "user";
  source.host = "host";
  source.has_program = [](const std::string&) { return false; };
  return source;
}

void check_round_trip(const berth::JobFile& file) {
  const auto yaml = berth::to_yaml(file);
  if (!berth::is_utf8(yaml) || yaml.find("\xEF\xBF\xBD") != std::string::npos) {
    return;  // bytes that are no text have no place in a native file
  }
  berth::DialectOptions native;
  native.dialect = berth::Dialect::native;
  const auto again = berth::parse_file(source_of(yaml, "again.yaml"), native);
  BERTH_ASSERT(again && berth::same_submission(file, *again));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const auto text = berth::fuzz::text_of(data, size);
  berth::DialectOptions options;
  options.dialect = berth::Dialect::script;
  (void)berth::recognise(text, "fuzz.sh");
  const auto file = berth::parse_file(source_of(text, "fuzz.sh"), options);
  if (file) {
    BERTH_ASSERT(!file->jobs.empty());
    for (const auto& job : file->jobs) {
      BERTH_ASSERT(!job.name.empty() && job.payload.commands.size() == 1);
    }
    if (file->jobs.size() <= 100) {
      check_round_trip(*file);
    }
    return 0;
  }
  BERTH_ASSERT(!file.error().empty());
  for (const auto& diagnostic : file.error()) {
    BERTH_ASSERT(diagnostic.at.line >= 1 && diagnostic.at.line <= size + 2);
    BERTH_ASSERT(berth::is_utf8(berth::render(diagnostic, text)));
  }
  return 0;
}
