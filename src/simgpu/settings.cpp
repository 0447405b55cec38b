#include "simgpu/settings.hpp"

#include <algorithm>

#include "simgpu/files.hpp"

namespace berth::simgpu {
namespace {

constexpr std::uint64_t kFormat = 1;

std::string format_reading(const Reading& reading) {
  switch (reading.kind) {
    case Reading::Kind::automatic:
      return "auto";
    case Reading::Kind::unknown:
      return "unknown";
    case Reading::Kind::fixed:
      break;
  }
  return std::to_string(reading.value);
}

std::optional<Reading> parse_reading(std::string_view text, unsigned max) {
  if (text == "auto") {
    return Reading{};
  }
  if (text == "unknown") {
    return Reading{Reading::Kind::unknown, 0};
  }
  const auto number = parse_number(text);
  if (!number || *number > max) {
    return std::nullopt;
  }
  return Reading{Reading::Kind::fixed, static_cast<unsigned>(*number)};
}

std::string format_history(const History& history) {
  std::string text;
  for (const unsigned percent : history.percents) {
    text.append(text.empty() ? "" : ",").append(std::to_string(percent));
  }
  return history.kind == Reading::Kind::fixed ? text : format_reading({history.kind, 0});
}

std::optional<History> parse_history(std::string_view text) {
  constexpr std::size_t kPercentsMax = 100;
  History history;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    const auto reading = parse_reading(text.substr(0, comma), 100);
    more = comma != text.npos;
    if (!reading || history.percents.size() == kPercentsMax) {
      return std::nullopt;
    }
    if (reading->kind != Reading::Kind::fixed) {
      history.kind = reading->kind;
      return more || !history.percents.empty() ? std::nullopt : std::optional(history);
    }
    history.percents.push_back(reading->value);
    text.remove_prefix(more ? comma + 1 : text.size());
  }
  history.kind = Reading::Kind::fixed;
  return history;
}

}  // namespace

std::optional<unsigned> Reading::resolve(unsigned computed) const {
  switch (kind) {
    case Kind::automatic:
      return computed;
    case Kind::fixed:
      return value;
    case Kind::unknown:
      break;
  }
  return std::nullopt;
}

std::string encode(const Card& card) {
  Lines lines;
  lines.add("uuid", card.uuid);
  lines.add("name", card.name);
  lines.add("pci", card.pci_bus_id);
  lines.add("total", card.memory);
  lines.add("reserved", card.reserved);
  lines.add("memory", card.memory_known ? "known" : "unknown");
  lines.add("processes", card.processes_known ? "known" : "unknown");
  lines.add("process_memory", card.process_memory_known ? "known" : "unknown");
  lines.add("util", format_reading(card.util));
  lines.add("temperature", format_reading(card.temperature));
  lines.add("power", format_reading(card.power_mw));
  lines.add("samples", format_history(card.samples));
  lines.add("ecc", format_reading(card.ecc));
  lines.add("numa", format_reading(card.numa));
  lines.add("error", card.error);
  lines.add("hang_ms", card.hang_ms);
  return lines.join();
}

std::string encode(const Driver& driver) {
  Lines lines;
  lines.add("format", kFormat);
  lines.add("spec", driver.spec);
  lines.add("cards", driver.cards);
  lines.add("version", driver.version);
  lines.add("cuda", driver.cuda);
  lines.add("error", driver.error);
  lines.add("hang_ms", driver.hang_ms);
  lines.add("link", format_links(driver.links));
  lines.add("host_available",
            driver.host_available ? std::to_string(*driver.host_available) : "auto");
  return lines.join();
}

// The setters are both the command `set` and the reader of the file: one set of checks.
bool assign(Card& card, std::string_view key, std::string_view value) {
  const auto number = parse_number(value);
  const auto flag = [&](bool& target) {
    target = value == "known";
    return target || value == "unknown";
  };
  const auto reading = [&](Reading& target, unsigned max) {
    const auto parsed = parse_reading(value, max);
    target = parsed.value_or(target);
    return parsed.has_value();
  };
  if (key == "util") {
    return reading(card.util, 100);
  }
  if (key == "temperature") {
    return reading(card.temperature, 200);
  }
  if (key == "power") {
    return reading(card.power_mw, 10'000'000);
  }
  if (key == "samples") {
    const auto parsed = parse_history(value);
    card.samples = parsed.value_or(card.samples);
    return parsed.has_value();
  }
  if (key == "ecc") {
    return reading(card.ecc, 1'000'000);
  }
  if (key == "numa") {
    return reading(card.numa, kCardsMax - 1);
  }
  if (key == "memory") {
    return flag(card.memory_known);
  }
  if (key == "processes") {
    return flag(card.processes_known);
  }
  if (key == "process_memory") {
    return flag(card.process_memory_known);
  }
  if (key == "reserved") {
    const auto size = parse_size(value);
    card.reserved = size ? std::min(*size, card.memory) : card.reserved;
    return size.has_value();
  }
  if (key == "lost") {
    card.error = value == "yes" ? 15 : 0;
    return value == "yes" || value == "no";
  }
  if (key == "error" && number && *number <= 999) {
    card.error = static_cast<unsigned>(*number);
    return true;
  }
  if (key == "hang_ms" && number) {
    card.hang_ms = *number;
    return true;
  }
  return false;
}

bool assign(Driver& driver, std::string_view key, std::string_view value) {
  const auto number = parse_number(value);
  if (key == "version" && !value.empty() && value.size() < 80) {
    driver.version = value;
    return true;
  }
  if (key == "error" && number && *number <= 999) {
    driver.error = static_cast<unsigned>(*number);
    return true;
  }
  if (key == "hang_ms" && number) {
    driver.hang_ms = *number;
    return true;
  }
  if (key == "link") {
    return assign_links(driver.links, value, driver.cards);
  }
  if (key == "host_available") {
    const auto size = parse_size(value);
    driver.host_available = size ? std::optional(*size) : std::nullopt;
    return size || value == "auto";
  }
  return false;
}

std::optional<Driver> decode_driver(std::string_view text) {
  const Lines lines(text);
  const auto cards = lines.number("cards");
  if (lines.number("format") != kFormat || !cards || *cards > kCardsMax) {
    return std::nullopt;
  }
  Driver driver;
  driver.spec = lines.text("spec").value_or("");
  driver.cards = static_cast<unsigned>(*cards);
  driver.cuda = static_cast<unsigned>(lines.number("cuda").value_or(driver.cuda));
  for (const std::string_view key : {"version", "error", "hang_ms", "link", "host_available"}) {
    assign(driver, key, lines.text(key).value_or(""));
  }
  return driver;
}

std::optional<Card> decode_card(std::string_view text, unsigned index) {
  const Lines lines(text);
  Card card;
  card.index = index;
  card.uuid = lines.text("uuid").value_or("");
  card.name = lines.text("name").value_or("");
  card.pci_bus_id = lines.text("pci").value_or("");
  card.memory = lines.number("total").value_or(0);
  if (card.uuid.empty() || card.memory == 0) {
    return std::nullopt;
  }
  for (const std::string_view key :
       {"reserved", "memory", "processes", "process_memory", "util", "temperature", "power",
        "samples", "ecc", "numa", "error", "hang_ms"}) {
    assign(card, key, lines.text(key).value_or(""));
  }
  return card;
}

std::string_view settings_help() {
  return "  util N|auto|unknown           percent; auto is the sum of its processes\n"
         "  temperature N|auto|unknown    degrees Celsius\n"
         "  power N|auto|unknown          milliwatts\n"
         "  samples N,N,…|auto|unknown    percents of the last 3 seconds, oldest first; auto "
         "follows "
         "util\n"
         "  ecc N|unknown                 uncorrected memory errors\n"
         "  xid CODE                      report this error once, to everybody who listens\n"
         "  numa N|unknown                the NUMA node it is near to; 0 if not set\n"
         "  memory known|unknown          whether the driver tells total, used and free\n"
         "  processes known|unknown       whether the driver lists processes\n"
         "  process_memory known|unknown  whether it tells the memory of each\n"
         "  reserved SIZE                 memory the driver keeps for itself\n"
         "  lost yes|no                   the card has fallen off the bus (error 15)\n"
         "  error CODE                    every call on the card fails with this NVML code; 0 ends "
         "it\n"
         "  hang_ms N                     every call on the card takes this long\n"
         "For GPU 'driver':\n"
         "  error CODE, hang_ms N         as above, for every call there is\n"
         "  version TEXT                  the driver's version\n"
         "  link A-B:KIND[,…]             how GPUs A and B are connected: nvlink, pcie_switch, "
         "numa, "
         "system,\n"
         "                                unknown or auto: one switch, or the system between NUMA "
         "nodes\n"
         "  host_available SIZE|auto      host memory that the probe reports\n";
}

}  // namespace berth::simgpu
