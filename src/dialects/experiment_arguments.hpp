#pragma once
// `extra_args` of a FedWhat job: options of its command, in the order of the file.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "jobspec/yaml_tree.hpp"

namespace berth {

struct ExtraArgument {
  enum class Kind : std::uint8_t {
    value,  ///< --key value
    list,   ///< --key one two
    flag,   ///< --key
    off,    ///< false: not given
  };
  std::string key;
  Position at;
  Kind kind = Kind::value;
  std::vector<std::string> values;
  bool in_config = false;  ///< not an option: the config has it

  /// For people, and for a placeholder: "0.1", "1 2 3", "true", "false".
  [[nodiscard]] std::string text() const;
};

class ExtraArguments {
 public:
  [[nodiscard]] static ExtraArguments read(const Node& node, Diagnostics& diagnostics);

  [[nodiscard]] const ExtraArgument* find(std::string_view key) const;
  void put_into_config(std::string_view key);
  /// As words of a command, without those in `without` and those in the config.
  [[nodiscard]] std::vector<std::string> words(
      const std::set<std::string, std::less<>>& without) const;
  [[nodiscard]] std::map<std::string, std::string> texts() const;

 private:
  std::vector<ExtraArgument> arguments_;
};

/// The names of all `{word}` in a command.
[[nodiscard]] std::set<std::string, std::less<>> placeholders_of(std::string_view command);

}  // namespace berth
