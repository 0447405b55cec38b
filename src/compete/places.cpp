#include "compete/places.hpp"

#include <charconv>

#include <fmt/format.h>

#include "base/utf8.hpp"

namespace berth::compete {
namespace {

std::optional<std::uint32_t> plain_number(std::string_view text) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  const bool padded = text.size() > 1 && text.front() == '0';
  return error == std::errc() && at == end && !text.empty() && !padded ? std::optional(value)
                                                                       : std::nullopt;
}

std::string_view stem_of(Cards mode) {
  return mode == Cards::multi ? "command_gpus" : "command_gpu";
}

}  // namespace

Result<Cards> mode_from(std::string_view text) {
  if (text == "single") {
    return Cards::single;
  }
  if (text == "multi") {
    return Cards::multi;
  }
  return fail(ErrorCode::not_found,
              fmt::format("there is no mode '{}'; it is single or multi", printable(text)));
}

std::string_view to_string(Cards mode) {
  return mode == Cards::multi ? "multi" : "single";
}

Result<std::uint32_t> config_index_from(std::string_view text) {
  const auto index = plain_number(text);
  if (!index || *index > kMostConfigs) {
    return fail(ErrorCode::invalid, fmt::format("config_index: expected a number from 0 to {}, got "
                                                "'{}'",
                                                kMostConfigs, printable(text)));
  }
  return *index;
}

std::string config_file_name(Cards mode, std::uint32_t index) {
  return index == 0 ? fmt::format("{}.txt", stem_of(mode))
                    : fmt::format("{}_{}.txt", stem_of(mode), index);
}

std::optional<std::uint32_t> config_index_of(Cards mode, std::string_view file_name) {
  constexpr std::string_view kEnd = ".txt";
  const std::string_view stem = stem_of(mode);
  if (!file_name.starts_with(stem) || !file_name.ends_with(kEnd) ||
      file_name.size() < stem.size() + kEnd.size()) {
    return std::nullopt;
  }
  const std::string_view middle =
      file_name.substr(stem.size(), file_name.size() - stem.size() - kEnd.size());
  if (middle.empty()) {
    return 0;
  }
  const auto index = middle.front() == '_' ? plain_number(middle.substr(1)) : std::nullopt;
  return index && *index > 0 && *index <= kMostConfigs ? index : std::nullopt;
}

Places places_of(const std::string& command_dir) {
  std::filesystem::path dir = std::filesystem::path(command_dir).lexically_normal();
  if (!dir.has_filename() && dir.has_relative_path()) {
    dir = dir.parent_path();  // it was written with a slash at its end
  }
  return {dir, dir.filename() == "command" ? dir.parent_path() : dir};
}

std::string usual_command_dir(const std::string& home) {
  return (std::filesystem::path(home) / "berth" / "command").native();
}

Status check_command_dir(std::string_view text) {
  if (!text.starts_with('/') || text.find('\0') != std::string_view::npos) {
    return fail(ErrorCode::invalid,
                fmt::format("expected an absolute path, got '{}'", printable(text)));
  }
  return {};
}

}  // namespace berth::compete
