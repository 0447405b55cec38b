#include "core/self_report.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace berth {
namespace {

constexpr std::array<std::pair<ReportedState, std::string_view>, 4> kStates{{
    {ReportedState::none, ""},
    {ReportedState::running, "running"},
    {ReportedState::normal_exit, "normal_exit"},
    {ReportedState::abnormal_exit, "abnormal_exit"},
}};

/// Letters alone, small.
std::string bare(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') {
      out += static_cast<char>(c - 'A' + 'a');
    } else if (c >= 'a' && c <= 'z') {
      out += c;
    }
  }
  return out;
}

FailureClass class_of(std::string_view error_type) {
  const std::string word = bare(error_type);
  if (word == "hostoom" || word == "hostmemory" || word == "memoryerror") {
    return FailureClass::host_oom;
  }
  return means_out_of_gpu_memory(error_type) ? FailureClass::gpu_oom : FailureClass::exit;
}

}  // namespace

std::string_view to_string(ReportedState state) {
  return kStates[static_cast<std::size_t>(state)].second;
}

std::optional<ReportedState> reported_state_from(std::string_view text) {
  const auto found =
      std::ranges::find(kStates, text, &std::pair<ReportedState, std::string_view>::second);
  return found == kStates.end() || text.empty() ? std::nullopt : std::optional(found->first);
}

SelfReport worse_of(SelfReport a, SelfReport b) {
  if (a.state == b.state) {
    return a.error_type.empty() ? std::move(b) : std::move(a);
  }
  return a.state > b.state ? std::move(a) : std::move(b);
}

bool means_out_of_gpu_memory(std::string_view error_type) {
  const std::string word = bare(error_type);
  return word == "oom" || word.ends_with("gpuoom") || word.ends_with("cudaoom") ||
         word.find("outofmemory") != std::string::npos;
}

Verdict heed(Verdict verdict, const SelfReport& report) {
  // Who was told to end, or ran into a wall that berth knows better, has nothing to add.
  const bool open = !verdict.failure || *verdict.failure == FailureClass::exit;
  if (report.state != ReportedState::abnormal_exit || verdict.killed || !open) {
    return verdict;
  }
  const std::string said = report.error_type.empty()
                               ? std::string("it reported abnormal_exit")
                               : fmt::format("it reported abnormal_exit: {}", report.error_type);
  verdict.message = verdict.message.empty() ? said : fmt::format("{}; {}", said, verdict.message);
  verdict.failure = class_of(report.error_type);
  return verdict;
}

}  // namespace berth
