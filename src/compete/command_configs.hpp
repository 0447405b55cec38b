#pragma once
// Command files by their numbers, in one directory. Blocks as long as the disk pleases.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "compete/places.hpp"

namespace berth::compete {

struct ConfigFile {
  std::uint32_t index = 0;
  std::string path;
  std::string file_name;
  bool exists = false;

  friend bool operator==(const ConfigFile&, const ConfigFile&) = default;
};

class CommandConfigs {
 public:
  CommandConfigs(Places places, Cards mode) : places_(std::move(places)), mode_(mode) {}

  [[nodiscard]] ConfigFile file(std::uint32_t index) const;
  /// By number. The first one is told of even if it is not there: somebody may want to write it.
  [[nodiscard]] Result<std::vector<ConfigFile>> list() const;
  /// None: there is no such file.
  [[nodiscard]] Result<std::optional<std::string>> read(std::uint32_t index) const;
  /// not_found where there is none.
  [[nodiscard]] Result<std::string> must_read(std::uint32_t index) const;
  /// Replaces it, or makes it; what was there is kept beside it, as "….backup". With `version`,
  /// only if the file is still of that version: conflict if it is not.
  [[nodiscard]] Status write(std::uint32_t index, std::string_view text,
                             const std::optional<std::string>& version) const;
  /// A file under the lowest number that is free.
  [[nodiscard]] Result<ConfigFile> create() const;
  /// The first one stays; the others keep their numbers.
  [[nodiscard]] Status remove(std::uint32_t index) const;

 private:
  [[nodiscard]] Status make_directory() const;

  Places places_;
  Cards mode_;
};

/// Changes with the text; of no file: that of an empty text.
[[nodiscard]] std::string version_of(std::string_view text);

}  // namespace berth::compete
