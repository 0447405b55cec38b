#pragma once
// control_setting.yaml: how the console of compete_gpu_retry is set. berth uses what fits it, shows
// the rest, and changes single values without touching anything else in the file.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::compete {

struct SettingDef {
  std::string_view key;
  std::string_view usual;    ///< what holds where the file says nothing
  std::string_view meaning;  ///< in berth
  bool used = false;         ///< berth does what it says; else it is kept for others
};
[[nodiscard]] std::span<const SettingDef> setting_definitions();

struct ControlSetting {
  std::map<std::string, std::string> values;  ///< of known keys
  bool secret = false;                        ///< the file has one; it is never told
};

/// conflict: the text is no YAML map; the error names the place.
[[nodiscard]] Result<ControlSetting> parse_control_setting(std::string_view text,
                                                           const std::string& file);

/// The text with some values changed or added; lines, order and comments stay. Unknown keys, the
/// secret and values that cannot be are refused.
[[nodiscard]] Result<std::string> edit_control_setting(
    std::string_view text, const std::map<std::string, std::string>& values,
    const std::string& file);

/// The same with the file, under its lock.
[[nodiscard]] Result<ControlSetting> read_control_setting(const std::string& file);
[[nodiscard]] Status save_control_setting(const std::string& file,
                                          const std::map<std::string, std::string>& values);

/// The configuration that command files are started with; empty: the one beside them, as where the
/// usual one is named and not there.
[[nodiscard]] std::string target_yaml(const ControlSetting& setting, const std::string& file);
/// The same if it is not there, so that nothing can be started; else empty.
[[nodiscard]] std::string missing_target(const ControlSetting& setting, const std::string& file);

}  // namespace berth::compete
