// Whatever is written as a command file reads back as what it was, and so does the native job file
// made of it.

#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "dialects/command_blocks.hpp"
#include "support.hpp"

namespace berth {
namespace {

using Cards = DialectOptions::Cards;
enum class Variant : std::uint8_t { standard, optimised, multi };

/// Words as commands have them, none of which looks like a number or a comment.
std::string any_command() {
  const auto word = rc::gen::element<std::string>("python", "--lr", "0.1", "20", "{work_dir}/x",
                                                  "{uni_id}", "# 注释", "训练.py", "a,b", "&&",
                                                  "$X", "'y z'", "1,20", "{{x}}", "\\", "\t");
  std::string out = "run";
  for (const auto& one : *rc::gen::container<std::vector<std::string>>(word)) {
    out += " " + one;
  }
  while (out.ends_with(' ') || out.ends_with('\t') || out.ends_with('\\')) {
    out.pop_back();
  }
  return out;
}

CommandTask any_task(Variant variant) {
  CommandTask task;
  task.queue = *rc::gen::inRange<std::uint32_t>(0, 1'000'000'000);
  task.gpus = variant == Variant::multi ? *rc::gen::inRange<std::uint32_t>(1, 1025) : 1;
  task.memory = *rc::gen::inRange<Bytes>(1, 65536 * 4) * (kGiB / 4);
  const auto count = *rc::gen::inRange<std::size_t>(1, 5);
  for (std::size_t i = 0; i < count; ++i) {
    task.commands.push_back(any_command());
  }
  return task;
}

std::string memory_text(Bytes memory) {
  return fmt::format("{}", static_cast<double>(memory) / static_cast<double>(kGiB));
}

/// A number as people write it.
std::string decorated(const std::string& number) {
  return *rc::gen::element<std::string>("", "  ", "\t") + number +
         *rc::gen::element<std::string>("", " #注", "#x", " # 20", "  ", " 卡 x", "\t数 #20");
}

std::string written(const CommandTask& task, Variant variant, const std::string& end) {
  const auto comment = *rc::gen::element<std::string>("", "# 20", "#", "  # x,1");
  std::string out = comment.empty() ? "" : comment + end;
  if (variant != Variant::standard) {
    out += decorated(std::to_string(task.queue)) + end;
  }
  for (const std::string& command : task.commands) {
    const bool quoted = *rc::gen::arbitrary<bool>();
    out += (quoted ? "\"" + command + "\"" : command) + end + (comment.empty() ? "" : "#" + end);
  }
  if (variant == Variant::multi) {
    out += decorated(std::to_string(task.gpus)) + end;
  }
  const auto memory = memory_text(task.memory);
  out +=
      decorated(variant == Variant::standard ? fmt::format("{},{}", task.queue, memory) : memory);
  return out;
}

RC_GTEST_PROP(Commands, WrittenTasksReadBackTheSame, ()) {
  const auto variant = *rc::gen::element(Variant::standard, Variant::optimised, Variant::multi);
  const auto end = *rc::gen::element<std::string>("\n", "\r\n");
  const auto gap = *rc::gen::element<std::string>("\n", "  \n", "\r\n# 空\r\n\r\n", "\n\n\t\n");
  std::vector<CommandTask> tasks;
  std::string text = *rc::gen::element<std::string>("", "\xEF\xBB\xBF", "\n\n", "# 说明\n\n");
  const auto count = *rc::gen::inRange<std::size_t>(1, 6);
  for (std::size_t i = 0; i < count; ++i) {
    tasks.push_back(any_task(variant));
    text += (i > 0 ? end + gap : "") + written(tasks.back(), variant, end);
  }
  text += *rc::gen::element<std::string>("", "\n", "\r\n\r\n");
  RC_LOG(text);

  const auto parsed =
      parse_text(text, variant == Variant::multi ? "command_gpus.txt" : "command.txt");
  RC_LOG(mistakes(parsed));
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(parsed->jobs.size() == tasks.size());
  std::set<std::string> names;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const JobSpec& job = parsed->jobs[i];
    RC_ASSERT(job.queue.ends_with(fmt::format("/{}", tasks[i].queue)));
    RC_ASSERT(job.request.gpus.min == tasks[i].gpus);
    RC_ASSERT(job.request.gpu_memory == tasks[i].memory);
    std::vector<std::string> commands;
    for (const Command& command : job.payload.commands) {
      commands.push_back(command.argv.at(0));
    }
    RC_ASSERT(commands == tasks[i].commands);
    RC_ASSERT(names.insert(job.name).second);
  }

  // As native YAML, and back.
  const std::string native = as_json(*parsed);
  const auto again = parse_job_file(native, "again.yaml", "/elsewhere");
  RC_ASSERT(again.has_value());
  RC_ASSERT(as_json(*again) == native);
  RC_ASSERT(again->rules == parsed->rules);
  RC_ASSERT(again->queues == parsed->queues);
}

}  // namespace
}  // namespace berth
