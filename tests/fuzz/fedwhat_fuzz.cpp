// Any bytes are a FedWhat job file or are refused, with the seed on the command line and in a copy
// of the config; the same bytes as a config take a seed or are refused.

#include "dialect_support.hpp"
#include "dialects/config_seed.hpp"
#include "support.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace berth;
  const std::string_view text = fuzz::text_of(data, size);
  static_cast<void>(recognise(text, "fuzz.yaml"));
  DialectOptions options;
  options.dialect = Dialect::fedwhat;
  for (const bool in_config : {false, true}) {
    options.seed_in_config = in_config;
    const auto source = fuzz::source_of(text, "fuzz.yaml", "a: 1\nseed: 1\n");
    fuzz::check_parsed(parse_file(source, options), text);
  }
  if (const auto changed = with_seed(text, "42")) {
    const auto again = with_seed(*changed, "42");
    BERTH_ASSERT(again && *again == *changed);
  }
  return 0;
}
