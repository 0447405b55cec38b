#pragma once
// The daemon as `berth top` asks it: one try, short patience, nothing printed. Unlike Daemon, which
// commands use that have nothing else to do.

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "api/http.hpp"
#include "api/wire.hpp"
#include "base/result.hpp"

namespace berth::cli {

class TopLink {
 public:
  using Dial = std::function<Result<HttpClient>()>;
  explicit TopLink(Dial dial) : dial_(std::move(dial)) {}

  [[nodiscard]] Result<std::string> call(const std::string& method, const std::string& target,
                                         const std::string& body, Millis patience);

  template <class T>
  [[nodiscard]] Result<T> get(const std::string& target, Millis patience) {
    TRY_ASSIGN(const std::string body, call("GET", target, {}, patience));
    return decode<T>(body);
  }

  /// From any thread: ends a request under way, and every later one at once.
  void close();

 private:
  [[nodiscard]] Result<std::shared_ptr<HttpClient>> client();
  void drop();

  Dial dial_;
  std::mutex mutex_;
  std::shared_ptr<HttpClient> client_;
  bool closed_ = false;
};

}  // namespace berth::cli
