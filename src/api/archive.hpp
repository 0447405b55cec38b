#pragma once
// One description of a value's fields, two directions: `describe(archive, value)` run with a
// Writer makes JSON of it, with a Reader fills it from JSON. Private to wire*.cpp.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/text.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "core/job.hpp"
#include "core/job_sort.hpp"

namespace berth::wire {

namespace json = boost::json;

/// const T& for an archive that writes, T& for one that reads.
template <class Archive, class T>
using Ref = std::conditional_t<Archive::kWriting, const T, T>&;

/// MAX_ARG_STRLEN, less the terminating NUL: execve refuses longer strings.
inline constexpr std::size_t kStringMax = 131'071;

template <class T>
concept Number = std::is_integral_v<T> && !std::is_same_v<T, bool>;

template <class T>
inline constexpr bool kOptional = false;
template <class T>
inline constexpr bool kOptional<std::optional<T>> = true;

/// Writes the text as it goes: a page of jobs is made several times as fast as by way of a tree.
class Writer {
 public:
  static constexpr bool kWriting = true;

  template <class T>
  static std::string text(const T& value) {
    std::string out;
    put(out, value);
    return out;
  }
  /// Of its fields only these, unless there are none.
  template <class T>
  static void object(std::string& out, const T& value, std::span<const std::string> only = {}) {
    Writer writer(out, only);
    describe(writer, value);
    out += writer.empty_ ? "{}" : "}";
  }

  template <class T>
  void need(std::string_view key, const T& value) {
    if (begin(key)) {
      put(out_, value);
    }
  }
  template <class T>
  void field(std::string_view key, const T& value) {
    need(key, value);
  }
  /// Left out when it has this value.
  template <class T>
  void unless(std::string_view key, const T& value, const std::type_identity_t<T>& usual) {
    if (value != usual) {
      need(key, value);
    }
  }
  /// "" or 0 is null.
  template <class T>
  void or_null(std::string_view key, const T& value) {
    if (begin(key)) {
      value == T{} ? put_null(out_) : put(out_, value);
    }
  }
  void bytes(std::string_view key, const std::string& value) {
    if (begin(key)) {
      put_bytes(out_, value);
    }
  }
  void bytes_or_null(std::string_view key, const std::string& value) {
    if (begin(key)) {
      value.empty() ? put_null(out_) : put_bytes(out_, value);
    }
  }
  void bytes_list(std::string_view key, const std::vector<std::string>& values) {
    if (begin(key)) {
      put_list(out_, values, [this](const std::string& value) { put_bytes(out_, value); });
    }
  }
  void check(bool, std::string_view, std::string_view) {}

 private:
  Writer(std::string& out, std::span<const std::string> only) : out_(out), only_(only) {}

  /// Whether the field is wanted; then its value comes next.
  bool begin(std::string_view key);

  static void put_null(std::string& out) { out += "null"; }
  static void put_text(std::string& out, std::string_view text);
  static void put_bytes(std::string& out, std::string_view bytes);
  template <class List, class Put>
  static void put_list(std::string& out, const List& list, Put put_one) {
    out += '[';
    bool first = true;
    for (const auto& one : list) {
      out += std::exchange(first, false) ? "" : ",";
      put_one(one);
    }
    out += ']';
  }
  template <class Map>
  static void put_map(std::string& out, const Map& map) {
    out += '{';
    bool first = true;
    for (const auto& [key, value] : map) {
      out += std::exchange(first, false) ? "" : ",";
      put(out, key);
      out += ':';
      put(out, value);
    }
    out += '}';
  }

  template <Number T>
  static void put(std::string& out, T value) {
    const fmt::format_int text(value);
    out.append(text.data(), text.size());
  }
  static void put(std::string& out, bool value) { out += value ? "true" : "false"; }
  static void put(std::string& out, const std::string& text) { put_text(out, text); }
  static void put(std::string& out, Millis time) { put(out, time.count()); }
  static void put(std::string& out, JobState state) { put_text(out, to_string(state)); }
  static void put(std::string& out, FailureClass failure) { put_text(out, to_string(failure)); }
  static void put(std::string& out, After after) { put_text(out, to_string(after)); }
  static void put(std::string& out, JobId id) { put(out, id.value); }
  /// A number, as ever, where that says it all.
  static void put(std::string& out, const ListPlace& place) {
    place.key ? put_text(out, to_string(place)) : put(out, place.id.value);
  }
  template <class T>
  static void put(std::string& out, const std::optional<T>& value) {
    value ? put(out, *value) : put_null(out);
  }
  template <class T>
  static void put(std::string& out, const std::vector<T>& values) {
    put_list(out, values, [&out](const T& value) { put(out, value); });
  }
  static void put(std::string& out, const std::map<std::string, std::uint64_t>& map) {
    put_map(out, map);
  }
  static void put(std::string& out, const std::map<std::string, std::string>& map) {
    put_map(out, map);
  }
  template <class T>
    requires std::is_class_v<T>
  static void put(std::string& out, const T& value) {
    object(out, value);
  }

  std::string& out_;
  std::span<const std::string> only_;
  bool empty_ = true;
};

/// Where in a document a reader is, for messages: a chain of frames up the stack.
struct Place {
  const Place* parent = nullptr;
  std::string_view key;
  std::size_t index = 0;

  [[nodiscard]] std::string to_string() const;
};

enum class Unknown { error, ignored };

/// What a whole decoding shares: the first failure, which stops all further reading.
struct Reading {
  Unknown unknown = Unknown::ignored;
  std::optional<Error> error;

  void failed(const Place& place, std::string_view what);
};

/// A short rendering of a value for "got …".
std::string shown(const json::value& value);

class Reader {
 public:
  static constexpr bool kWriting = false;

  template <class T>
  static void object(Reading& reading, const Place& place, const json::value& in, T& out) {
    const json::object* object = in.if_object();
    if (object == nullptr) {
      return reading.failed(place, "expected an object, got " + shown(in));
    }
    Reader reader(reading, place, *object);
    describe(reader, out);
    reader.finish();
  }

  /// Must be there.
  template <class T>
  void need(std::string_view key, T& out) {
    const json::value* value = find(key);
    if (value == nullptr) {
      const Place place{&place_, key};
      return reading_.failed(place, "is missing");
    }
    with(key, *value, out);
  }
  /// Absent leaves what is there, and so does null, but in a request only where null has a meaning.
  template <class T>
  void field(std::string_view key, T& out) {
    if (const json::value* value = find(key);
        value != nullptr && (!value->is_null() || (is_request() && !kOptional<T>))) {
      with(key, *value, out);
    }
  }
  template <class T>
  void unless(std::string_view key, T& out, const std::type_identity_t<T>&) {
    field(key, out);
  }
  template <class T>
  void or_null(std::string_view key, T& out) {
    if (const json::value* value = find(key); value != nullptr && !value->is_null()) {
      with(key, *value, out);
    }
  }
  void bytes(std::string_view key, std::string& out) {
    if (const json::value* value = find(key);
        value != nullptr && (!value->is_null() || is_request())) {
      const Place place{&place_, key};
      get_bytes(place, *value, out);
    }
  }
  void bytes_or_null(std::string_view key, std::string& out) {
    if (const json::value* value = find(key); value != nullptr && !value->is_null()) {
      const Place place{&place_, key};
      get_bytes(place, *value, out);
    }
  }
  void bytes_list(std::string_view key, std::vector<std::string>& out);
  /// Whether it is there, for what means something even when it is empty.
  [[nodiscard]] bool given(std::string_view key) const { return in_.contains(key); }
  /// Refuses the field `key` unless `ok`.
  void check(bool ok, std::string_view key, std::string_view what) {
    if (!ok) {
      const Place place{&place_, key};
      reading_.failed(place, what);
    }
  }

 private:
  Reader(Reading& reading, const Place& place, const json::object& in)
      : reading_(reading), place_(place), in_(in) {}

  [[nodiscard]] bool is_request() const { return reading_.unknown == Unknown::error; }
  const json::value* find(std::string_view key);
  void finish();
  void get_bytes(const Place& place, const json::value& in, std::string& out);

  template <class T>
  void with(std::string_view key, const json::value& value, T& out) {
    const Place place{&place_, key};
    get(place, value, out);
  }

  template <Number T>
  void get(const Place& place, const json::value& in, T& out) {
    // 5.0 is 5 to whoever has no integers; to_number takes it, but nothing with a fraction.
    const bool whole = !in.is_double() || in.get_double() == std::trunc(in.get_double());
    if (in.is_number() && whole) {
      constexpr auto kMax =
          static_cast<T>(std::min<std::uint64_t>(std::numeric_limits<T>::max(), kNumberMax));
      json::error_code error;
      if (const T number = in.to_number<T>(error); !error && (number <= kMax || !is_request())) {
        out = number;
        return;
      }
      return reading_.failed(place, fmt::format("expected a number from {} to {}, got {}",
                                                std::numeric_limits<T>::min(), kMax, shown(in)));
    }
    reading_.failed(
        place,
        (in.is_double() ? "expected a whole number, got " : "expected a number, got ") + shown(in));
  }
  void get(const Place& place, const json::value& in, bool& out);
  void get(const Place& place, const json::value& in, std::string& out);
  void get(const Place& place, const json::value& in, Millis& out);
  void get(const Place& place, const json::value& in, JobState& out);
  void get(const Place& place, const json::value& in, FailureClass& out);
  void get(const Place& place, const json::value& in, After& out);
  void get(const Place& place, const json::value& in, JobId& out);
  void get(const Place& place, const json::value& in, ListPlace& out);
  void get(const Place& place, const json::value& in, std::map<std::string, std::uint64_t>& out);
  void get(const Place& place, const json::value& in, std::map<std::string, std::string>& out);
  template <class T>
  void get(const Place& place, const json::value& in, std::optional<T>& out) {
    get(place, in, out.emplace());
  }
  template <class T>
  void get(const Place& place, const json::value& in, std::vector<T>& out) {
    const json::array* array = in.if_array();
    if (array == nullptr) {
      return reading_.failed(place, "expected a list, got " + shown(in));
    }
    out.clear();
    out.reserve(array->size());
    for (std::size_t i = 0; i < array->size() && !reading_.error; ++i) {
      const Place element{&place, {}, i};
      get(element, (*array)[i], out.emplace_back());
    }
  }
  template <class T>
    requires std::is_class_v<T>
  void get(const Place& place, const json::value& in, T& out) {
    object(reading_, place, in, out);
  }

  Reading& reading_;
  const Place& place_;
  const json::object& in_;
  std::vector<std::string_view> known_;
  std::size_t found_ = 0;
};

/// Parses `body` and reads it as a T.
Result<json::value> parse(std::string_view body, json::storage_ptr storage);

template <class T>
Result<T> read(std::string_view body, Unknown unknown) {
  json::monotonic_resource memory;
  TRY_ASSIGN(const json::value value, parse(body, &memory));
  Reading reading{unknown, {}};
  T out;
  const Place top{};
  Reader::object(reading, top, value, out);
  if (reading.error) {
    return std::unexpected(std::move(*reading.error));
  }
  return out;
}

}  // namespace berth::wire

namespace berth {

inline constexpr std::size_t kKeyMax = 128;  ///< bytes of a client's key

template <class A>
void describe(A& a, wire::Ref<A, GpuCount> gpus) {
  a.need("min", gpus.min);
  a.need("max", gpus.max);
  a.check(gpus.min <= gpus.max, "max", "is less than min");
}

/// Likewise in requests and answers.
template <class A>
void describe(A& a, wire::Ref<A, BatchTraits> traits) {
  a.unless("dialect", traits.dialect, {});
  if (!A::kWriting || !traits.state_dir.empty()) {
    a.bytes("state_dir", traits.state_dir);
  }
  if (!A::kWriting || !traits.log.empty()) {
    a.bytes("log", traits.log);
  }
  a.unless("mode", traits.mode, {});
  if (!A::kWriting || !traits.config_file.empty()) {
    a.bytes("config_file", traits.config_file);
  }
  a.unless("config_index", traits.config_index, 0);
  a.unless("pid", traits.pid, 0);
  a.check(traits.state_dir.empty() || traits.state_dir.starts_with('/'), "state_dir",
          "must be an absolute path");
  a.check(traits.log.find('/') == std::string::npos && traits.log != "." && traits.log != "..",
          "log", "must be the name of a file in state_dir, without a directory");
}

/// A command looks the same in requests and answers.
template <class A>
void describe(A& a, wire::Ref<A, Command> command) {
  a.field("shell", command.shell);
  a.bytes_list("argv", command.argv);
  a.check(!command.argv.empty(), "argv", "a command needs at least one word");
  a.check(!command.shell || command.argv.size() == 1, "argv",
          "a shell command is one string, not several");
  for (std::size_t i = 0; i < command.argv.size(); ++i) {
    if (command.argv[i].size() > wire::kStringMax) {
      a.check(false, fmt::format("argv[{}]", i),
              fmt::format("has {} bytes; the kernel takes {} at most: pass the data in a file",
                          command.argv[i].size(), wire::kStringMax));
    }
  }
}

}  // namespace berth
