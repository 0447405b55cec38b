#include "cli/top_link.hpp"

namespace berth::cli {

Result<std::shared_ptr<HttpClient>> TopLink::client() {
  {
    const std::scoped_lock lock(mutex_);
    if (closed_) {
      return fail(ErrorCode::unavailable, "closed");
    }
    if (client_) {
      return client_;
    }
  }
  TRY_ASSIGN(HttpClient made, dial_());
  const std::scoped_lock lock(mutex_);
  if (closed_) {
    return fail(ErrorCode::unavailable, "closed");
  }
  client_ = std::make_shared<HttpClient>(std::move(made));
  return client_;
}

void TopLink::drop() {
  const std::scoped_lock lock(mutex_);
  client_.reset();
}

void TopLink::close() {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  if (client_) {
    client_->abandon();
  }
}

Result<std::string> TopLink::call(const std::string& method, const std::string& target,
                                  const std::string& body, Millis patience) {
  // A connection that has rested may have been closed by the other side: then once more.
  for (const bool again : {true, false}) {
    TRY_ASSIGN(const std::shared_ptr<HttpClient> asked, client());
    const Millis begun = read_clock().mono;
    auto response = asked->request(method, target, body, patience);
    if (!response) {
      drop();
      if (again && method == "GET" && read_clock().mono - begun < patience) {
        continue;
      }
      return std::unexpected(std::move(response.error()));
    }
    for (const auto& [name, value] : response->headers) {
      if (name == "connection" && value == "close") {
        drop();
      }
    }
    return body_or_error(std::move(*response));
  }
  return fail(ErrorCode::unavailable, "no answer");
}

}  // namespace berth::cli
