#pragma once
// The pages of the console, which are part of the program: no file is opened to serve them.

#include <span>
#include <string_view>

#include "api/http.hpp"

namespace berth {

/// One file of web/dist as it was when this was built.
struct ConsoleFile {
  std::string_view path;  ///< within web/dist: "assets/index-1a2b.js"
  std::string_view plain;
  std::string_view gzip;  ///< the same compressed; empty: it would not get smaller
  std::string_view tag;   ///< changes with the content
};

/// None if the console had not been built. Made by CMake.
[[nodiscard]] std::span<const ConsoleFile> console_files();

/// The answer to a request for a path that is_console_path() knows. Paths of pages, which have no
/// dot, get the one page that there is.
[[nodiscard]] HttpResponse console_answer(const HttpRequest& request,
                                          std::span<const ConsoleFile> files);

}  // namespace berth
