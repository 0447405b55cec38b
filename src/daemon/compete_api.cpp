#include "daemon/compete_api.hpp"

#include <utility>

#include <fmt/format.h>

#include "api/wire.hpp"
#include "compete/command_configs.hpp"
#include "compete/command_tree.hpp"
#include "compete/control_setting.hpp"
#include "compete/log_bindings.hpp"
#include "daemon/answers.hpp"
#include "daemon/compete_json.hpp"

namespace berth {
namespace {

using compete::Cards;
using compete::CommandConfigs;
using compete::Places;

/// Beyond this, requests are told to come back.
constexpr std::size_t kWaiting = 50;

Result<HttpResponse> list_configs(const Places& places, Cards mode) {
  TRY_ASSIGN(const auto files, CommandConfigs(places, mode).list());
  return ok(encode_configs(mode, files));
}

Result<HttpResponse> all_configs(const Places& places, Cards mode) {
  const CommandConfigs configs(places, mode);
  TRY_ASSIGN(const auto files, configs.list());
  std::vector<ConfigText> texts;
  for (const auto& file : files) {
    auto text = configs.read(file.index);
    texts.push_back(text ? ConfigText{file, std::move(*text)}
                         : ConfigText{file, std::nullopt, text.error().message});
  }
  return ok(encode_all(mode, texts));
}

Result<HttpResponse> new_config(const Places& places, Cards mode) {
  TRY_ASSIGN(const auto file, CommandConfigs(places, mode).create());
  return ok(encode_created(file));
}

/// The first one may be about to be written; of the others somebody has taken the number from
/// somewhere.
Result<ConfigText> read_config(const CommandConfigs& configs, std::uint32_t index) {
  if (index == 0) {
    TRY_ASSIGN(auto text, configs.read(index));
    return ConfigText{configs.file(index), std::move(text)};
  }
  TRY_ASSIGN(std::string text, configs.must_read(index));
  return ConfigText{configs.file(index), std::move(text)};
}

Result<HttpResponse> save_config(const Places& places, Cards mode, std::uint32_t index,
                                 const ConfigEdit& edit) {
  const CommandConfigs configs(places, mode);
  const compete::ConfigFile file = configs.file(index);
  std::string text;
  if (edit.text) {
    text = *edit.text;
  } else {
    TRY_ASSIGN(const auto old, configs.read(index));
    TRY_ASSIGN(text, compete::write_tree(edit.queues, mode, old.value_or(std::string())));
  }
  const auto tree = compete::read_tree(text, file.file_name, mode);
  if (!tree.mistakes.empty()) {
    return mistakes_response(file, tree.mistakes);
  }
  TRY(configs.write(index, text, edit.version));
  TRY_ASSIGN(const ConfigText saved, read_config(configs, index));
  return ok(encode_config(mode, saved, false));
}

}  // namespace

CompeteApi::CompeteApi(Loop& loop, Engine& engine, const SettingsWatch& settings,
                       StoreReader reader, CompeteConfig config,
                       std::function<void(const std::string&)> complain)
    : loop_(loop),
      engine_(engine),
      settings_(settings),
      config_(std::move(config)),
      reader_(std::move(reader)),
      complain_(std::move(complain)),
      stop_notes_(config_.dir + "/stops") {}

Places CompeteApi::places() const {
  const std::string& said = settings_.settings().command_dir;
  return compete::places_of(said.empty() ? compete::usual_command_dir(config_.home) : said);
}

std::vector<BatchId> CompeteApi::live_batches() const {
  std::vector<BatchId> ids;
  for (const auto& [id, batch] : engine_.state().batches) {
    ids.push_back(id);
  }
  return ids;
}

void CompeteApi::answer(std::function<Answer()> work, Respond respond) {
  on_files(std::move(work), [respond = std::move(respond)](const Answer& response) {
    respond(response ? *response : error_response(response.error()));
  });
}

void CompeteApi::handle(const RouteMatch& match, HttpRequest request, Respond respond) {
  if (files_.backlog() > kWaiting) {
    respond(error_response(
        {ErrorCode::busy, "too many requests wait for files; try again in a moment"}));
    return;
  }
  switch (match.route->id) {
    case RouteId::running_configs:
      return running(request, std::move(respond));
    case RouteId::stop_pid:
      return stop_pid(match, request, std::move(respond));
    case RouteId::bind_log:
      return bind_log(request, std::move(respond));
    case RouteId::unbind_log:
      return unbind_log(request, std::move(respond));
    case RouteId::log_bindings:
      return answer(
          [places = places()]() -> Answer {
            TRY_ASSIGN(const auto bindings, compete::LogBindings(places.log_bindings()).read());
            return ok(encode_bindings(bindings));
          },
          std::move(respond));
    case RouteId::bound_log:
      return bound_log(request, std::move(respond));
    case RouteId::read_log:
      return read_log(request, std::move(respond));
    case RouteId::console_settings:
      return settings(std::move(respond));
    case RouteId::set_console_settings:
      return set_settings(request, std::move(respond));
    default:
      return about_mode(match, std::move(request), std::move(respond));
  }
}

void CompeteApi::about_mode(const RouteMatch& match, HttpRequest request, Respond respond) {
  const auto mode = compete::mode_from(match.param("mode"));
  if (!mode) {
    respond(error_response(mode.error()));
    return;
  }
  switch (match.route->id) {
    case RouteId::list_configs:
      return answer([places = places(), mode = *mode] { return list_configs(places, mode); },
                    std::move(respond));
    case RouteId::all_configs:
      return answer([places = places(), mode = *mode] { return all_configs(places, mode); },
                    std::move(respond));
    case RouteId::new_config:
      return answer([places = places(), mode = *mode] { return new_config(places, mode); },
                    std::move(respond));
    case RouteId::show_config:
      return show_config(*mode, request, std::move(respond));
    case RouteId::write_config:
      return write_config(*mode, std::move(request), std::move(respond));
    case RouteId::delete_config:
      return delete_config(match, *mode, std::move(respond));
    case RouteId::start_config:
      return start(*mode, request, std::move(respond));
    case RouteId::stop_config:
      return stop(*mode, request, std::move(respond));
    default:
      return state(*mode, request, std::move(respond));
  }
}

void CompeteApi::show_config(Cards mode, const HttpRequest& request, Respond respond) {
  const auto query = CompeteQuery::read(request, {"config_index", "text"});
  answer(
      [query, places = places(), mode]() -> Answer {
        TRY_ASSIGN(const CompeteQuery asked, query);
        TRY_ASSIGN(const std::uint32_t index, asked.config_index());
        TRY_ASSIGN(const bool with_text, asked.flag("text"));
        TRY_ASSIGN(const ConfigText config, read_config(CommandConfigs(places, mode), index));
        return ok(encode_config(mode, config, with_text));
      },
      std::move(respond));
}

void CompeteApi::write_config(Cards mode, HttpRequest request, Respond respond) {
  answer(
      [request = std::move(request), places = places(), mode]() -> Answer {
        TRY_ASSIGN(const auto query, CompeteQuery::read(request, {"config_index"}));
        TRY_ASSIGN(const std::uint32_t index, query.config_index());
        TRY_ASSIGN(const ConfigEdit edit, decode_config(request.body, mode, index));
        return save_config(places, mode, index, edit);
      },
      std::move(respond));
}

void CompeteApi::delete_config(const RouteMatch& match, Cards mode, Respond respond) {
  const auto asked = compete::config_index_from(match.param("index"));
  answer(
      [asked, places = places(), mode]() -> Answer {
        TRY_ASSIGN(const std::uint32_t index, asked);
        const CommandConfigs configs(places, mode);
        TRY(configs.remove(index));
        // A file that gets this number later has processes of its own.
        TRY(compete::LogBindings(places.log_bindings()).unbind_config(mode, index));
        return ok(fmt::format(R"({{"success":true,"message":"deleted {}"}})",
                              configs.file(index).file_name));
      },
      std::move(respond));
}

void CompeteApi::settings(Respond respond) {
  answer(
      [file = places().control_setting()]() -> Answer {
        TRY_ASSIGN(const auto setting, compete::read_control_setting(file));
        return ok(encode_settings(setting, file));
      },
      std::move(respond));
}

void CompeteApi::set_settings(const HttpRequest& request, Respond respond) {
  answer(
      [file = places().control_setting(), values = decode_settings(request.body)]() -> Answer {
        TRY_ASSIGN(const auto wanted, values);
        TRY(compete::save_control_setting(file, wanted));
        TRY_ASSIGN(const auto setting, compete::read_control_setting(file));
        return ok(encode_saved_settings(wanted, compete::missing_target(setting, file)));
      },
      std::move(respond));
}

}  // namespace berth
