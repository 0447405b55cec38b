#include "api/archive.hpp"

#include <algorithm>
#include <utility>

namespace berth::wire {

bool Writer::begin(std::string_view key) {
  if (!only_.empty() && std::ranges::find(only_, key) == only_.end()) {
    return false;
  }
  out_ += std::exchange(empty_, false) ? "{\"" : ",\"";
  out_ += key;  // ours, and plain
  out_ += "\":";
  return true;
}

void Writer::put_text(std::string& out, std::string_view text) {
  is_utf8(text) ? append_json_string(out, text) : append_json_string(out, to_utf8(text));
}

void Writer::put_bytes(std::string& out, std::string_view bytes) {
  if (is_utf8(bytes)) {
    append_json_string(out, bytes);
  } else {
    out += R"({"base64":")";
    out += base64_encode(bytes);
    out += R"("})";
  }
}

std::string Place::to_string() const {
  if (parent == nullptr) {
    return {};
  }
  const std::string above = parent->to_string();
  if (key.data() == nullptr) {
    return fmt::format("{}[{}]", above, index);
  }
  return above.empty() ? std::string(key) : fmt::format("{}.{}", above, key);
}

void Reading::failed(const Place& place, std::string_view what) {
  if (!error) {
    const std::string where = place.to_string();
    error = Error{ErrorCode::invalid,
                  where.empty() ? std::string(what) : fmt::format("{}: {}", where, what)};
  }
}

std::string shown(const json::value& value) {
  constexpr std::size_t kMax = 60;
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = json::serialize(value);
  if (text.size() > kMax) {
    text.resize(kMax);
    text = to_utf8(text) + "…";
  }
  return text;
}

const json::value* Reader::find(std::string_view key) {
  if (reading_.error) {
    return nullptr;
  }
  known_.push_back(key);
  const json::value* value = in_.if_contains(key);
  found_ += value != nullptr ? 1 : 0;
  return value;
}

void Reader::finish() {
  if (reading_.unknown == Unknown::ignored || reading_.error || found_ == in_.size()) {
    return;
  }
  for (const auto& entry : in_) {
    if (std::ranges::find(known_, std::string_view(entry.key())) == known_.end()) {
      const std::string key = entry.key();
      const Place place{&place_, key};
      reading_.failed(place,
                      "unknown field; known are: " + fmt::format("{}", fmt::join(known_, ", ")));
      return;
    }
  }
}

void Reader::get_bytes(const Place& place, const json::value& in, std::string& out) {
  if (const json::string* text = in.if_string()) {
    out.assign(text->data(), text->size());
  } else if (const json::object* object = in.if_object();
             object != nullptr && object->size() == 1 && object->contains("base64") &&
             object->at("base64").is_string()) {
    auto decoded = base64_decode(std::string_view(object->at("base64").get_string()));
    if (!decoded) {
      return reading_.failed(place, "is not valid base64");
    }
    out = std::move(*decoded);
  } else {
    return reading_.failed(place, "expected a string or {\"base64\": …}, got " + shown(in));
  }
  if (out.find('\0') != std::string::npos) {
    reading_.failed(place, "contains a NUL byte");
  }
}

void Reader::bytes_list(std::string_view key, std::vector<std::string>& out) {
  const json::value* value = find(key);
  if (value == nullptr || (value->is_null() && !is_request())) {
    return;
  }
  const Place place{&place_, key};
  const json::array* array = value->if_array();
  if (array == nullptr) {
    return reading_.failed(place, "expected a list, got " + shown(*value));
  }
  out.clear();
  out.reserve(array->size());
  for (std::size_t i = 0; i < array->size() && !reading_.error; ++i) {
    const Place element{&place, {}, i};
    get_bytes(element, (*array)[i], out.emplace_back());
  }
}

void Reader::get(const Place& place, const json::value& in, bool& out) {
  if (!in.is_bool()) {
    return reading_.failed(place, "expected true or false, got " + shown(in));
  }
  out = in.get_bool();
}

void Reader::get(const Place& place, const json::value& in, std::string& out) {
  const json::string* text = in.if_string();
  if (text == nullptr) {
    return reading_.failed(place, "expected a string, got " + shown(in));
  }
  out.assign(text->data(), text->size());
  if (out.find('\0') != std::string::npos) {
    reading_.failed(place, "contains a NUL byte");
  }
}

void Reader::get(const Place& place, const json::value& in, Millis& out) {
  std::int64_t count = 0;
  get(place, in, count);
  out = Millis(count);
}

void Reader::get(const Place& place, const json::value& in, JobState& out) {
  std::string text;
  get(place, in, text);
  if (const auto state = job_state_from(text)) {
    out = *state;
  } else {
    reading_.failed(place, "there is no job state " + shown(in));
  }
}

void Reader::get(const Place& place, const json::value& in, FailureClass& out) {
  std::string text;
  get(place, in, text);
  if (const auto failure = failure_class_from(text)) {
    out = *failure;
  } else {
    reading_.failed(place, "there is no failure class " + shown(in));
  }
}

void Reader::get(const Place& place, const json::value& in, JobId& out) {
  get(place, in, out.value);
}

void Reader::get(const Place& place, const json::value& in, ListPlace& out) {
  if (!in.is_string()) {
    return get(place, in, out.id);
  }
  std::string text;
  get(place, in, text);
  if (const auto found = list_place_from(text)) {
    out = *found;
  } else {
    reading_.failed(place, "expected where a page goes on, got " + shown(in));
  }
}

void Reader::get(const Place& place, const json::value& in, After& out) {
  std::string text;
  get(place, in, text);
  if (const auto after = after_from(text)) {
    out = *after;
  } else {
    reading_.failed(place, "expected ok, any or failed, got " + shown(in));
  }
}

void Reader::get(const Place& place, const json::value& in,
                 std::map<std::string, std::string>& out) {
  const json::object* object = in.if_object();
  if (object == nullptr) {
    return reading_.failed(place, "expected an object, got " + shown(in));
  }
  out.clear();
  for (const auto& entry : *object) {
    const Place element{&place, entry.key()};
    get(element, entry.value(), out[std::string(entry.key())]);
  }
}

void Reader::get(const Place& place, const json::value& in,
                 std::map<std::string, std::uint64_t>& out) {
  const json::object* object = in.if_object();
  if (object == nullptr) {
    return reading_.failed(place, "expected an object, got " + shown(in));
  }
  for (const auto& entry : *object) {
    const std::string key = entry.key();
    const Place element{&place, key};
    get(element, entry.value(), out[key]);
  }
}

Result<json::value> parse(std::string_view body, json::storage_ptr storage) {
  try {
    json::parser parser(std::move(storage));
    json::error_code error;
    const std::size_t used = parser.write_some(body.data(), body.size(), error);
    if (!error && used < body.size()) {
      error = json::error::extra_data;
    }
    if (error) {
      return fail(ErrorCode::invalid,
                  fmt::format("not valid JSON at byte {}: {}", used, error.message()));
    }
    return parser.release();
  } catch (const std::exception& error) {
    return fail(ErrorCode::invalid, fmt::format("cannot read JSON: {}", error.what()));
  }
}

}  // namespace berth::wire
