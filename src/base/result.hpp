#pragma once
// Expected failures travel as values. An Error is written for the person who will read it.

#include <expected>
#include <string>
#include <utility>

namespace berth {

/// What a program may branch on; the message is for people.
enum class ErrorCode {
  invalid,      ///< the request itself is wrong; repeating it cannot help
  not_found,    ///< no such job, queue, file
  conflict,     ///< the thing is not in a state that allows this
  refused,      ///< allowed in principle, not now or not for this caller
  no_space,     ///< the disk is full
  unavailable,  ///< somebody else is not answering; trying again may help
  busy,         ///< too much at once; the same again in a moment
  corrupt,      ///< stored data is damaged or not ours
  io,           ///< the operating system said no
};

struct Error {
  ErrorCode code = ErrorCode::io;
  std::string message;

  /// Whether doing the same thing again later can succeed without anybody changing anything.
  [[nodiscard]] bool retryable() const {
    return code == ErrorCode::unavailable || code == ErrorCode::no_space || code == ErrorCode::busy;
  }
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] inline std::unexpected<Error> fail(ErrorCode code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

/// fail(io, "<what>: <strerror(errno_value)>").
[[nodiscard]] std::unexpected<Error> fail_errno(std::string what, int errno_value);

}  // namespace berth

#define BERTH_CONCAT_INNER(a, b) a##b
#define BERTH_CONCAT(a, b) BERTH_CONCAT_INNER(a, b)

/// Returns the error of `expression` from the enclosing function, if it has one.
#define TRY(expression)                                      \
  do {                                                       \
    if (auto try_result = (expression); !try_result) {       \
      return std::unexpected(std::move(try_result.error())); \
    }                                                        \
  } while (false)

#define TRY_ASSIGN_INNER(tmp, target, expression)   \
  auto tmp = (expression);                          \
  if (!tmp) {                                       \
    return std::unexpected(std::move(tmp.error())); \
  }                                                 \
  target = std::move(*tmp)

/// `TRY_ASSIGN(auto x, f());`: assigns the value, or returns the error.
#define TRY_ASSIGN(target, expression) \
  TRY_ASSIGN_INNER(BERTH_CONCAT(try_value_, __LINE__), target, expression)
