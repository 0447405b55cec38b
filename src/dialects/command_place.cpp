#include "dialects/command_place.hpp"

#include <array>
#include <span>
#include <string_view>

#include "dialects/command_config.hpp"

namespace berth {
namespace {

namespace fs = std::filesystem;
using Cards = DialectOptions::Cards;

constexpr std::array<std::string_view, 3> kConfigs = {"config.yaml", "gpu_manage.yaml",
                                                      "config/gpu_manage.yaml"};
constexpr std::array<std::string_view, 3> kSingle = {"command.txt", "command_gpu.txt",
                                                     "command/command_gpu.txt"};
constexpr std::array<std::string_view, 2> kMulti = {"command_gpus.txt", "command/command_gpus.txt"};

bool names_commands(const std::string& text, Cards cards) {
  Diagnostics ignored("");
  const CommandConfig config = read_command_config(text, ignored);
  return (cards == Cards::multi ? config.gpus_command_file : config.gpu_command_file).has_value();
}

std::span<const std::string_view> names_of(Cards cards) {
  return cards == Cards::multi ? std::span<const std::string_view>(kMulti)
                               : std::span<const std::string_view>(kSingle);
}

}  // namespace

std::optional<fs::path> usual_command_file(const fs::path& directory, const DialectOptions& options,
                                           const ReadFile& read) {
  if (options.cards == Cards::by_file_name) {
    return std::nullopt;
  }
  for (const std::string_view name : kConfigs) {
    const auto text = read(directory / name);
    if (text && names_commands(*text, options.cards)) {
      return directory / name;
    }
  }
  return command_file_in(directory, options.cards, options.config_index, read);
}

std::optional<fs::path> command_file_in(const fs::path& directory, Cards cards, std::uint32_t index,
                                        const ReadFile& read) {
  for (const std::string_view name : names_of(cards)) {
    fs::path path = with_index(directory / name, index);
    if (read(path)) {
      return path;
    }
  }
  return std::nullopt;
}

std::string usual_names(Cards cards, std::uint32_t index) {
  std::string out;
  const auto names = names_of(cards);
  for (std::size_t i = 0; i < names.size(); ++i) {
    out += i == 0 ? "" : i + 1 < names.size() ? ", " : " and ";
    out += with_index(names[i], index).native();
  }
  return out;
}

}  // namespace berth
