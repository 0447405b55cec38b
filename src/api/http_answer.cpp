#include "api/http_answer.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

#include "api/wire.hpp"

namespace berth {
namespace {

constexpr std::size_t kWorthCompressing = 1024;
constexpr std::size_t kCompressHere = 4 * 1024;
constexpr std::size_t kTagHere = 128 * 1024;
constexpr std::size_t kTagBytes = 12;
constexpr int kLevel = 1;             // most of the gain for a third of the time
constexpr int kGzipWindow = 15 + 16;  // zlib's way to say: with the header of gzip
constexpr int kMemoryLevel = 8;
constexpr std::string_view kBlanks = " \t";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// Calls `visit` with every part of a comma-separated list, until it returns true.
template <class Visit>
bool any_of_list(std::string_view list, Visit visit) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    if (visit(trimmed(list.substr(0, comma)))) {
      return true;
    }
    list = comma == std::string_view::npos ? "" : list.substr(comma + 1);
  }
  return false;
}

bool accepts_gzip(std::string_view list) {
  return any_of_list(list, [](std::string_view coding) {
    const auto semicolon = coding.find(';');
    if (trimmed(coding.substr(0, semicolon)) != "gzip") {
      return false;
    }
    const std::string_view weight =
        semicolon == std::string_view::npos ? "" : trimmed(coding.substr(semicolon + 1));
    return weight.find_first_not_of("q=0. ") != std::string_view::npos || weight.empty();
  });
}

bool is_text(std::string_view type) {
  type = type.substr(0, type.find(';'));
  return (type.starts_with("text/") && type != "text/event-stream") || type == "application/json" ||
         type == "application/javascript" || type == "image/svg+xml";
}

void take_header(HttpResponse& response, std::string_view name) {
  std::erase_if(response.headers,
                [&](const auto& header) { return lower_case(header.first) == name; });
}

const std::string* find_header(const HttpResponse& response, std::string_view name) {
  const auto at = std::ranges::find_if(
      response.headers, [&](const auto& header) { return lower_case(header.first) == name; });
  return at == response.headers.end() ? nullptr : &at->second;
}

bool wants_tag(const HttpResponse& response, const AnswerWishes& wishes) {
  return wishes.get && response.status == 200 && !response.stream && !response.body.empty();
}

bool wants_compression(const HttpResponse& response, const AnswerWishes& wishes) {
  return wishes.gzip && response.status == 200 && !response.stream &&
         response.body.size() >= kWorthCompressing && is_text(response.content_type) &&
         find_header(response, "content-encoding") == nullptr;
}

/// Weak: the same content compressed and plain has the same tag.
std::string tag_of(std::string_view body) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  EVP_Digest(body.data(), body.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  std::string tag = "W/\"";
  for (const unsigned char byte : std::span(digest).first(kTagBytes)) {
    tag += fmt::format("{:02x}", byte);
  }
  return tag + '"';
}

std::string_view without_weakness(std::string_view tag) {
  return tag.starts_with("W/") ? tag.substr(2) : tag;
}

/// That of the same content compressed. A strong tag stands for these very bytes, so that parts
/// of one form are never put together with parts of the other.
std::string packed_tag(const std::string& tag) {
  return tag.starts_with("W/") || !tag.ends_with('"') ? tag
                                                      : tag.substr(0, tag.size() - 1) + "-gzip\"";
}

}  // namespace

bool is_known_tag(std::string_view if_none_match, std::string_view tag) {
  return any_of_list(if_none_match, [&](std::string_view known) {
    return known == "*" || without_weakness(known) == without_weakness(tag);
  });
}

AnswerWishes wishes_of(const HttpRequest& request) {
  AnswerWishes wishes;
  wishes.head = request.method == "HEAD";
  wishes.get = wishes.head || request.method == "GET";
  if (const auto at = request.headers.find("accept-encoding"); at != request.headers.end()) {
    wishes.gzip = accepts_gzip(at->second);
  }
  if (const auto at = request.headers.find("if-none-match"); at != request.headers.end()) {
    wishes.if_none_match = at->second;
  }
  return wishes;
}

bool is_heavy(const HttpResponse& response, const AnswerWishes& wishes) {
  return (wants_compression(response, wishes) && response.body.size() > kCompressHere) ||
         (wants_tag(response, wishes) && response.body.size() > kTagHere);
}

void pack(HttpResponse& response, const AnswerWishes& wishes) {
  const bool compress = wants_compression(response, wishes);
  if (wants_tag(response, wishes)) {
    const std::string* own = find_header(response, "etag");
    std::string tag = own != nullptr ? *own : tag_of(response.body);
    if (compress) {
      tag = packed_tag(tag);
      take_header(response, "accept-ranges");  // parts are given of the plain text alone
    }
    take_header(response, "etag");
    response.headers.emplace_back("ETag", tag);
    if (find_header(response, "cache-control") == nullptr) {
      response.headers.emplace_back("Cache-Control", "private, no-cache");
    }
    if (is_known_tag(wishes.if_none_match, tag)) {
      response.status = 304;
      response.body.clear();
      take_header(response, "content-encoding");
      return;
    }
  }
  if (compress) {
    response.body = gzip(response.body);
    response.headers.emplace_back("Content-Encoding", "gzip");
    response.headers.emplace_back("Vary", "Accept-Encoding");
  }
}

std::string gzip(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw std::bad_alloc();  // the one way in which it can fail
  }
  std::string out(deflateBound(&stream, text.size()), '\0');
  std::string in(text);                                  // zlib wants it writable
  stream.next_in = reinterpret_cast<Bytef*>(in.data());  // NOLINT: its own type for bytes
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());  // NOLINT
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

HttpResponse plain_error(int status, std::string_view message) {
  HttpResponse response;
  response.status = status;
  response.body = encode_error({status == 503   ? ErrorCode::unavailable
                                : status == 429 ? ErrorCode::busy
                                : status == 404 ? ErrorCode::not_found
                                : status >= 500 ? ErrorCode::io
                                                : ErrorCode::invalid,
                                std::string(message)});
  if (status == 429) {
    response.headers.emplace_back("Retry-After", "1");
  }
  return response;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

}  // namespace berth
