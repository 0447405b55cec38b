// Any bytes beside a command file are its configuration, are left alone, or are refused with places
// inside them. What is accepted gives rules that a batch may have.

#include <string>

#include "core/rule_table.hpp"
#include "dialects/dialect.hpp"
#include "support.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string text(berth::fuzz::text_of(data, size));
  berth::Source source;
  source.text = "1\na {work_dir}\n2\n20\n";
  source.file_name = "command_gpus.txt";
  source.base_dir = "/base/dir";
  source.read = [&](const std::filesystem::path& path) -> berth::Result<std::string> {
    if (path != "/base/dir/config.yaml") {
      return berth::fail(berth::ErrorCode::not_found, "no file");
    }
    return text;
  };
  const auto file = berth::parse_file(source, {});
  if (file) {
    BERTH_ASSERT(file->jobs.size() == 1 && file->jobs[0].payload.cwd.starts_with('/'));
    for (const auto& [key, value] : file->rules) {
      BERTH_ASSERT(berth::check_override(key, value, berth::RuleScope::batch));
    }
    return 0;
  }
  BERTH_ASSERT(!file.error().empty());
  for (const berth::Diagnostic& diagnostic : file.error()) {
    BERTH_ASSERT(diagnostic.file == "/base/dir/config.yaml");
    BERTH_ASSERT(diagnostic.at.line >= 1 && diagnostic.at.line <= size + 2);
    BERTH_ASSERT(berth::is_utf8(berth::render(diagnostic, text)));
  }
  return 0;
}
