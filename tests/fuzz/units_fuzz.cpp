// Any text is a size or a duration, or it is refused with a message; what is shown reads back.

#include <string_view>

#include "base/assert.hpp"
#include "base/units.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto bytes = berth::parse_size(text)) {
    const auto shown = berth::format_size(*bytes);
    BERTH_ASSERT(shown.size() <= 9);
    BERTH_ASSERT(shown.ends_with("EiB") || berth::parse_size(shown));
  } else {
    BERTH_ASSERT(!bytes.error().message.empty());
  }
  if (const auto duration = berth::parse_duration(text)) {
    const auto again = berth::parse_duration(berth::format_duration(*duration));
    BERTH_ASSERT(again && *again <= *duration);
  } else {
    BERTH_ASSERT(!duration.error().message.empty());
  }
  return 0;
}
