#include "cli/doctor_remote.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cstdio>
#include <ctime>
#include <iterator>

#include "api/socket.hpp"
#include "api/wire.hpp"
#include "cli/terminal.hpp"

namespace berth::cli {
namespace {

constexpr Millis kPatience{10'000};
constexpr Millis kSkewWarn{5'000};
constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;
constexpr int kMisdirected = 421;

/// What `key` says in an object; empty where it says nothing.
std::string text_in(const boost::json::value& value, std::string_view key) {
  const auto* object = value.if_object();
  const auto* found = object == nullptr ? nullptr : object->if_contains(key);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

boost::json::value parsed(const std::string& body) {
  boost::json::error_code error;
  boost::json::value value = boost::json::parse(body, error);
  return error ? boost::json::value() : value;
}

std::string message_of(HttpResponse response) {
  const auto body = body_or_error(std::move(response));
  return body ? "" : body.error().message;
}

/// The answer to a GET, of whatever status; notes why there is none.
std::optional<HttpResponse> ask(HttpClient& client, const std::string& target, RemoteFacts& facts) {
  auto response = client.request("GET", target, {}, kPatience);
  if (!response) {
    facts.answer_error = response.error().message;
    return std::nullopt;
  }
  return std::move(*response);
}

/// Between its clock and this one, beyond what the way of the answer and whole seconds explain.
std::optional<Millis> difference(const HttpResponse& response, Millis before, Millis after) {
  for (const auto& [name, value] : response.headers) {
    const auto there = name == "date" ? parse_http_date(value) : std::nullopt;
    if (there) {
      constexpr Millis kSecond{1'000};
      return *there + kSecond < before ? *there + kSecond - before
             : *there > after          ? *there - after
                                       : Millis(0);
    }
  }
  return std::nullopt;
}

void ask_health(HttpClient& client, RemoteFacts& facts) {
  const auto response = ask(client, "/health", facts);
  if (!response) {
    return;
  }
  const auto value = parsed(response->body);
  facts.health = text_in(value, "status");
  const auto* object = value.if_object();
  const auto* reasons = object == nullptr ? nullptr : object->if_contains("reasons");
  if (reasons != nullptr && reasons->is_array()) {
    for (const auto& reason : reasons->get_array()) {
      facts.reasons.push_back({text_in(reason, "what"), text_in(reason, "message")});
    }
  }
}

Finding good(std::string check, std::string text) {
  return {std::move(check), Health::ok, std::move(text), ""};
}

std::string place(const RemoteFacts& f) {
  return fmt::format("{} port {}", printable(f.host), f.port);
}

Finding check_connection(const RemoteFacts& f) {
  if (f.connect_error.empty()) {
    return good("connection", place(f) + " answers");
  }
  if (f.distrusted) {
    return {"connection", Health::fail, printable(f.connect_error),
            "name its certificate, or the authority's, with --ca-file, and call it by a name that "
            "stands in it"};
  }
  return {"connection", Health::fail, printable(f.connect_error),
          f.this_machine ? "if a tunnel leads there, is it open? On the server berth ui --print "
                           "begins to listen and tells the port"
                         : "on the server, berth.yaml needs `listen` with an address and a "
                           "certificate; a firewall may stand between"};
}

Finding check_secrecy(const RemoteFacts& f) {
  if (f.tls) {
    return good("TLS", "its certificate is believed, and all that is sent is encrypted");
  }
  return good("TLS", "none, on an address of this machine; beyond it a tunnel keeps the token");
}

Finding check_token(const RemoteFacts& f) {
  if (!f.refusal.empty()) {
    return {"token", Health::fail, printable(f.refusal),
            "on the server, berth token ls lists those that are good, and berth token add makes "
            "one"};
  }
  if (f.scope == "read") {
    return {"token", Health::warn, "it may look, and change nothing",
            "for more, on the server: berth token add"};
  }
  return good("token", "it may do everything");
}

Finding check_daemon(const RemoteFacts& f) {
  if (!f.status) {
    return {"daemon", Health::fail,
            "it gave no answer that could be understood: " + printable(f.answer_error),
            "is it of another version?"};
  }
  if (f.status->version != f.version) {
    return {"daemon", Health::warn,
            fmt::format("it is of version {}, this program of version {}",
                        printable(f.status->version), f.version),
            "install the same version on both machines; what one of them does not know it refuses"};
  }
  return good("daemon", fmt::format("of version {} on {}, up {}", printable(f.status->version),
                                    printable(f.status->node), format_duration(f.status->uptime)));
}

std::vector<Finding> check_health(const RemoteFacts& f) {
  if (f.health.empty()) {
    return {{"health", Health::warn, "it does not say how it is: " + printable(f.answer_error),
             "is it of another version?"}};
  }
  if (f.reasons.empty()) {
    return {good("health", "the instance says that all is well")};
  }
  std::vector<Finding> findings;
  for (const RemoteFacts::Reason& reason : f.reasons) {
    findings.push_back({"health", f.health == "failing" ? Health::fail : Health::warn,
                        printable(reason.message), ""});
  }
  return findings;
}

std::vector<Finding> check_gpus(const RemoteFacts& f) {
  const StatusView& status = *f.status;
  if (!status.probe.error.empty()) {
    return {{"GPUs", Health::fail,
             "the daemon cannot look at them: " + printable(status.probe.error),
             "nvidia-smi must work there first"}};
  }
  if (auto cards = check_cards(status.gpus); !cards.empty()) {
    return cards;
  }
  if (status.gpus.empty()) {
    return {good("GPUs", "there are none")};
  }
  return {good("GPUs", fmt::format("{}{}, none in trouble{}", status.gpus.size(),
                                   status.probe.simulated ? ", simulated" : "",
                                   status.probe.driver.empty()
                                       ? ""
                                       : fmt::format(" ({})", printable(status.probe.driver))))};
}

Finding check_clock(const RemoteFacts& f) {
  if (!f.clock_ahead) {
    return good("clock", "it does not tell its time");
  }
  const Millis away = std::chrono::abs(*f.clock_ahead);
  if (away > kSkewWarn) {
    return {"clock", Health::warn,
            fmt::format("the other machine's clock is {} {} this one's: times of day in options "
                        "(--at) are this machine's, those in tables the other's",
                        format_duration(away), *f.clock_ahead > Millis(0) ? "ahead of" : "behind"),
            "let NTP set both"};
  }
  return good("clock", "both machines agree about the time");
}

Finding check_rest(const RemoteFacts& f) {
  return good("the rest",
              fmt::format("its directory, disk, driver, sessions and limits only that machine can "
                          "tell: ssh {} berth doctor",
                          f.this_machine ? (f.status ? printable(f.status->node) : "SERVER")
                                         : printable(f.host)));
}

}  // namespace

std::optional<Millis> parse_http_date(const std::string& text) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  std::array<char, 4> month{};
  std::tm parts{};
  if (std::sscanf(text.c_str(), "%*3s, %2d %3s %4d %2d:%2d:%2d GMT", &parts.tm_mday,  // NOLINT
                  month.data(), &parts.tm_year, &parts.tm_hour, &parts.tm_min,
                  &parts.tm_sec) != 6) {
    return std::nullopt;
  }
  const auto at = kMonths.find(month.data());
  if (at == std::string_view::npos || at % 3 != 0) {
    return std::nullopt;
  }
  parts.tm_mon = static_cast<int>(at / 3);
  parts.tm_year -= 1900;
  return Millis(static_cast<std::int64_t>(::timegm(&parts)) * 1'000);
}

RemoteFacts gather_remote_facts(const HttpRemote& server) {
  RemoteFacts facts;
  facts.host = server.host;
  facts.port = server.port;
  facts.tls = server.tls;
  facts.this_machine = server.host == "localhost" || is_loopback(server.host);
  facts.version = BERTH_VERSION;
  auto client = HttpClient::connect(server);
  if (!client) {
    facts.connect_error = client.error().message;
    facts.distrusted = client.error().code == ErrorCode::refused;
    return facts;
  }
  const Millis before = read_clock().wall;
  auto session = ask(*client, "/api/session", facts);
  if (!session) {
    facts.connect_error = facts.answer_error;
    return facts;
  }
  facts.clock_ahead = difference(*session, before, read_clock().wall);
  if (session->status == kUnauthorized || session->status == kForbidden ||
      session->status == kMisdirected) {
    facts.refusal = message_of(std::move(*session));
    return facts;
  }
  facts.scope = text_in(parsed(session->body), "scope");
  if (auto response = ask(*client, "/api/status", facts)) {
    const auto body = body_or_error(std::move(*response));
    auto status = body ? decode<StatusView>(*body) : std::unexpected(body.error());
    if (status) {
      facts.status = std::move(*status);
    } else {
      facts.answer_error = status.error().message;
    }
  }
  ask_health(*client, facts);
  return facts;
}

std::vector<Finding> diagnose(const RemoteFacts& facts) {
  std::vector<Finding> findings{check_connection(facts)};
  if (facts.connect_error.empty()) {
    findings.push_back(check_secrecy(facts));
    findings.push_back(check_token(facts));
    if (facts.refusal.empty()) {
      findings.push_back(check_daemon(facts));
      std::ranges::move(check_health(facts), std::back_inserter(findings));
      if (facts.status) {
        std::ranges::move(check_gpus(facts), std::back_inserter(findings));
      }
    }
    findings.push_back(check_clock(facts));
  }
  findings.push_back(check_rest(facts));
  return findings;
}

}  // namespace berth::cli
