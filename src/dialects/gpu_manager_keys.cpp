#include "dialects/gpu_manager_keys.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string_view>

#include <fmt/format.h>

namespace berth {
namespace {

constexpr auto kTopKeys = std::to_array<std::string_view>(
    {"monitor_interval", "max_gpus_per_task", "auto_scale", "auto_manage", "program_template",
     "notification", "scaling", "logging", "min_reserved_gpus", "max_reserved_gpus",
     "max_total_gpus", "max_manual_gpus", "job_prefix", "managed_job_prefixes",
     "manual_allocation_enabled", "quick_allocation_timeout", "aggressive_mode",
     "parallel_submissions", "queue_waiting"});
constexpr auto kProgramKeys = std::to_array<std::string_view>({"command", "args", "env_vars"});
constexpr auto kScalingKeys = std::to_array<std::string_view>(
    {"enabled", "min_gpus", "max_gpus", "scale_up_threshold", "scale_down_threshold"});
constexpr auto kNotificationKeys =
    std::to_array<std::string_view>({"enabled", "email", "gpu_available_threshold"});
constexpr auto kFlags = std::to_array<std::string_view>(
    {"auto_scale", "auto_manage", "manual_allocation_enabled", "aggressive_mode"});

constexpr std::string_view kLeases =
    "comes with leases, which this version does not have; remove the key or set it to";

class KeyChecker {
 public:
  KeyChecker(const Node& root, Diagnostics& diagnostics, const ManagerWarn& warn)
      : root_(root), diagnostics_(diagnostics), warn_(warn) {}

  void check() {
    check_names(root_, "", kTopKeys);
    check_section("program_template", kProgramKeys);
    check_section("scaling", kScalingKeys);
    check_section("notification", kNotificationKeys);
    for (const std::string_view key : kFlags) {
      check_flag(root_.find(key), key);
    }
    check_refused();
    check_notification();
    check_scaling();
    check_settings();
    check_logging();
  }

 private:
  void check_names(const Node& map, std::string_view of, std::span<const std::string_view> keys) {
    for (const Node::Entry& entry : map.entries) {
      if (std::ranges::find(keys, entry.key) == keys.end()) {
        diagnostics_.add(entry.key_at, fmt::format("unknown key '{}{}'{}", of, entry.key,
                                                   key_hint(entry.key, keys)));
      }
    }
  }

  void check_section(std::string_view name, std::span<const std::string_view> keys) {
    const Node* section = root_.find(name);
    if (section != nullptr && section->kind != Node::Kind::map) {
      diagnostics_.add(section->at, fmt::format("'{}' must be an object, this is {}", name,
                                                describe(section->kind)));
    } else if (section != nullptr) {
      check_names(*section, fmt::format("{}.", name), keys);
      check_flag(section->find("enabled"), fmt::format("{}.enabled", name));
    }
  }

  void check_flag(const Node* node, std::string_view name) {
    if (node != nullptr && (node->quoted || (node->text != "true" && node->text != "false"))) {
      diagnostics_.add(node->at, fmt::format("'{}' must be true or false", name));
    }
  }

  static bool is(const Node* node, std::string_view text) {
    return node != nullptr && node->kind == Node::Kind::scalar && node->text == text;
  }

  void refuse(const Node& at, std::string_view message) {
    diagnostics_.add(at.at, std::string(message));
  }

  void check_refused() {
    if (const Node* node = root_.find("auto_manage"); is(node, "true")) {
      refuse(*node, fmt::format("auto_manage: keeping GPUs without a program {} false", kLeases));
    }
    if (const Node* node = root_.find("aggressive_mode"); is(node, "true")) {
      refuse(*node,
             fmt::format("aggressive_mode: taking GPUs before they are needed {} false", kLeases));
    }
    for (const std::string_view key : {"min_reserved_gpus", "max_reserved_gpus"}) {
      if (const Node* node = root_.find(key); node != nullptr && !is(node, "0")) {
        refuse(*node, fmt::format("{}: keeping GPUs in reserve {} 0", key, kLeases));
      }
    }
    if (const Node* node = root_.find("manual_allocation_enabled"); is(node, "false")) {
      refuse(*node,
             "manual_allocation_enabled is false, and to run this file is to ask for GPUs by hand; "
             "set it to true or remove the key");
    }
    if (const Node* node = root_.find("queue_waiting"); is(node, "false")) {
      refuse(*node,
             "queue_waiting: a job here waits until its GPUs are free; remove the key, and limit "
             "the wait with --max-wait TIME");
    }
  }

  void check_notification() {
    const Node* section = root_.find("notification");
    const Node* enabled = section != nullptr ? section->find("enabled") : nullptr;
    if (is(enabled, "true")) {
      refuse(*enabled,
             "notification.enabled: this version sends no mail; set it to false or remove "
             "'notification'");
    } else if (section != nullptr && enabled == nullptr && !section->entries.empty()) {
      warn_(section->at, "notification: nothing is sent; this version sends no mail");
    }
  }

  void check_scaling() {
    const Node* section = root_.find("scaling");
    for (const std::string_view key : {"scale_up_threshold", "scale_down_threshold"}) {
      const Node* node = section != nullptr ? section->find(key) : nullptr;
      if (node == nullptr) {
        continue;
      }
      double share = -1;
      const char* const last = node->text.data() + node->text.size();
      const auto [end, error] = std::from_chars(node->text.data(), last, share);
      const bool number = error == std::errc{} && end == last && share >= 0 && share <= 1;
      if (node->kind != Node::Kind::scalar || !number) {
        diagnostics_.add(node->at, fmt::format("'scaling.{}' must be a number from 0 to 1", key));
      } else if (!is(section->find("enabled"), "false") && !is(root_.find("auto_scale"), "false")) {
        warn_(node->at,
              fmt::format("scaling.{} is not heeded: a running program neither grows nor shrinks",
                          key));
      }
    }
  }

  /// Settings of what is not there. They do nothing by themselves.
  void check_settings() {
    if (const Node* node = root_.find("managed_job_prefixes"); node != nullptr) {
      warn_(node->at,
            "managed_job_prefixes is not heeded: no jobs are managed without auto_manage");
    }
    if (const Node* node = root_.find("quick_allocation_timeout"); node != nullptr) {
      warn_(node->at,
            "quick_allocation_timeout is not heeded: allocations without a program come with "
            "leases, which this version does not have");
    }
    if (const Node* node = root_.find("parallel_submissions"); node != nullptr) {
      warn_(node->at, "parallel_submissions is not heeded: a job is submitted once, not raced");
    }
    if (const Node* node = root_.find("queue_waiting");
        node != nullptr && !is(node, "false") && !is(node, "true")) {
      warn_(node->at, "queue_waiting is not heeded: a job waits; --max-wait TIME limits that");
    }
  }

  void check_logging() {
    const Node* section = root_.find("logging");
    if (section == nullptr) {
      return;
    }
    if (section->kind != Node::Kind::map) {
      warn_(section->at, "logging is not heeded; the log is gpu_manager.log");
      return;
    }
    for (const Node::Entry& entry : section->entries) {
      if (entry.key != "file") {
        warn_(entry.key_at,
              fmt::format("logging.{} is not heeded; the log rotates by itself", entry.key));
      }
    }
  }

  const Node& root_;
  Diagnostics& diagnostics_;
  const ManagerWarn& warn_;
};

}  // namespace

bool is_manager_key(std::string_view key) {
  return std::ranges::find(kTopKeys, key) != kTopKeys.end();
}

void check_manager_keys(const Node& root, Diagnostics& diagnostics, const ManagerWarn& warn) {
  KeyChecker(root, diagnostics, warn).check();
}

}  // namespace berth
