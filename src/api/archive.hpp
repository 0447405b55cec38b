#pragma once
// One description of a value's fields, two directions: `describe(archive, value)` run with a
// Writer makes JSON of it, with a Reader fills it from JSON. Private to wire*.cpp.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "api/text.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "core/job.hpp"

namespace berth::wire {

namespace json = boost::json;

/// const T& for an archive that writes, T& for one that reads.
template <class Archive, class T>
using Ref = std::conditional_t<Archive::kWriting, const T, T>&;

/// MAX_ARG_STRLEN, less the terminating NUL: execve refuses longer strings.
inline constexpr std::size_t kStringMax = 131'071;

template <class T>
concept Number = std::is_integral_v<T> && !std::is_same_v<T, bool>;

json::value bytes_value(std::string_view bytes);

class Writer {
 public:
  static constexpr bool kWriting = true;

  template <class T>
  static json::object object(const T& value) {
    Writer writer;
    describe(writer, value);
    return std::move(writer.out_);
  }

  template <class T>
  void need(std::string_view key, const T& value) {
    out_.emplace(key, put(value));
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
    out_.emplace(key, value == T{} ? json::value(nullptr) : put(value));
  }
  void bytes(std::string_view key, const std::string& value) {
    out_.emplace(key, bytes_value(value));
  }
  void bytes_or_null(std::string_view key, const std::string& value) {
    out_.emplace(key, value.empty() ? json::value(nullptr) : bytes_value(value));
  }
  void bytes_list(std::string_view key, const std::vector<std::string>& values) {
    json::array array;
    array.reserve(values.size());
    for (const auto& value : values) {
      array.push_back(bytes_value(value));
    }
    out_.emplace(key, std::move(array));
  }
  void check(bool, std::string_view, std::string_view) {}

  template <Number T>
  static json::value put(T value) {
    return json::value(value);
  }
  static json::value put(bool value) { return json::value(value); }
  static json::value put(const std::string& text) { return json::value(to_utf8(text)); }
  static json::value put(Millis time) { return json::value(time.count()); }
  static json::value put(JobState state) { return json::value(to_string(state)); }
  static json::value put(FailureClass failure) { return json::value(to_string(failure)); }
  static json::value put(JobId id) { return json::value(id.value); }
  template <class T>
  static json::value put(const std::optional<T>& value) {
    return value ? put(*value) : json::value(nullptr);
  }
  template <class T>
  static json::value put(const std::vector<T>& values) {
    json::array array;
    array.reserve(values.size());
    for (const auto& value : values) {
      array.push_back(put(value));
    }
    return array;
  }
  static json::value put(const std::map<std::string, std::uint64_t>& map) {
    json::object object;
    for (const auto& [key, value] : map) {
      object.emplace(to_utf8(key), value);
    }
    return object;
  }
  template <class T>
    requires std::is_class_v<T>
  static json::value put(const T& value) {
    return object(value);
  }

 private:
  json::object out_;
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
  /// Absent or null leaves what is there.
  template <class T>
  void field(std::string_view key, T& out) {
    if (const json::value* value = find(key); value != nullptr && !value->is_null()) {
      with(key, *value, out);
    }
  }
  template <class T>
  void unless(std::string_view key, T& out, const std::type_identity_t<T>&) {
    field(key, out);
  }
  template <class T>
  void or_null(std::string_view key, T& out) {
    field(key, out);
  }
  void bytes(std::string_view key, std::string& out) {
    if (const json::value* value = find(key); value != nullptr && !value->is_null()) {
      const Place place{&place_, key};
      get_bytes(place, *value, out);
    }
  }
  void bytes_or_null(std::string_view key, std::string& out) { bytes(key, out); }
  void bytes_list(std::string_view key, std::vector<std::string>& out);
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
    if (in.is_int64() || in.is_uint64()) {
      json::error_code error;
      if (const T number = in.to_number<T>(error); !error) {
        out = number;
        return;
      }
      return reading_.failed(place, fmt::format("expected a number from {} to {}, got {}",
                                                std::numeric_limits<T>::min(),
                                                std::numeric_limits<T>::max(), shown(in)));
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
  void get(const Place& place, const json::value& in, JobId& out);
  void get(const Place& place, const json::value& in, std::map<std::string, std::uint64_t>& out);
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

template <class A>
void describe(A& a, wire::Ref<A, GpuCount> gpus) {
  a.need("min", gpus.min);
  a.need("max", gpus.max);
  a.check(gpus.min <= gpus.max, "max", "is less than min");
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
