#pragma once
// The query part of a target, read parameter by parameter. Private to the sources of src/api.

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/idset.hpp"
#include "api/text.hpp"
#include "api/wire.hpp"

namespace berth {

/// Reads the parameters of a query one by one and refuses what is left.
class QueryReader {
 public:
  explicit QueryReader(const Query& query) : rest_(query) {}

  /// Whether there is such a parameter, which is one that is known here.
  bool has(const std::string& name) {
    if (std::ranges::find(known_, name) == known_.end()) {
      known_.push_back(name);
    }
    return rest_.contains(name);
  }

  std::optional<std::string> text(const std::string& name) {
    static_cast<void>(has(name));
    const auto it = rest_.find(name);
    if (it == rest_.end()) {
      return std::nullopt;
    }
    std::string value = it->second;
    rest_.erase(it);
    return value;
  }

  /// No more than every client can write exactly.
  template <class T>
  void number(const std::string& name, T& out,
              T max = static_cast<T>(std::min<std::uint64_t>(std::numeric_limits<T>::max(),
                                                             kNumberMax))) {
    const auto value = text(name);
    if (!value) {
      return;
    }
    T parsed{};
    const char* end = value->data() + value->size();
    const auto [at, error] = std::from_chars(value->data(), end, parsed);
    if (error != std::errc() || at != end || parsed > max) {
      return failed(name, fmt::format("expected a number up to {}, got \"{}\"", max, *value));
    }
    out = parsed;
  }

  /// At least 1.
  template <class T>
  void count(const std::string& name, T& out, T max) {
    number(name, out, max);
    if (out == 0) {
      failed(name, "must be at least 1");
    }
  }

  /// One of these.
  std::optional<std::string> word(const std::string& name,
                                  std::initializer_list<std::string_view> known) {
    auto value = text(name);
    if (value && std::ranges::find(known, *value) == known.end()) {
      failed(name, fmt::format("expected {}, got \"{}\"", fmt::join(known, " or "), *value));
    }
    return value;
  }

  /// "a,b" in parts; empty: it is not there.
  std::vector<std::string> words(const std::string& name) {
    const auto value = text(name);
    std::vector<std::string> out;
    for (std::size_t at = 0; value && at <= value->size();) {
      const std::size_t comma = std::min(value->find(',', at), value->size());
      out.push_back(value->substr(at, comma - at));
      at = comma + 1;
    }
    return out;
  }

  bool flag(const std::string& name) { return word(name, {"0", "1"}).value_or("0") == "1"; }

  void ids(const std::string& name, std::optional<IdSet>& out) {
    if (const auto value = text(name)) {
      auto parsed = IdSet::parse(*value);
      parsed ? void(out = std::move(*parsed)) : failed(name, parsed.error().message);
    }
  }

  void time(const std::string& name, Millis& out) {
    std::uint64_t count = 0;
    number(name, count);
    // More than the server is willing to wait is not an error: the client asks again.
    out = std::min(Millis(count), kLongPollMax);
  }

  void wall_time(const std::string& name, std::optional<Millis>& out) {
    if (!has(name)) {
      return;
    }
    std::uint64_t count = 0;
    number(name, count);
    out = Millis(count);
  }

  void failed(const std::string& name, const std::string& what) {
    if (!error_) {
      error_ = Error{ErrorCode::invalid, fmt::format("{}: {}", name, to_utf8(what))};
    }
  }

  Status finish() {
    if (!error_ && !rest_.empty()) {
      failed(rest_.begin()->first,
             known_.empty()
                 ? std::string("unknown parameter; there are none here")
                 : fmt::format("unknown parameter; there {} {}", known_.size() == 1 ? "is" : "are",
                               fmt::join(known_, ", ")));
    }
    if (error_) {
      return std::unexpected(*error_);
    }
    return {};
  }

 private:
  Query rest_;
  std::vector<std::string> known_;  ///< what was asked for, in this order
  std::optional<Error> error_;
};

}  // namespace berth
