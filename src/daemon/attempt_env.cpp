#include "daemon/attempt_env.hpp"

#include <map>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

}  // namespace

Environment attempt_environment(const Payload& payload, const effect::Start& start,
                                const InstanceFacts& facts) {
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
  variables.set("PWD", payload.cwd);
  variables.set("CUDA_VISIBLE_DEVICES", uuids);
  variables.set("NVIDIA_VISIBLE_DEVICES", start.gpus.empty() ? "none" : uuids);
  variables.set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  variables.set("BERTH_DIR", facts.dir);
  variables.set("BERTH_BIN_DIR", facts.bin_dir);
  variables.set("BERTH_JOB_ID", fmt::format("{}", start.job.value));
  variables.set("BERTH_ATTEMPT_NUMBER", fmt::format("{}", start.number));
  variables.set("BERTH_GPU_INDICES", fmt::format("{}", fmt::join(start.gpu_indices, ",")));
  variables.set("BERTH_GPU_COUNT", fmt::format("{}", start.gpus.size()));
  variables.set("BERTH_ATTEMPT", attempt_marker(facts.id, start.attempt));
  return std::move(variables).take();
}

std::string own_log_path(const std::string& logs, JobId job, std::uint32_t number) {
  return fmt::format("{}/{}/{}.{}.log", logs, job.value / 1000, job.value, number);
}

}  // namespace berth
