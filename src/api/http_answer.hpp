#pragma once
// What becomes of an answer on its way out: a tag that tells versions of it apart, nothing at all
// if the client has this version already, and compression. Pure but for the processor time it
// takes.

#include <string>
#include <string_view>

#include "api/http.hpp"

namespace berth {

/// What of a request matters for the form of its answer.
struct AnswerWishes {
  bool get = false;
  bool head = false;  ///< of a GET all but the body
  bool gzip = false;
  std::string if_none_match;
};

[[nodiscard]] AnswerWishes wishes_of(const HttpRequest& request);

/// Whether pack() would take long enough to be noticed by others.
[[nodiscard]] bool is_heavy(const HttpResponse& response, const AnswerWishes& wishes);

/// Tags the answer to a GET, makes 304 of one that the client has, and compresses the rest if that
/// is wanted and worth it. An answer that names its own Content-Encoding keeps it, and so it does
/// its own ETag, but a strong one is told apart once it is compressed.
void pack(HttpResponse& response, const AnswerWishes& wishes);

/// Whether `If-None-Match` names this tag, or any.
[[nodiscard]] bool is_known_tag(std::string_view if_none_match, std::string_view tag);

/// Deflated, with the header and trailer of gzip.
[[nodiscard]] std::string gzip(std::string_view text);

/// An error of this layer.
[[nodiscard]] HttpResponse plain_error(int status, std::string_view message);

[[nodiscard]] std::string lower_case(std::string_view text);

}  // namespace berth
