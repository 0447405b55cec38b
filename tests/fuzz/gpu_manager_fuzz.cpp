// Any bytes are a GPU manager configuration or are refused.

#include "dialect_support.hpp"
#include "support.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace berth;
  const std::string_view text = fuzz::text_of(data, size);
  static_cast<void>(recognise(text, "fuzz.json"));
  DialectOptions options;
  options.dialect = Dialect::gpu_manager;
  fuzz::check_parsed(parse_file(fuzz::source_of(text, "fuzz.json", ""), options), text);
  return 0;
}
