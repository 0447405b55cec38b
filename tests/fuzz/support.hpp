#pragma once
// What the fuzz targets share.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/result.hpp"
#include "base/utf8.hpp"

namespace berth::fuzz {

inline std::string_view text_of(const unsigned char* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// What is refused is refused as wrong, in words that can be shown.
inline void check_error(const Error& error) {
  BERTH_ASSERT(error.code == ErrorCode::invalid || error.code == ErrorCode::corrupt);
  BERTH_ASSERT(error.message.size() > 5);
  BERTH_ASSERT(error.message.size() < 4096);
}

}  // namespace berth::fuzz
