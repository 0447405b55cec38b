#include "daemon/attempt_env.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/paths.hpp"
#include "proc/survivors.hpp"

namespace berth {
namespace {

/// Variables in a stable order, the last assignment of a name winning.
class Variables {
 public:
  void set(std::string_view name, std::string value) {
    const auto [it, fresh] = index_.try_emplace(std::string(name), entries_.size());
    std::string entry = fmt::format("{}={}", name, value);
    if (fresh) {
      entries_.push_back(std::move(entry));
    } else {
      entries_[it->second] = std::move(entry);
    }
  }
  void add(const std::string& entry) {
    const auto equals = entry.find('=');
    if (equals != std::string::npos && equals != 0) {
      set(std::string_view(entry).substr(0, equals), entry.substr(equals + 1));
    }
  }
  [[nodiscard]] std::string get(const std::string& name) const {
    const auto it = index_.find(name);
    return it == index_.end() ? std::string{} : entries_[it->second].substr(name.size() + 1);
  }
  [[nodiscard]] Environment take() && { return std::move(entries_); }

 private:
  Environment entries_;
  std::map<std::string, std::size_t> index_;
};

/// Whether the job's own `env` has this variable.
bool sets(const Payload& payload, std::string_view name) {
  return std::ranges::any_of(payload.extra_env, [name](const std::string& entry) {
    return entry.starts_with(name) && entry.substr(name.size()).starts_with('=');
  });
}

/// UUIDs, which nothing can renumber; indices if the job asks for just these, as a file written for
/// another scheduler may. Slices of a card have no index.
std::string visible_devices(const Payload& payload, const effect::Start& start,
                            const std::string& uuids, const std::string& indices) {
  const bool slices = std::ranges::any_of(
      start.gpus, [](const std::string& uuid) { return uuid.starts_with("MIG-"); });
  const bool asked = std::ranges::find(payload.extra_env, "CUDA_VISIBLE_DEVICES=" + indices) !=
                     payload.extra_env.end();
  return asked && !slices ? indices : uuids;
}

void add_bash_env(Variables& variables, const std::string& bash_env) {
  if (bash_env.empty()) {
    return;
  }
  const std::string own = variables.get("BASH_ENV");
  if (!own.empty() && own != bash_env) {
    variables.set("BERTH_USER_BASH_ENV", own);
  }
  variables.set("BASH_ENV", bash_env);
}

}  // namespace

Environment attempt_environment(const Payload& payload, const effect::Start& start,
                                const InstanceFacts& facts, std::optional<std::uint16_t> port,
                                const std::string& state_file) {
  Variables variables;
  if (payload.environment) {
    for (const std::string& entry : *payload.environment) {
      variables.add(entry);
    }
  }
  for (const std::string& entry : payload.extra_env) {
    variables.add(entry);
  }
  for (const auto& [name, value] : facts.prepend) {
    const std::string old = variables.get(name);
    variables.set(name, old.empty() ? value : fmt::format("{}:{}", value, old));
  }
  for (const auto& [name, value] : facts.replace) {
    variables.set(name, value);
  }
  const std::string uuids = fmt::format("{}", fmt::join(start.gpus, ","));
  const std::string indices = fmt::format("{}", fmt::join(start.gpu_indices, ","));
  add_bash_env(variables, facts.bash_env);
  variables.set("PWD", payload.cwd);
  variables.set("CUDA_VISIBLE_DEVICES", visible_devices(payload, start, uuids, indices));
  variables.set("NVIDIA_VISIBLE_DEVICES", start.gpus.empty() ? "none" : uuids);
  variables.set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  variables.set("BERTH_DIR", facts.dir);
  variables.set("BERTH_BIN_DIR", facts.bin_dir);
  variables.set("BERTH_JOB_ID", fmt::format("{}", start.job.value));
  variables.set("BERTH_ATTEMPT_NUMBER", fmt::format("{}", start.number));
  variables.set("BERTH_GPU_INDICES", indices);
  variables.set("BERTH_GPU_COUNT", fmt::format("{}", start.gpus.size()));
  variables.set("BERTH_ATTEMPT", attempt_marker(facts.id, start.attempt));
  variables.set("BERTH_UNI_ID", attempt_marker(facts.id, start.attempt));
  if (start.batch) {
    variables.set("BERTH_BATCH_ID", fmt::format("{}", start.batch.value));
  }
  variables.set("BERTH_WORK_DIR", payload.work_dir.empty() ? payload.cwd : payload.work_dir);
  variables.set("BERTH_REPORT", report_path(facts.logs, start.job.value, start.number));
  if (!state_file.empty()) {
    variables.set("BERTH_STATE_FILE", state_file);
  }
  if (port) {
    variables.set("BERTH_PORT", fmt::format("{}", *port));
    if (!sets(payload, "MASTER_PORT")) {
      variables.set("MASTER_PORT", fmt::format("{}", *port));
    }
  }
  return std::move(variables).take();
}

LaunchFacts launch_facts(const effect::Start& start, const std::string& instance) {
  LaunchFacts facts;
  facts.job = start.job;
  facts.batch = start.batch;
  facts.uni_id = attempt_marker(instance, start.attempt);
  facts.gpus = start.gpus;
  facts.gpu_indices = start.gpu_indices;
  return facts;
}

std::string own_log_path(const std::string& logs, JobId job, std::uint32_t number) {
  return fmt::format("{}/{}/{}.{}.log", logs, job.value / 1000, job.value, number);
}

}  // namespace berth
