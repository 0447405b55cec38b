#pragma once
// What every part of the service says when all is well.

#include <string>
#include <utility>

#include "api/http.hpp"

namespace berth {

[[nodiscard]] inline HttpResponse ok(std::string body) {
  HttpResponse response;
  response.body = std::move(body);
  return response;
}

}  // namespace berth
