// Command files that are started and looked at: a scheduler of compete_gpu_retry is a batch here.

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "api/wire.hpp"
#include "compete/command_configs.hpp"
#include "compete/control_setting.hpp"
#include "core/apply.hpp"
#include "daemon/answers.hpp"
#include "daemon/compete_api.hpp"
#include "daemon/compete_json.hpp"
#include "engine/part_submission.hpp"
#include "submit/environment.hpp"
#include "submit/job_source.hpp"
#include "submit/submission.hpp"

namespace berth {
namespace {

using compete::Cards;
using compete::Places;

/// The tasks of a command file, or what is wrong with it.
Parsed parse_config(const Places& places, const compete::ConfigFile& file, Cards mode,
                    const std::string& text, const std::string& config_file) {
  DialectOptions options;
  options.dialect = Dialect::commands;
  options.cards = mode;
  options.config_index = file.index;
  options.config_file = config_file;
  const Source source =
      job_source(text, {file.path, places.command_dir, places.command_dir, read_clock().wall},
                 read_regular_file);
  return parse_file(source, options);
}

}  // namespace

/// A submission, all but its number; or the answer that there is none.
struct CompeteApi::Prepared {
  event::Submit submit;
  std::vector<std::string> warnings;
  std::optional<HttpResponse> refusal;
};

void CompeteApi::start(Cards mode, const HttpRequest& request, Respond respond) {
  const auto query = CompeteQuery::read(request, {"config_index"});
  const auto index = query ? query->config_index() : std::unexpected(query.error());
  if (!index) {
    respond(error_response(index.error()));
    return;
  }
  const std::string file = places().config(mode, *index).native();
  if (!starting_.insert(file).second) {
    respond(error_response({ErrorCode::conflict, fmt::format("'{}' is being started", file)}));
    return;
  }
  // Until it is in the store, where the next one who asks finds it.
  const auto done = [this, file, respond = std::move(respond)](HttpResponse response) {
    starting_.erase(file);
    respond(std::move(response));
  };
  on_files([this, places = places(), mode, index = *index,
            live = live_batches()] { return prepare(places, mode, index, live); },
           [this, done](Result<Prepared> prepared) {
             if (!prepared) {
               done(error_response(prepared.error()));
             } else if (prepared->refusal) {
               done(*prepared->refusal);
             } else {
               submit(std::move(*prepared), done);
             }
           });
}

Result<CompeteApi::Prepared> CompeteApi::prepare(const Places& places, Cards mode,
                                                 std::uint32_t index, std::vector<BatchId> live) {
  const compete::CommandConfigs configs(places, mode);
  const compete::ConfigFile file = configs.file(index);
  TRY_ASSIGN(const std::string text, configs.must_read(index));
  TRY_ASSIGN(const auto batches, command_batches(reader_, std::move(live)));
  for (const FoundBatch& batch : batches) {
    if (batch.traits.config_file == file.path && !batch.stopped()) {
      return fail(ErrorCode::conflict,
                  fmt::format("configuration {} runs already, as {} (batch {}); stop it first",
                              index, batch.traits.pid, batch.id.value));
    }
  }
  const std::string setting_file = places.control_setting();
  TRY_ASSIGN(const auto setting, compete::read_control_setting(setting_file));
  Prepared prepared;
  if (const std::string missing = compete::missing_target(setting, setting_file);
      !missing.empty()) {
    prepared.refusal = mistakes_response(
        file,
        {{setting_file, {0, 0}, fmt::format("target-yaml-path: there is no file '{}'", missing)}});
    return prepared;
  }
  Parsed parsed =
      parse_config(places, file, mode, text, compete::target_yaml(setting, setting_file));
  if (!parsed) {
    prepared.refusal = mistakes_response(file, parsed.error());
    return prepared;
  }
  parsed->traits.log = fmt::format("scheduler_{}_{}.log", compete::to_string(mode), index);
  prepared.warnings = std::move(parsed->warnings);
  TRY(write_derived(parsed->derived));
  prepare_state_directory(parsed->traits);
  prepared.submit = to_submission(std::move(*parsed), 0);
  TRY(complete_submission(prepared.submit, config_.dir));
  TRY(check_submission(prepared.submit.jobs));
  prepared.submit.owner = config_.owner;
  return prepared;
}

void CompeteApi::submit(Prepared prepared, std::function<void(HttpResponse)> done) {
  event::Submit& asked = prepared.submit;
  // Whatever is submitted now is the next batch, so this number is nobody else's.
  asked.traits.pid = kSchedulerPids + engine_.state().last_batch.value + 1;
  StartedConfig started;
  started.traits = asked.traits;
  started.warnings = std::move(prepared.warnings);
  Engine::Reply reply = [done = std::move(done), started = std::move(started)](
                            const Result<berth::Answer>& answer) mutable {
    if (!answer) {
      done(error_response(answer.error()));
      return;
    }
    const auto& submitted = std::get<Submitted>(*answer);
    started.batch = submitted.batch.value;
    started.first = submitted.first.value;
    started.last = submitted.first.value + submitted.count - 1;
    done(ok(encode_started(started)));
  };
  if (asked.jobs.size() <= kPartJobs) {
    engine_.handle(std::move(asked), std::move(reply));
  } else {
    submit_in_parts(
        engine_, std::move(asked), [this](Loop::Task task) { loop_.post(std::move(task)); },
        std::move(reply));
  }
}

void CompeteApi::state(Cards mode, const HttpRequest& request, Respond respond) {
  const auto query = CompeteQuery::read(request, {"config_index"});
  answer(
      [this, query, places = places(), mode, live = live_batches()]() -> Answer {
        TRY_ASSIGN(const CompeteQuery asked, query);
        TRY_ASSIGN(const std::uint32_t index, asked.config_index());
        const compete::ConfigFile file = compete::CommandConfigs(places, mode).file(index);
        TRY_ASSIGN(auto batches, command_batches(reader_, live));
        std::erase_if(batches, [&](const FoundBatch& batch) {
          return batch.traits.config_file != file.path;
        });
        std::optional<FoundBatch> found;
        if (!batches.empty()) {
          found = std::move(batches.front());
        } else {
          TRY_ASSIGN(found, last_batch_of(reader_, file.path));
        }
        const Millis wall = read_clock().wall;
        if (!found && !file.exists) {
          return fail(
              ErrorCode::not_found,
              fmt::format("there is no configuration {}: '{}' is not there, and nothing was "
                          "started from it",
                          index, file.path));
        }
        if (!found) {
          return ok(encode_idle(mode, file, wall));
        }
        TRY_ASSIGN(const BatchReport report, read_batch(reader_, found->id, found->traits));
        return ok(encode_state(report, wall));
      },
      std::move(respond));
}

void CompeteApi::running(const HttpRequest& request, Respond respond) {
  const auto query = CompeteQuery::read(request, {});
  answer(
      [this, query, live = live_batches()]() -> Answer {
        TRY_ASSIGN([[maybe_unused]] const CompeteQuery asked, query);
        TRY_ASSIGN(const auto batches, command_batches(reader_, live));
        const Millis wall = read_clock().wall;
        std::string body = R"({"schedulers":[)";
        for (const FoundBatch& batch : batches) {
          TRY_ASSIGN(const BatchReport report, read_batch(reader_, batch.id, batch.traits));
          body += body.ends_with('[') ? "" : ",";
          body += encode_state(report, wall);
        }
        return ok(body + "]}");
      },
      std::move(respond));
}

}  // namespace berth
