#include "dialects/unused_options.hpp"

#include <array>
#include <string_view>

#include <fmt/format.h>

namespace berth {

void refuse_unused_options(const DialectOptions& options, Dialect dialect,
                           Diagnostics& diagnostics) {
  struct Option {
    std::string_view name;
    Dialect of;
    bool given;
  };
  const std::array all = {
      Option{"--mode", Dialect::commands, options.cards != DialectOptions::Cards::by_file_name},
      Option{"--config-file", Dialect::commands, !options.config_file.empty()},
      Option{"--config-index", Dialect::commands, options.config_index != 0},
      Option{"--template", Dialect::fedwhat, !options.command_template.empty()},
      Option{"--seed-in-config", Dialect::fedwhat, options.seed_in_config},
      Option{"arguments behind '--'", Dialect::script, !options.arguments.empty()},
  };
  for (const Option& option : all) {
    if (option.given && option.of != dialect) {
      diagnostics.add({}, fmt::format("{}: only for files of the dialect '{}', and this is '{}'; "
                                      "--dialect says otherwise",
                                      option.name, to_string(option.of), to_string(dialect)));
    }
  }
}

}  // namespace berth
