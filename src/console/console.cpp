#include "console/console.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "access/gate.hpp"
#include "api/http_answer.hpp"

namespace berth {
namespace {

constexpr std::string_view kFolder = "/ui";
constexpr std::string_view kIndex = "index.html";
constexpr std::string_view kFirstPage = "/ui/gpu";
/// Names there change with the content.
constexpr std::string_view kHashedNames = "assets/";

constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kTypes{{
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".json", "application/json"},
    {".webmanifest", "application/manifest+json"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".jpg", "image/jpeg"},
    {".webp", "image/webp"},
    {".ico", "image/x-icon"},
    {".woff2", "font/woff2"},
    {".txt", "text/plain; charset=utf-8"},
    {".wasm", "application/wasm"},
}};

std::string_view type_of(std::string_view path) {
  for (const auto& [ending, type] : kTypes) {
    if (path.ends_with(ending)) {
      return type;
    }
  }
  return "application/octet-stream";
}

const ConsoleFile* find_file(std::span<const ConsoleFile> files, std::string_view path) {
  const auto at = std::ranges::find(files, path, &ConsoleFile::path);
  return at == files.end() ? nullptr : &*at;
}

/// The path within web/dist that is meant.
std::string_view wanted(std::string_view path) {
  if (!path.starts_with(kFolder)) {
    return path.substr(1);  // the icon that browsers look for by themselves
  }
  // Such a path could lead nowhere else, for files are found by their whole names; but whoever
  // tries it is not looking for a page.
  const bool strays =
      path.find("..") != std::string_view::npos || path.find("//") != std::string_view::npos;
  path.remove_prefix(std::min(path.size(), kFolder.size() + 1));
  const bool is_page =
      !strays && path.substr(path.rfind('/') + 1).find('.') == std::string_view::npos;
  return is_page ? kIndex : path;
}

HttpResponse absent(const std::string& path, bool built) {
  HttpResponse response = plain_error(404, "nothing at " + path);
  if (!built) {
    response.content_type = "text/plain; charset=utf-8";
    response.body =
        "This berthd has been built without its console: web/dist was not there.\n"
        "Build the console in web/ and then berthd again. The API at /api is there all the same.\n";
  }
  return response;
}

}  // namespace

HttpResponse console_answer(const HttpRequest& request, std::span<const ConsoleFile> files) {
  if (request.method != "GET" && request.method != "HEAD") {
    HttpResponse response = plain_error(405, "there is only something to GET here");
    response.headers.emplace_back("Allow", "GET, HEAD");
    return response;
  }
  if (request.path == "/") {
    HttpResponse response;
    response.status = 303;
    response.headers.emplace_back("Location", kFirstPage);
    return response;
  }
  const std::string_view path = wanted(request.path);
  const ConsoleFile* file = find_file(files, path);
  if (file == nullptr) {
    return absent(request.path, !files.empty());
  }
  HttpResponse response;
  response.content_type = type_of(path);
  response.headers.emplace_back("ETag", std::string("W/\"") + std::string(file->tag) + '"');
  response.headers.emplace_back("Cache-Control", path.starts_with(kHashedNames)
                                                     ? "public, max-age=31536000, immutable"
                                                     : "no-cache");
  response.headers.emplace_back("Content-Security-Policy", console_policy());
  response.headers.emplace_back("Vary", "Accept-Encoding");
  const bool compressed = wishes_of(request).gzip && !file->gzip.empty();
  if (compressed) {
    response.headers.emplace_back("Content-Encoding", "gzip");
  }
  response.body = compressed ? file->gzip : file->plain;
  return response;
}

}  // namespace berth
