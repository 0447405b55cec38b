// The head of a request, line by line: method and path, then headers. Whatever it says, nobody gets
// in who does not hold the key, and nobody is refused who does everything right.

#include <algorithm>
#include <string>

#include "access/gate.hpp"
#include "api/http_answer.hpp"
#include "support.hpp"

namespace {

using namespace berth;

constexpr Millis kNow{1'000};

struct World {
  KeyRing keys;
  Doorway doorway{false, {"localhost", "127.0.0.1", "[::1]"}, "berth_session_x"};
  TokenAnswer token = keys.add({"token", "t", "full", Millis(0)}, kNow);
};

std::string_view next_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(text.size(), end + 1));
  return line;
}

HttpRequest head_of(std::string_view text) {
  HttpRequest head;
  const std::string_view first = next_line(text);
  const auto blank = std::min(first.find(' '), first.size());
  head.method = first.substr(0, blank);
  head.path = first.substr(std::min(blank + 1, first.size()));
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    const auto colon = line.find(':');
    if (colon != std::string_view::npos) {
      head.headers[lower_case(line.substr(0, colon))] = line.substr(colon + 1);
    }
  }
  return head;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const World world;
  HttpRequest head = head_of(fuzz::text_of(data, size));
  const Admission stranger = admit(head, world.doorway, world.keys, kNow);
  if (!stranger.refusal) {
    const Route* route = match_route(head.method, head.path).route;
    BERTH_ASSERT(is_console_path(head.path) || (route != nullptr && route->scope == Scope::open));
    BERTH_ASSERT(stranger.caller.via == Caller::Via::nobody);
  }
  // The same from somebody who holds the key and names the server rightly.
  head.headers["host"] = "localhost:29214";
  head.headers["authorization"] = "Bearer " + world.token.secret;
  head.headers.erase("origin");
  head.headers.erase("content-length");
  head.headers.erase("transfer-encoding");
  BERTH_ASSERT(!admit(head, world.doorway, world.keys, kNow).refusal);
  // And on behalf of a page of somebody else.
  head.headers["origin"] = "http://evil.example";
  BERTH_ASSERT(admit(head, world.doorway, world.keys, kNow).refusal);
  return 0;
}
