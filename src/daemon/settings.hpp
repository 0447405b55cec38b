#pragma once
// berth.yaml in the instance's directory: the rules that hold from the start of a daemon.
//
//     max_concurrent: 4
//     resources:
//       licence: 2
//     queue.car.limit: 1
//
// A key may be written with dots or as a map within a map.

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace berth {

struct Settings {
  std::vector<std::pair<std::string, std::string>> values;  ///< good ones, in order of the file
  std::vector<std::string> problems;  ///< "berth.yaml:3: …"; what they are about is ignored
};

[[nodiscard]] Settings parse_settings(std::string_view text);
/// A file that is not there sets nothing.
[[nodiscard]] Settings read_settings(const std::string& path);

/// The text with some values changed or added: the line of a key is edited in place, a new one
/// comes to the end, and all else stays as it is. Refuses a text that cannot be read.
[[nodiscard]] Result<std::string> edit_settings(
    std::string text, const std::vector<std::pair<std::string, std::string>>& values);
/// The same with the file, which is replaced as a whole or not at all. May block.
[[nodiscard]] Status save_settings(const std::string& path,
                                   const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace berth
