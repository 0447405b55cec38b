#include "jobspec/launch_words.hpp"

#include <charconv>

#include <fmt/format.h>

#include "core/placeholders.hpp"
#include "jobspec/matrix.hpp"

namespace berth {
namespace {

bool is_replaced(std::string_view word) {
  return is_launch_placeholder(word) || word == kFirstId || places_back(word);
}

}  // namespace

std::string protect_launch_words(std::string_view text) {
  std::string out;
  std::size_t begin = 0;
  for (std::size_t at = 0; (at = text.find('{', at)) != std::string_view::npos; ++at) {
    const auto end = text.find_first_of("{}", at + 1);
    const bool replaced = end != std::string_view::npos && text[end] == '}' &&
                          is_replaced(text.substr(at + 1, end - at - 1)) &&
                          (at == 0 || text[at - 1] != '$');
    if (replaced) {
      out += text.substr(begin, at - begin);
      out += '{';
      out += text.substr(at, end + 1 - at);
      out += '}';
      begin = end + 1;
    }
  }
  out += text.substr(begin);
  return out;
}

void fill_first_id(std::vector<JobSpec>& jobs) {
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::string first;
    const auto fill = [&](std::string& text) {
      if (text.find(kFirstId) == std::string::npos) {
        return;
      }
      if (first.empty()) {
        first = i == 0 ? "{job_id}" : fmt::format("{{job_id~{}}}", i);
      }
      text = substitute(text, {{kFirstId, first}});
    };
    Payload& payload = jobs[i].payload;
    for (Command& command : payload.commands) {
      for (std::string& text : command.argv) {
        fill(text);
      }
    }
    for (std::string& entry : payload.extra_env) {
      fill(entry);
    }
    fill(payload.log);
  }
}

std::string hidden_word(std::string_view axis) {
  return is_replaced(axis)
             ? fmt::format(
                   "the axis '{0}' hides what '{{{0}}}' stands for when a job starts; give "
                   "it another name",
                   axis)
             : std::string();
}

std::optional<std::uint64_t> places_back(std::string_view word) {
  constexpr std::string_view kBefore = "job_id~";
  if (!word.starts_with(kBefore)) {
    return std::nullopt;
  }
  word.remove_prefix(kBefore.size());
  std::uint64_t count = 0;
  const auto* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, count);
  const bool good = !word.empty() && error == std::errc{} && stop == end;
  return good ? std::optional(count) : std::nullopt;
}

}  // namespace berth
