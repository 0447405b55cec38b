// berth doctor.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "cli/commands.hpp"
#include "cli/doctor.hpp"
#include "cli/doctor_remote.hpp"
#include "cli/server.hpp"

namespace berth::cli {
namespace {

Style style_of(Health health) {
  switch (health) {
    case Health::ok:
      return Style::good;
    case Health::warn:
      return Style::bold;
    case Health::fail:
      return Style::bad;
  }
  return Style::plain;
}

std::string finding_text(const Finding& finding, const Screen& screen) {
  constexpr std::size_t kIndent = 19;
  const std::size_t width = screen.width.value_or(100);
  const std::size_t indent = width > 2 * kIndent ? kIndent : 4;
  const std::string name = fmt::format("{:<4}  {:<11}", to_string(finding.health), finding.check);
  std::string out = styled(name.substr(0, 4), style_of(finding.health), screen) + name.substr(4);
  out += indent == kIndent ? "  " : "\n    ";
  out += wrapped(finding.text, width, indent) + "\n";
  if (!finding.advice.empty()) {
    out += std::string(indent, ' ') + wrapped("→ " + finding.advice, width, indent) + "\n";
  }
  return out;
}

}  // namespace

Outcome run_doctor(bool json) {
  const std::vector<Finding> findings =
      chosen_server() ? diagnose(gather_remote_facts(*chosen_server())) : diagnose(gather_facts());
  const auto count = [&](Health health) {
    return std::ranges::count(findings, health, &Finding::health);
  };
  const int code = count(Health::fail) > 0 ? 1 : 0;
  if (json) {
    boost::json::array out;
    for (const Finding& finding : findings) {
      out.push_back({{"check", finding.check},
                     {"result", to_string(finding.health)},
                     {"text", finding.text},
                     {"advice", finding.advice.empty() ? boost::json::value(nullptr)
                                                       : boost::json::value(finding.advice)}});
    }
    print(boost::json::serialize(out) + "\n");
    return code;
  }
  const Screen screen = look_at_stdout();
  for (const Finding& finding : findings) {
    print(finding_text(finding, screen));
  }
  print(fmt::format("\n{} ok, {} to look at, {} wrong\n", count(Health::ok), count(Health::warn),
                    count(Health::fail)));
  return code;
}

}  // namespace berth::cli
