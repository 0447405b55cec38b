#include "store/encode.hpp"

#include <limits>

namespace berth {
namespace {

constexpr char kVersion = 1;

class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) { out_.push_back(kVersion); }

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
  explicit Decoder(std::string_view bytes) : rest_(bytes) {
    if (rest_.empty() || rest_.front() != kVersion) {
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
constexpr std::uint64_t kMinFreeMemory = 2;
constexpr std::uint64_t kMaxUtilization = 4;
constexpr std::uint64_t kRequestFields = kGpuMemory | kMinFreeMemory | kMaxUtilization;

constexpr std::uint64_t kLinger = 1;
constexpr std::uint64_t kPayloadFlags = kLinger;

}  // namespace

void encode_request(const Request& request, std::string& out) {
  Encoder e(out);
  e.number((request.gpu_memory ? kGpuMemory : 0) | (request.min_free_memory ? kMinFreeMemory : 0) |
           (request.max_utilization ? kMaxUtilization : 0));
  e.number(request.gpus.min);
  e.number(request.gpus.max);
  if (request.gpu_memory) {
    e.number(*request.gpu_memory);
  }
  e.number(request.cpus);
  e.number(request.memory);
  if (request.min_free_memory) {
    e.number(*request.min_free_memory);
  }
  if (request.max_utilization) {
    e.number(*request.max_utilization);
  }
  e.number(request.resources.size());
  for (const auto& [name, amount] : request.resources) {
    e.text(name);
    e.number(amount);
  }
}

Result<Request> decode_request(std::string_view bytes) {
  Decoder d(bytes);
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
  if ((fields & kMinFreeMemory) != 0) {
    request.min_free_memory = d.number();
  }
  if ((fields & kMaxUtilization) != 0) {
    request.max_utilization = d.number32();
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
  e.number(payload.linger ? kLinger : 0);
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
