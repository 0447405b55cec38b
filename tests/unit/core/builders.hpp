#pragma once
// Values for tests, saying only what matters to the case at hand.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/gpu.hpp"
#include "core/job.hpp"

namespace berth::testing {

class JobBuilder {
 public:
  JobBuilder() {
    static const auto kEnvironment = std::make_shared<const Environment>();
    spec_.payload.commands.push_back({false, {"true"}});
    spec_.payload.environment = kEnvironment;
  }
  operator JobSpec() const { return spec_; }  // NOLINT: a builder is its product

  JobBuilder& named(std::string name) { return set(spec_.name, std::move(name)); }
  JobBuilder& gpus(std::uint32_t count) { return gpus(count, count); }
  JobBuilder& gpus(std::uint32_t min, std::uint32_t max) {
    return set(spec_.request.gpus, GpuCount{min, max});
  }
  JobBuilder& memory(Bytes per_gpu) { return set(spec_.request.gpu_memory, per_gpu); }
  JobBuilder& cpus(std::uint32_t count) { return set(spec_.request.cpus, count); }
  JobBuilder& host_memory(Bytes bytes) { return set(spec_.request.memory, bytes); }
  JobBuilder& resource(const std::string& name, std::uint64_t count) {
    return set(spec_.request.resources[name], count);
  }
  JobBuilder& rule(const std::string& key, std::string value) {
    return set(spec_.request.rules[key], std::move(value));
  }
  JobBuilder& min_free(Bytes bytes) { return rule("min_free_memory", std::to_string(bytes)); }
  JobBuilder& max_utilization(std::uint32_t percent) {
    return rule("max_utilization", std::to_string(percent));
  }
  JobBuilder& time(Millis limit) { return set(spec_.payload.time_limit, limit); }
  JobBuilder& start_at(Millis wall) { return set(spec_.start_at, wall); }
  JobBuilder& after_kind(After kind) { return set(spec_.after_kind, kind); }
  JobBuilder& queue(std::string name) { return set(spec_.queue, std::move(name)); }
  JobBuilder& priority(std::int32_t value) { return set(spec_.priority, value); }
  JobBuilder& retries(std::uint32_t count) { return set(spec_.retries, count); }
  JobBuilder& after(std::uint64_t job) {
    spec_.after.push_back(JobId{job});
    return *this;
  }
  JobBuilder& after_index(std::uint32_t index) {
    spec_.after_index.push_back(index);
    return *this;
  }
  JobBuilder& without_command() {
    spec_.payload.commands.clear();
    return *this;
  }

 private:
  template <class Field, class Value>
  JobBuilder& set(Field& field, Value value) {
    field = std::move(value);
    return *this;
  }
  JobSpec spec_;
};

/// One whole card, unless told otherwise.
[[nodiscard]] inline JobBuilder a_job() {
  return {};
}

/// No GPU at all.
[[nodiscard]] inline JobBuilder a_cpu_job() {
  return JobBuilder().gpus(0);
}

class ProcessBuilder {
 public:
  explicit ProcessBuilder(AttemptId attempt) {
    process_.pid = 1000;
    process_.attempt = attempt;
  }
  operator GpuProcess() const { return process_; }  // NOLINT: a builder is its product

  ProcessBuilder& memory(Bytes bytes) {
    process_.memory = bytes;
    return *this;
  }
  ProcessBuilder& utilization(std::uint32_t percent) {
    process_.utilization = percent;
    return *this;
  }
  ProcessBuilder& uid(std::uint32_t owner) {
    process_.uid = owner;
    return *this;
  }
  ProcessBuilder& age(Millis since_its_start) {
    process_.age = since_its_start;
    return *this;
  }

 private:
  GpuProcess process_;
};

[[nodiscard]] inline ProcessBuilder a_stranger() {
  return ProcessBuilder(AttemptId{});
}
[[nodiscard]] inline ProcessBuilder a_process_of(std::uint64_t attempt) {
  return ProcessBuilder(AttemptId{attempt});
}

/// A healthy, idle card of 24 GiB with a driver that tells everything, unless told otherwise.
class GpuBuilder {
 public:
  explicit GpuBuilder(std::uint32_t index) {
    facts_.uuid = fmt::format("GPU-{}", index);
    facts_.index = index;
    facts_.name = "Test GPU";
    facts_.utilization = 0;
    facts_.processes.emplace();
    total(24 * kGiB);
  }
  operator GpuFacts() const { return facts_; }  // NOLINT: a builder is its product

  GpuBuilder& total(Bytes bytes) {
    facts_.memory_total = bytes;
    return free(bytes);
  }
  GpuBuilder& free(Bytes bytes) {
    facts_.memory_free = bytes;
    facts_.memory_used = *facts_.memory_total - bytes;
    return *this;
  }
  GpuBuilder& utilization(std::uint32_t percent) {
    facts_.utilization = percent;
    return *this;
  }
  /// Its memory, if known, is taken from what is free.
  GpuBuilder& with(GpuProcess process) {
    free(*facts_.memory_free - std::min(*facts_.memory_free, process.memory.value_or(0)));
    facts_.processes->push_back(std::move(process));
    return *this;
  }
  /// Over the last seconds.
  GpuBuilder& busy(std::uint32_t percent) {
    facts_.busy = percent;
    return *this;
  }
  /// Only in this direction.
  GpuBuilder& link(std::uint32_t other, GpuLink link) {
    facts_.links[fmt::format("GPU-{}", other)] = link;
    return *this;
  }
  GpuBuilder& xid(std::uint32_t number) {
    facts_.xids.push_back(number);
    return *this;
  }
  GpuBuilder& ecc(std::uint64_t errors) {
    facts_.ecc_uncorrected = errors;
    return *this;
  }
  GpuBuilder& lost(std::string why) {
    facts_.lost = true;
    return unreadable(std::move(why));
  }
  GpuBuilder& unreadable(std::string why) {
    facts_.trouble = std::move(why);
    return *this;
  }
  /// As a probe tells of it that has never been able to open it.
  GpuBuilder& unnamed() {
    facts_.uuid = stand_in_uuid(facts_.index);
    facts_.name.clear();
    return *this;
  }
  GpuBuilder& unknown_memory() {
    facts_.memory_free.reset();
    facts_.memory_used.reset();
    return *this;
  }
  GpuBuilder& unknown_utilization() {
    facts_.utilization.reset();
    return *this;
  }
  GpuBuilder& unknown_processes() {
    facts_.processes.reset();
    return *this;
  }

 private:
  GpuFacts facts_;
};

[[nodiscard]] inline GpuBuilder a_gpu(std::uint32_t index) {
  return GpuBuilder(index);
}

}  // namespace berth::testing
