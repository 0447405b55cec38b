#include "daemon/compete_query.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "base/utf8.hpp"

namespace berth {
namespace {

namespace json = boost::json;

constexpr std::uint32_t kMostQueue = 999'999'999;  // as in command files
constexpr std::uint32_t kMostProcess = 10'000'000;
constexpr std::uint64_t kMostLines = 1'000'000;

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && at == end && !text.empty() ? std::optional(value) : std::nullopt;
}

}  // namespace

Result<CompeteQuery> CompeteQuery::read(const HttpRequest& request,
                                        std::initializer_list<std::string_view> known,
                                        bool in_body) {
  CompeteQuery query;
  query.values_.insert(request.query.begin(), request.query.end());
  if (in_body && !request.body.empty()) {
    boost::system::error_code wrong;
    const json::value body = json::parse(request.body, wrong);
    if (wrong || !body.is_object()) {
      return fail(ErrorCode::invalid, "the body is no JSON object");
    }
    for (const auto& [name, value] : body.get_object()) {
      if (!value.is_string() && !value.is_number()) {
        return fail(ErrorCode::invalid,
                    fmt::format("{}: expected a number or a text", printable(name)));
      }
      query.values_.insert_or_assign(std::string(name), value.is_string()
                                                            ? std::string(value.get_string())
                                                            : json::serialize(value));
    }
  }
  for (const auto& [name, value] : query.values_) {
    if (std::ranges::find(known, name) == known.end()) {
      return fail(ErrorCode::invalid, known.size() == 0
                                          ? fmt::format("'{}' is not known here", printable(name))
                                          : fmt::format("'{}' is not known here; there is {}",
                                                        printable(name), fmt::join(known, ", ")));
    }
  }
  return query;
}

std::string CompeteQuery::text(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::string() : found->second;
}

Result<std::optional<std::uint64_t>> CompeteQuery::number(std::string_view name,
                                                          std::uint64_t most) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    return std::optional<std::uint64_t>();
  }
  const auto value = whole_number(found->second);
  if (!value || *value > most) {
    return fail(ErrorCode::invalid,
                fmt::format("{}: expected a whole number from 0 to {}, got '{}'", name, most,
                            printable(found->second)));
  }
  return value;
}

Result<std::uint32_t> CompeteQuery::must_number(std::string_view name, std::uint32_t most) const {
  TRY_ASSIGN(const auto value, number(name, most));
  if (!value) {
    return fail(ErrorCode::invalid, fmt::format("{} is missing", name));
  }
  return static_cast<std::uint32_t>(*value);
}

Result<bool> CompeteQuery::flag(std::string_view name) const {
  const std::string value = text(name);
  if (value.empty() || value == "false" || value == "0") {
    return false;
  }
  if (value == "true" || value == "1") {
    return true;
  }
  return fail(ErrorCode::invalid,
              fmt::format("{}: expected true or false, got '{}'", name, printable(value)));
}

Result<std::uint32_t> CompeteQuery::config_index() const {
  const auto found = values_.find("config_index");
  return found == values_.end() ? Result<std::uint32_t>(0)
                                : compete::config_index_from(found->second);
}

Result<compete::ProcessPlace> CompeteQuery::place() const {
  compete::ProcessPlace place;
  if (!values_.contains("mode")) {
    return fail(ErrorCode::invalid, "mode is missing");
  }
  auto mode = compete::mode_from(text("mode"));
  if (!mode) {
    mode.error().code = ErrorCode::invalid;  // here it is a value, no part of a path
    return std::unexpected(std::move(mode.error()));
  }
  place.mode = *mode;
  TRY_ASSIGN(place.config_index, must_number("config_index", compete::kMostConfigs));
  TRY_ASSIGN(place.queue_id, must_number("queue_id", kMostQueue));
  TRY_ASSIGN(place.process_index, must_number("process_index", kMostProcess));
  return place;
}

Result<compete::LogPiece> CompeteQuery::piece() const {
  compete::LogPiece piece;
  TRY_ASSIGN(piece.offset, number("offset", INT64_MAX));
  TRY_ASSIGN(const auto limit, number("limit", compete::kLogPieceMost));
  TRY_ASSIGN(const auto tail, number("tail", kMostLines));
  TRY_ASSIGN(const auto tail_lines, number("tail_lines", kMostLines));
  if ((tail || tail_lines) && piece.offset) {
    return fail(ErrorCode::invalid, "offset and tail: ask for one of them");
  }
  piece.limit = limit.value_or(compete::kLogPieceMost);
  piece.tail = tail ? *tail : tail_lines.value_or(compete::kTailLinesUsual);
  return piece;
}

}  // namespace berth
