#pragma once
// log_bindings.json: which log file belongs to which process of which command file. Entries and
// keys that others wrote stay as they are.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "compete/places.hpp"

namespace berth::compete {

/// A process of a command file, by where it stands.
struct ProcessPlace {
  Cards mode = Cards::single;
  std::uint32_t config_index = 0;
  std::uint32_t queue_id = 0;
  std::uint32_t process_index = 0;  ///< in its queue, from 0

  /// "single_0_1_2"
  [[nodiscard]] std::string key() const;
  friend bool operator==(const ProcessPlace&, const ProcessPlace&) = default;
};

struct LogBinding {
  ProcessPlace place;
  std::string log_path;
  std::string bound_at;  ///< "2026-05-01T12:30:05"; what others wrote may look otherwise

  friend bool operator==(const LogBinding&, const LogBinding&) = default;
};

/// By key. Entries that are none are passed over. conflict: the text is no JSON object.
[[nodiscard]] Result<std::map<std::string, LogBinding>> parse_bindings(std::string_view text,
                                                                       const std::string& file);

/// The text with one binding put in, or taken out.
[[nodiscard]] Result<std::string> with_binding(std::string_view text, const LogBinding& binding,
                                               const std::string& file);
[[nodiscard]] Result<std::string> without_binding(std::string_view text, const std::string& key,
                                                  const std::string& file);

/// The file itself. Blocks as long as the disk pleases.
class LogBindings {
 public:
  explicit LogBindings(std::string file) : file_(std::move(file)) {}

  /// A file that is not there binds nothing.
  [[nodiscard]] Result<std::map<std::string, LogBinding>> read() const;
  [[nodiscard]] Status bind(const LogBinding& binding) const;
  /// Whether there was one.
  [[nodiscard]] Result<bool> unbind(const ProcessPlace& place) const;
  /// All of one command file, when it goes.
  [[nodiscard]] Status unbind_config(Cards mode, std::uint32_t index) const;

 private:
  std::string file_;
};

/// The moment as these files write it, by the local clock.
[[nodiscard]] std::string iso_time(Millis wall);

}  // namespace berth::compete
