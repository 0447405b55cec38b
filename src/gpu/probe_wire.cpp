#include "gpu/probe_wire.hpp"

#include <fmt/format.h>

#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <limits>

namespace berth {
namespace {

namespace json = boost::json;

constexpr std::array<std::pair<ErrorCode, std::string_view>, 9> kErrorCodes{{
    {ErrorCode::invalid, "invalid"},
    {ErrorCode::not_found, "not_found"},
    {ErrorCode::conflict, "conflict"},
    {ErrorCode::refused, "refused"},
    {ErrorCode::no_space, "no_space"},
    {ErrorCode::unavailable, "unavailable"},
    {ErrorCode::busy, "busy"},
    {ErrorCode::corrupt, "corrupt"},
    {ErrorCode::io, "io"},
}};

/// How many bytes at the front of `text` are one character of valid UTF-8; 0: none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length > text.size()) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) {
      return 0;
    }
  }
  if (length > 2) {
    const unsigned second = byte(1);
    const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
    const bool surrogate = first == 0xED && second >= 0xA0;
    const bool too_large = first == 0xF4 && second >= 0x90;
    if (overlong || surrogate || too_large) {
      return 0;
    }
  }
  return length;
}

/// Whoever names a process must not be able to break the line it is reported in.
std::string as_utf8(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      clean += '?';
      text.remove_prefix(1);
    } else {
      clean.append(text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  return clean;
}

constexpr std::array<std::pair<GpuLink, std::string_view>, 4> kLinkNames{{
    {GpuLink::nvlink, "nvlink"},
    {GpuLink::pcie_switch, "pcie_switch"},
    {GpuLink::numa, "numa"},
    {GpuLink::system, "system"},
}};

template <class Number>
void put(json::object& object, std::string_view key, const std::optional<Number>& value) {
  if (value) {
    object[key] = *value;
  }
}

json::object encode(const GpuProcess& process) {
  json::object object;
  object["pid"] = process.pid;
  object["start_time"] = process.start_time;
  object["name"] = as_utf8(process.name);
  put(object, "uid", process.uid);
  put(object, "memory", process.memory);
  put(object, "utilization", process.utilization);
  if (process.age) {
    object["age"] = process.age->count();
  }
  return object;
}

/// The UUIDs by the kind of link, as there are few kinds.
json::object encode_links(const std::map<std::string, GpuLink>& links) {
  json::object object;
  for (const auto& [kind, name] : kLinkNames) {
    json::array uuids;
    for (const auto& [uuid, link] : links) {
      if (link == kind) {
        uuids.emplace_back(as_utf8(uuid));
      }
    }
    if (!uuids.empty()) {
      object[name] = std::move(uuids);
    }
  }
  return object;
}

json::object encode(const GpuFacts& facts) {
  json::object object;
  object["uuid"] = as_utf8(facts.uuid);
  object["index"] = facts.index;
  object["name"] = as_utf8(facts.name);
  object["pci_bus_id"] = as_utf8(facts.pci_bus_id);
  object["trouble"] = as_utf8(facts.trouble);
  if (facts.lost) {
    object["lost"] = true;
  }
  put(object, "memory_total", facts.memory_total);
  put(object, "memory_used", facts.memory_used);
  put(object, "memory_free", facts.memory_free);
  put(object, "utilization", facts.utilization);
  put(object, "temperature", facts.temperature);
  put(object, "power_mw", facts.power_mw);
  put(object, "busy", facts.busy);
  put(object, "ecc_uncorrected", facts.ecc_uncorrected);
  put(object, "numa_node", facts.numa_node);
  if (!facts.xids.empty()) {
    object["xids"] = json::array(facts.xids.begin(), facts.xids.end());
  }
  if (!facts.links.empty()) {
    object["links"] = encode_links(facts.links);
  }
  if (facts.processes) {
    json::array list;
    for (const GpuProcess& process : *facts.processes) {
      list.push_back(encode(process));
    }
    object["processes"] = std::move(list);
  }
  return object;
}

/// Thrown within this file alone.
struct Malformed {
  std::string what;
};

template <class Number>
Number number(const json::value& value, std::string_view key) {
  std::uint64_t wide = 0;
  if (value.is_int64() && value.get_int64() >= 0) {
    wide = static_cast<std::uint64_t>(value.get_int64());
  } else if (value.is_uint64()) {
    wide = value.get_uint64();
  } else {
    throw Malformed{fmt::format("'{}' is not a whole number", key)};
  }
  if (wide > static_cast<std::uint64_t>(std::numeric_limits<Number>::max())) {
    throw Malformed{fmt::format("'{}' is too large", key)};
  }
  return static_cast<Number>(wide);
}

const json::value& require(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr) {
    throw Malformed{fmt::format("'{}' is missing", key)};
  }
  return *value;
}

template <class Number>
Number number(const json::object& object, std::string_view key) {
  return number<Number>(require(object, key), key);
}

template <class Number>
void get(const json::object& object, std::string_view key, std::optional<Number>& target) {
  if (const json::value* value = object.if_contains(key)) {
    target = number<Number>(*value, key);
  }
}

std::string text(const json::object& object, std::string_view key) {
  const json::string* value = require(object, key).if_string();
  if (value == nullptr) {
    throw Malformed{fmt::format("'{}' is not a text", key)};
  }
  return {value->data(), value->size()};
}

const json::array& array(const json::value& value, std::string_view key) {
  if (!value.is_array()) {
    throw Malformed{fmt::format("'{}' is not a list", key)};
  }
  return value.get_array();
}

const json::object& object_of(const json::value& value, std::string_view key) {
  if (!value.is_object()) {
    throw Malformed{fmt::format("'{}' is not an object", key)};
  }
  return value.get_object();
}

/// Kinds of links that this version does not know are left out.
std::map<std::string, GpuLink> decode_links(const json::object& object) {
  std::map<std::string, GpuLink> links;
  for (const auto& [kind, name] : kLinkNames) {
    const json::value* uuids = object.if_contains(name);
    if (uuids == nullptr) {
      continue;
    }
    for (const json::value& uuid : array(*uuids, "links")) {
      if (!uuid.is_string()) {
        throw Malformed{"'links' names a card by something else than a text"};
      }
      links[std::string(uuid.get_string())] = kind;
    }
  }
  return links;
}

GpuProcess decode_process(const json::object& object) {
  GpuProcess process;
  process.pid = number<std::uint32_t>(object, "pid");
  process.start_time = number<std::uint64_t>(object, "start_time");
  process.name = text(object, "name");
  get(object, "uid", process.uid);
  get(object, "memory", process.memory);
  get(object, "utilization", process.utilization);
  if (const json::value* age = object.if_contains("age")) {
    process.age = Millis(number<Millis::rep>(*age, "age"));
  }
  return process;
}

GpuFacts decode_gpu(const json::object& object) {
  GpuFacts facts;
  facts.uuid = text(object, "uuid");
  facts.index = number<std::uint32_t>(object, "index");
  facts.name = text(object, "name");
  facts.pci_bus_id = text(object, "pci_bus_id");
  facts.trouble = text(object, "trouble");
  if (const json::value* lost = object.if_contains("lost")) {
    facts.lost = lost->is_bool() && lost->get_bool();
  }
  get(object, "memory_total", facts.memory_total);
  get(object, "memory_used", facts.memory_used);
  get(object, "memory_free", facts.memory_free);
  get(object, "utilization", facts.utilization);
  get(object, "temperature", facts.temperature);
  get(object, "power_mw", facts.power_mw);
  get(object, "busy", facts.busy);
  get(object, "ecc_uncorrected", facts.ecc_uncorrected);
  get(object, "numa_node", facts.numa_node);
  if (const json::value* xids = object.if_contains("xids")) {
    for (const json::value& xid : array(*xids, "xids")) {
      facts.xids.push_back(number<std::uint32_t>(xid, "xids"));
    }
  }
  if (const json::value* links = object.if_contains("links")) {
    facts.links = decode_links(object_of(*links, "links"));
  }
  if (const json::value* list = object.if_contains("processes")) {
    facts.processes.emplace();
    for (const json::value& entry : array(*list, "processes")) {
      facts.processes->push_back(decode_process(object_of(entry, "processes")));
    }
  }
  if (facts.uuid.empty()) {
    throw Malformed{"'uuid' is empty"};
  }
  return facts;
}

ProbeReply decode_reply(const json::object& object) {
  ProbeReply reply;
  reply.sample.driver = text(object, "driver");
  reply.sample.begun_mono = Millis(number<Millis::rep>(object, "begun_mono"));
  get(object, "host_available", reply.sample.host_available);
  for (const json::value& gpu : array(require(object, "gpus"), "gpus")) {
    reply.sample.gpus.push_back(decode_gpu(object_of(gpu, "gpus")));
  }
  for (const auto& entry : object_of(require(object, "ancestors"), "ancestors")) {
    const std::string_view key(entry.key().data(), entry.key().size());
    std::uint32_t pid = 0;
    const auto [rest, error] = std::from_chars(key.data(), key.data() + key.size(), pid);
    if (error != std::errc{} || rest != key.data() + key.size()) {
      throw Malformed{"'ancestors' has a key that is no pid"};
    }
    auto& chain = reply.ancestors[pid];
    for (const json::value& ancestor : array(entry.value(), "ancestors")) {
      chain.push_back(number<std::uint32_t>(ancestor, "ancestors"));
    }
  }
  return reply;
}

Error decode_error(const json::object& object) {
  const std::string name = text(object, "code");
  for (const auto& [code, code_name] : kErrorCodes) {
    if (code_name == name) {
      return {code, text(object, "message")};
    }
  }
  throw Malformed{"'code' is not an error code"};
}

constexpr std::string_view kRequest = "sample ";

}  // namespace

std::string encode_probe_request(std::uint64_t id) {
  return fmt::format("{}{}\n", kRequest, id);
}

Result<std::uint64_t> decode_probe_request(std::string_view line) {
  std::uint64_t id = 0;
  if (line.starts_with(kRequest)) {
    const std::string_view digits = line.substr(kRequest.size());
    const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
    if (error == std::errc{} && rest == digits.data() + digits.size()) {
      return id;
    }
  }
  return fail(ErrorCode::invalid, "the GPU probe understands only 'sample <number>'");
}

std::string encode_probe_answer(const ProbeAnswer& answer) {
  json::object object;
  object["id"] = answer.id;
  if (!answer.reply) {
    std::string_view name = "io";
    for (const auto& [code, code_name] : kErrorCodes) {
      name = code == answer.reply.error().code ? code_name : name;
    }
    object["error"] =
        json::object{{"code", name}, {"message", as_utf8(answer.reply.error().message)}};
  } else {
    object["driver"] = as_utf8(answer.reply->sample.driver);
    object["begun_mono"] = answer.reply->sample.begun_mono.count();
    put(object, "host_available", answer.reply->sample.host_available);
    json::array gpus;
    for (const GpuFacts& facts : answer.reply->sample.gpus) {
      gpus.push_back(encode(facts));
    }
    object["gpus"] = std::move(gpus);
    json::object ancestors;
    for (const auto& [pid, chain] : answer.reply->ancestors) {
      ancestors[std::to_string(pid)] = json::array(chain.begin(), chain.end());
    }
    object["ancestors"] = std::move(ancestors);
  }
  return json::serialize(object) + "\n";
}

Result<ProbeAnswer> decode_probe_answer(std::string_view line) {
  try {
    boost::system::error_code error;
    const json::value value = json::parse(json::string_view(line.data(), line.size()), error);
    if (error) {
      throw Malformed{error.message()};
    }
    const json::object& object = object_of(value, "answer");
    ProbeAnswer answer;
    answer.id = number<std::uint64_t>(object, "id");
    if (const json::value* failure = object.if_contains("error")) {
      answer.reply = std::unexpected(decode_error(object_of(*failure, "error")));
    } else {
      answer.reply = decode_reply(object);
    }
    return answer;
  } catch (const Malformed& malformed) {
    return fail(ErrorCode::corrupt,
                fmt::format("the GPU probe gave an unusable answer: {}", malformed.what));
  } catch (const std::exception& failure) {
    return fail(ErrorCode::corrupt,
                fmt::format("the GPU probe gave an unusable answer: {}", failure.what()));
  }
}

Result<ProbeReply> decode_probe_reply(std::string_view line) {
  TRY_ASSIGN(ProbeAnswer answer, decode_probe_answer(line));
  return std::move(answer.reply);
}

}  // namespace berth
