#pragma once
// The named values that a request about command files comes with.

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "api/http.hpp"
#include "base/result.hpp"
#include "compete/log_bindings.hpp"
#include "compete/log_text.hpp"

namespace berth {

class CompeteQuery {
 public:
  /// Of the query; with `in_body`, also of a JSON object in the body, whose values count more.
  /// Names that are not `known` are refused.
  [[nodiscard]] static Result<CompeteQuery> read(const HttpRequest& request,
                                                 std::initializer_list<std::string_view> known,
                                                 bool in_body = false);

  /// Empty: it is not there.
  [[nodiscard]] std::string text(std::string_view name) const;
  [[nodiscard]] Result<std::optional<std::uint64_t>> number(std::string_view name,
                                                            std::uint64_t most) const;
  [[nodiscard]] Result<std::uint32_t> must_number(std::string_view name, std::uint32_t most) const;
  [[nodiscard]] Result<bool> flag(std::string_view name) const;
  /// "config_index"; 0 if it is not there.
  [[nodiscard]] Result<std::uint32_t> config_index() const;
  /// "mode", "config_index", "queue_id" and "process_index", all of them.
  [[nodiscard]] Result<compete::ProcessPlace> place() const;
  /// "offset", "limit", "tail" or "tail_lines".
  [[nodiscard]] Result<compete::LogPiece> piece() const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace berth
