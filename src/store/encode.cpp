#include "store/encode.hpp"

#include <limits>
#include <string>

#include "core/rule_table.hpp"

namespace berth {
namespace {

constexpr char kVersion = 1;
constexpr char kRequestVersion = 2;

class Encoder {
 public:
  explicit Encoder(std::string& out, char version = kVersion) : out_(out) {
    out_.push_back(version);
  }

  void number(std::uint64_t value) {
    while (value >= 0x80) {
      out_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    out_.push_back(static_cast<char>(value));
  }
  /// Small negative numbers stay small.
  void signed_number(std::int64_t value) {
    number((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void text(std::string_view bytes) {
    number(bytes.size());
    out_.append(bytes);
  }
  void texts(const std::vector<std::string>& list) {
    number(list.size());
    for (const auto& item : list) {
      text(item);
    }
  }

 private:
  std::string& out_;
};

/// Remembers the first fault; what is read after it is empty and is thrown away by finish().
class Decoder {
 public:
  explicit Decoder(std::string_view bytes, char version = kVersion) : rest_(bytes) {
    if (rest_.empty() || rest_.front() != version) {
      fault("unknown version");
    } else {
      rest_.remove_prefix(1);
    }
  }

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) {
        fault("cut short");
        return 0;
      }
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      const std::uint64_t bits = byte & 0x7fU;
      if (shift == 63 && bits > 1) {
        break;
      }
      value |= bits << shift;
      if ((byte & 0x80U) == 0) {
        if (byte == 0 && shift > 0) {
          break;  // a longer spelling than necessary
        }
        return value;
      }
    }
    fault("malformed number");
    return 0;
  }
  std::int64_t signed_number() {
    const std::uint64_t raw = number();
    return static_cast<std::int64_t>((raw >> 1) ^ (~(raw & 1) + 1));
  }
  template <class T>
  T narrow(auto value) {
    if (!std::in_range<T>(value)) {
      fault("number out of range");
      return T{};
    }
    return static_cast<T>(value);
  }
  std::uint32_t number32() { return narrow<std::uint32_t>(number()); }
  std::string text() {
    const std::uint64_t size = number();
    if (size > rest_.size()) {
      fault("cut short");
      return {};
    }
    std::string result(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return result;
  }
  /// A list cannot have more items than bytes are left, so a damaged length reserves nothing.
  std::uint64_t count() {
    const std::uint64_t n = number();
    if (n > rest_.size()) {
      fault("cut short");
      return 0;
    }
    return n;
  }
  std::vector<std::string> texts() {
    std::vector<std::string> list(count());
    for (auto& item : list) {
      item = text();
    }
    return list;
  }
  void fault(const char* what) {
    if (fault_ == nullptr) {
      fault_ = what;
    }
    rest_ = {};
  }

  template <class T>
  Result<T> finish(T value, const char* what) {
    if (fault_ == nullptr && !rest_.empty()) {
      fault_ = "trailing bytes";
    }
    if (fault_ != nullptr) {
      return fail(ErrorCode::corrupt, std::string("stored ") + what + " is damaged: " + fault_);
    }
    return value;
  }

 private:
  std::string_view rest_;
  const char* fault_ = nullptr;
};

// Which optional fields of a request follow.
constexpr std::uint64_t kGpuMemory = 1;
constexpr std::uint64_t kRules = 2;
constexpr std::uint64_t kTime = 4;
constexpr std::uint64_t kRequestFields = kGpuMemory | kRules | kTime;
// Version 1 had two rules as fields of their own, and no others.
constexpr std::uint64_t kMinFreeMemory = 2;
constexpr std::uint64_t kMaxUtilization = 4;

constexpr std::uint64_t kLinger = 1;
constexpr std::uint64_t kWarning = 2;  ///< a signal and a time follow
constexpr std::uint64_t kParams = 4;
constexpr std::uint64_t kFingerprint = 8;
constexpr std::uint64_t kWorkDir = 16;
constexpr std::uint64_t kPayloadFlags = kLinger | kWarning | kParams | kFingerprint | kWorkDir;

std::uint64_t flags_of(const Payload& payload) {
  return (payload.linger ? kLinger : 0) | (payload.warning.signal != 0 ? kWarning : 0) |
         (payload.params.empty() ? 0 : kParams) | (payload.fingerprint == 0 ? 0 : kFingerprint) |
         (payload.work_dir.empty() ? 0 : kWorkDir);
}

void append_texts(Encoder& e, const std::map<std::string, std::string>& texts) {
  e.number(texts.size());
  for (const auto& [key, text] : texts) {
    e.text(key);
    e.text(text);
  }
}

/// What says that it is there has at least one entry, in ascending order.
std::map<std::string, std::string> read_texts(Decoder& d, const char* out_of_order,
                                              const char* none) {
  std::map<std::string, std::string> texts;
  for (std::uint64_t n = d.count(); n > 0; --n) {
    std::string key = d.text();
    std::string text = d.text();
    if (!texts.empty() && key <= texts.rbegin()->first) {
      d.fault(out_of_order);
      break;
    }
    texts.emplace_hint(texts.end(), std::move(key), std::move(text));
  }
  if (texts.empty()) {
    d.fault(none);
  }
  return texts;
}

Overrides read_rules(Decoder& d) {
  return read_texts(d, "rules out of order", "no rules where there should be some");
}

}  // namespace

void encode_request(const Request& request, std::string& out) {
  Encoder e(out, kRequestVersion);
  e.number((request.gpu_memory ? kGpuMemory : 0) | (request.rules.empty() ? 0 : kRules) |
           (request.time == Millis{0} ? 0 : kTime));
  e.number(request.gpus.min);
  e.number(request.gpus.max);
  if (request.gpu_memory) {
    e.number(*request.gpu_memory);
  }
  e.number(request.cpus);
  e.number(request.memory);
  if (request.time != Millis{0}) {
    e.signed_number(request.time.count());
  }
  if (!request.rules.empty()) {
    append_texts(e, request.rules);
  }
  e.number(request.resources.size());
  for (const auto& [name, amount] : request.resources) {
    e.text(name);
    e.number(amount);
  }
}

Result<Request> decode_request(std::string_view bytes) {
  const bool old = !bytes.empty() && bytes.front() == kVersion;
  Decoder d(bytes, old ? kVersion : kRequestVersion);
  Request request;
  const std::uint64_t fields = d.number();
  if ((fields & ~kRequestFields) != 0) {
    d.fault("unknown fields");
  }
  request.gpus.min = d.number32();
  request.gpus.max = d.number32();
  if ((fields & kGpuMemory) != 0) {
    request.gpu_memory = d.number();
  }
  request.cpus = d.number32();
  request.memory = d.number();
  if (old) {
    if ((fields & kMinFreeMemory) != 0) {
      request.rules["min_free_memory"] = exact_size(d.number());
    }
    if ((fields & kMaxUtilization) != 0) {
      request.rules["max_utilization"] = std::to_string(d.number32());
    }
  } else {
    if ((fields & kTime) != 0) {
      request.time = Millis(d.signed_number());
      if (request.time == Millis{0}) {
        d.fault("no time where there should be one");
      }
    }
    if ((fields & kRules) != 0) {
      request.rules = read_rules(d);
    }
  }
  for (std::uint64_t n = d.count(); n > 0; --n) {
    std::string name = d.text();
    const std::uint64_t amount = d.number();
    if (!request.resources.empty() && name <= request.resources.rbegin()->first) {
      d.fault("resources out of order");
      break;
    }
    request.resources.emplace_hint(request.resources.end(), std::move(name), amount);
  }
  return d.finish(std::move(request), "request");
}

void encode_rules(const Overrides& rules, std::string& out) {
  Encoder e(out);
  append_texts(e, rules);
}

Result<Overrides> decode_rules(std::string_view bytes) {
  if (bytes.empty()) {
    return Overrides{};
  }
  Decoder d(bytes);
  Overrides rules = read_rules(d);
  return d.finish(std::move(rules), "set of rules");
}

void encode_traits(const BatchTraits& traits, std::string& out) {
  Encoder e(out);
  e.text(traits.dialect);
  e.text(traits.state_dir);
  e.text(traits.log);
  e.text(traits.mode);
  e.text(traits.config_file);
  e.number(traits.config_index);
  e.number(traits.pid);
}

Result<BatchTraits> decode_traits(std::string_view bytes) {
  BatchTraits traits;
  if (bytes.empty()) {
    return traits;
  }
  Decoder d(bytes);
  traits.dialect = d.text();
  traits.state_dir = d.text();
  traits.log = d.text();
  traits.mode = d.text();
  traits.config_file = d.text();
  traits.config_index = d.number32();
  traits.pid = d.number();
  return d.finish(std::move(traits), "set of traits");
}

void encode_payload(const Payload& payload, std::string& out) {
  Encoder e(out);
  e.number(payload.commands.size());
  for (const auto& command : payload.commands) {
    e.number(command.shell ? 1 : 0);
    e.texts(command.argv);
  }
  e.texts(payload.extra_env);
  e.text(payload.cwd);
  e.number(payload.umask);
  e.signed_number(payload.nice);
  e.signed_number(payload.time_limit.count());
  e.signed_number(payload.grace.count());
  const std::uint64_t flags = flags_of(payload);
  e.number(flags);
  if ((flags & kWarning) != 0) {
    e.signed_number(payload.warning.signal);
    e.signed_number(payload.warning.before.count());
  }
  if ((flags & kParams) != 0) {
    append_texts(e, payload.params);
  }
  if ((flags & kFingerprint) != 0) {
    e.number(payload.fingerprint);
  }
  if ((flags & kWorkDir) != 0) {
    e.text(payload.work_dir);
  }
}

Result<Payload> decode_payload(std::string_view bytes) {
  Decoder d(bytes);
  Payload payload;
  payload.commands.resize(d.count());
  for (auto& command : payload.commands) {
    const std::uint64_t shell = d.number();
    if (shell > 1) {
      d.fault("unknown kind of command");
    }
    command.shell = shell == 1;
    command.argv = d.texts();
  }
  payload.extra_env = d.texts();
  payload.cwd = d.text();
  payload.umask = d.number32();
  payload.nice = d.narrow<std::int32_t>(d.signed_number());
  payload.time_limit = Millis(d.signed_number());
  payload.grace = Millis(d.signed_number());
  const std::uint64_t flags = d.number();
  if ((flags & ~kPayloadFlags) != 0) {
    d.fault("unknown flags");
  }
  payload.linger = (flags & kLinger) != 0;
  if ((flags & kWarning) != 0) {
    payload.warning.signal = d.narrow<std::int32_t>(d.signed_number());
    payload.warning.before = Millis(d.signed_number());
  }
  if ((flags & kParams) != 0) {
    payload.params = read_texts(d, "params out of order", "no params where there should be some");
  }
  if ((flags & kFingerprint) != 0) {
    payload.fingerprint = d.number();
  }
  if ((flags & kWorkDir) != 0) {
    payload.work_dir = d.text();
  }
  if (flags_of(payload) != flags) {
    d.fault("nothing where there should be something");
  }
  payload.environment = std::make_shared<const Environment>();
  return d.finish(std::move(payload), "payload");
}

void encode_environment(const Environment& environment, std::string& out) {
  Encoder(out).texts(environment);
}

Result<Environment> decode_environment(std::string_view bytes) {
  Decoder d(bytes);
  Environment environment = d.texts();
  return d.finish(std::move(environment), "environment");
}

void encode_gpus(const std::vector<std::string>& uuids, const std::vector<std::uint32_t>& indices,
                 std::string& out) {
  Encoder e(out);
  e.texts(uuids);
  e.number(indices.size());
  for (const std::uint32_t index : indices) {
    e.number(index);
  }
}

Result<GpuSet> decode_gpus(std::string_view bytes) {
  Decoder d(bytes);
  GpuSet gpus;
  gpus.uuids = d.texts();
  gpus.indices.resize(d.count());
  for (auto& index : gpus.indices) {
    index = d.number32();
  }
  return d.finish(std::move(gpus), "list of GPUs");
}

}  // namespace berth
