#include "cli/define.hpp"

#include <memory>

#include "base/units.hpp"
#include "cli/last_job.hpp"

namespace berth::cli {

namespace {

constexpr std::size_t kHelpWidth = 80;
constexpr std::size_t kCommandColumn = 14;
constexpr std::size_t kOptionColumn = 26;

/// "  name      text", the text in lines that fit, below the name where that is long.
std::string entry(const std::string& name, const std::string& text, std::size_t column) {
  std::string out = "  " + name;
  if (out.size() + 1 > column) {
    out += "\n" + std::string(column, ' ');
  } else {
    out += std::string(column - out.size(), ' ');
  }
  return out + wrapped(text, kHelpWidth, column) + "\n";
}

}  // namespace

HelpFormatter::HelpFormatter() {
  label("SUBCOMMAND", "COMMAND");
}

std::string HelpFormatter::make_subcommand(const CLI::App* sub) const {
  return entry(sub->get_name(), sub->get_description(), kCommandColumn);
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool positional) const {
  return entry(make_option_name(option, positional) + make_option_opts(option),
               make_option_desc(option), kOptionColumn);
}

CLI::App* command(CLI::App& app, const std::string& name, const std::string& help,
                  const std::string& examples) {
  CLI::App* sub = app.add_subcommand(name, help);
  sub->footer("Examples:\n" + examples);
  return sub;
}

CLI::Option* option(CLI::App& app, const std::string& name, const std::string& type,
                    const std::string& help, const std::function<void(const std::string&)>& set) {
  return app.add_option_function<std::string>(name, set, help)->type_name(type)->take_last();
}

CLI::Option* list_option(CLI::App& app, const std::string& name, const std::string& type,
                         const std::string& help, std::function<void(const std::string&)> add) {
  return app
      .add_option_function<std::vector<std::string>>(
          name,
          [add = std::move(add)](const std::vector<std::string>& values) {
            for (const std::string& value : values) {
              add(value);
            }
          },
          help)
      ->type_name(type)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

void json_flag(CLI::App& app, bool& json) {
  app.add_flag("--json", json, "print JSON");
}

void color_option(CLI::App& app) {
  option(app, "--color", "auto|always|never",
         "colours; auto: on a terminal, unless NO_COLOR is set", [](const auto& t) {
           if (t == "auto") {
             display().color = Color::automatic;
           } else if (t == "always") {
             display().color = Color::always;
           } else if (t == "never") {
             display().color = Color::never;
           } else {
             throw CLI::ValidationError(
                 "--color", fmt::format("'{}' is not auto, always or never", printable(t)));
           }
         });
}

void pager_flag(CLI::App& app) {
  app.add_flag_callback(
      "--no-pager", [] { display().pager = false; },
      "print long output at once, not through BERTH_PAGER, PAGER or less");
}

void watch_option(CLI::App& app, std::optional<Millis>& every) {
  constexpr Millis kUsual{2'000};
  const auto text = std::make_shared<std::string>();
  app.add_flag("--watch", *text,
               "show it again and again, every 2 seconds or as --watch=5 says; q ends")
      ->each([text, &every, kUsual](const std::string& value) {
        every = value == "true" ? kUsual : checked("--watch", parse_duration(value));
        if (*every < Millis(100)) {
          throw CLI::ValidationError("--watch", "at most ten times a second");
        }
      });
}

void ids_argument(CLI::App& app, std::vector<std::string>& words, const std::string& help) {
  app.add_option("IDS", words, help)->type_name("");
}

IdSet ids_of(const std::vector<std::string>& words) {
  return checked("IDS", parse_ids(fmt::format("{}", fmt::join(words, ","))));
}

std::uint64_t id_of(const std::string& word) {
  const IdSet ids = checked("ID", parse_ids(word));
  if (ids.size() != 1) {
    throw CLI::ValidationError("ID", "give one id");
  }
  return ids.ranges().front().first;
}

}  // namespace berth::cli
