#pragma once
// berth.yaml in the instance's directory: rules that hold as long as the file says so, and
// where to listen.
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
#include "daemon/listen_settings.hpp"

namespace berth {

struct Settings {
  using Values = std::vector<std::pair<std::string, std::string>>;
  Values values;  ///< good ones, in order of the file
  ListenSettings listen;
  std::string command_dir;            ///< of command files by their numbers; empty: the usual one
  std::vector<std::string> problems;  ///< "berth.yaml:3: …"; what they are about is ignored

  friend bool operator==(const Settings&, const Settings&) = default;
};

[[nodiscard]] Settings parse_settings(std::string_view text);
/// A file that is not there sets nothing.
[[nodiscard]] Settings read_settings(const std::string& path);

/// The text with some values changed, added or taken away: the line of a key is edited in place, a
/// new one comes to the end, and all else stays as it is. Refuses a text that cannot be read.
[[nodiscard]] Result<std::string> edit_settings(std::string text, const Settings::Values& values,
                                                const std::vector<std::string>& unset = {});
/// The same with the file, which is replaced as a whole or not at all. May block.
[[nodiscard]] Status save_settings(const std::string& path, const Settings::Values& values,
                                   const std::vector<std::string>& unset = {});

}  // namespace berth
