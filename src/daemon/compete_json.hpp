#pragma once
// Command files, log bindings and settings as JSON. Values in, texts out.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/http.hpp"
#include "base/result.hpp"
#include "compete/command_configs.hpp"
#include "compete/command_tree.hpp"
#include "compete/control_setting.hpp"
#include "compete/log_bindings.hpp"
#include "compete/log_text.hpp"
#include "daemon/batch_report.hpp"

namespace berth {

/// A command file and its text; none: it is not there.
struct ConfigText {
  compete::ConfigFile file;
  std::optional<std::string> text;
  std::string trouble = {};  ///< why it cannot be read
};

[[nodiscard]] std::string encode_configs(compete::Cards mode,
                                         const std::vector<compete::ConfigFile>& files);
[[nodiscard]] std::string encode_all(compete::Cards mode, const std::vector<ConfigText>& configs);
/// With the text itself only if somebody wants it: what is told without can be sent back as it is.
[[nodiscard]] std::string encode_config(compete::Cards mode, const ConfigText& config,
                                        bool with_text);
[[nodiscard]] std::string encode_created(const compete::ConfigFile& file);

/// What somebody wants a command file to hold.
struct ConfigEdit {
  std::optional<std::string> text;
  std::vector<compete::CommandQueue> queues;  ///< without `text`
  std::optional<std::string> version;         ///< the file must be of this version still
};
[[nodiscard]] Result<ConfigEdit> decode_config(std::string_view body, compete::Cards mode,
                                               std::uint32_t index);

/// 422 with what is wrong and where; line 0: no place of it.
[[nodiscard]] HttpResponse mistakes_response(const compete::ConfigFile& file,
                                             const std::vector<Diagnostic>& mistakes);

[[nodiscard]] std::string encode_bindings(
    const std::map<std::string, compete::LogBinding>& bindings);
[[nodiscard]] std::string encode_bound(const compete::LogBinding& binding);
[[nodiscard]] std::string encode_log(const std::string& path, const compete::LogText& log);

[[nodiscard]] std::string encode_settings(const compete::ControlSetting& setting,
                                          const std::string& file);
[[nodiscard]] Result<std::map<std::string, std::string>> decode_settings(std::string_view body);
/// The answer to a change: which of them do nothing here. `missing`: the configuration they name is
/// not there; empty: it is.
[[nodiscard]] std::string encode_saved_settings(const std::map<std::string, std::string>& values,
                                                const std::string& missing);

/// What became of a start.
struct StartedConfig {
  BatchTraits traits;
  std::uint64_t batch = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::vector<std::string> warnings;
};
[[nodiscard]] std::string encode_started(const StartedConfig& started);

/// What became of a stop.
struct StoppedConfig {
  std::uint64_t pid = 0;
  std::uint64_t batch = 0;
  std::vector<std::uint64_t> cancelled;
  std::vector<std::uint64_t> killed;
  std::vector<std::uint64_t> running;
};
[[nodiscard]] std::string encode_stopped(const StoppedConfig& stopped);

/// As state/{pid}.json, with "running" and "stopped" added.
[[nodiscard]] std::string encode_state(const BatchReport& batch, Millis wall);
/// Of a command file that nothing has been started from.
[[nodiscard]] std::string encode_idle(compete::Cards mode, const compete::ConfigFile& file,
                                      Millis wall);

}  // namespace berth
