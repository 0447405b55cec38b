#pragma once
// What can be wrong with an instance on another machine, as far as one can tell from here.

#include <optional>
#include <string>
#include <vector>

#include "api/http.hpp"
#include "cli/doctor.hpp"

namespace berth::cli {

/// What was seen from here. Unknown is nullopt.
struct RemoteFacts {
  std::string host;
  std::uint16_t port = 0;
  bool tls = false;
  bool this_machine = false;  ///< it is reached by an address of this one, perhaps a tunnel
  std::string version;        ///< of this program

  std::string connect_error;  ///< why there is no connection; empty: there is one
  bool distrusted = false;    ///< for the certificate is not believed
  std::string refusal;        ///< what it says to the token; empty: it is taken
  std::string scope;          ///< of the token: "read" or "full"
  std::string answer_error;   ///< why an answer could not be had or understood
  std::optional<StatusView> status;

  struct Reason {
    std::string what;
    std::string message;
  };
  std::string health;  ///< "ok" "degraded" "failing"; empty: not known
  std::vector<Reason> reasons;

  /// Its clock less this one's, if that cannot be explained by the way of the answer.
  std::optional<Millis> clock_ahead;
};

[[nodiscard]] RemoteFacts gather_remote_facts(const HttpRemote& server);

/// Every check, in the order in which they are shown. The last names what only that machine can
/// tell.
[[nodiscard]] std::vector<Finding> diagnose(const RemoteFacts& facts);

/// The time of a `Date` header, by the wall clock; none: it is none.
[[nodiscard]] std::optional<Millis> parse_http_date(const std::string& text);

}  // namespace berth::cli
