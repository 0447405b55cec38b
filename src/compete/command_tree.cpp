#include "compete/command_tree.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "dialects/command_lines.hpp"

namespace berth::compete {
namespace {

/// The comments and blank lines before the first task.
std::string_view head_of(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size()) {
    const auto line_end = std::min(text.find('\n', end), text.size());
    const std::string_view line = text.substr(end, line_end - end);
    const auto first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos && line[first] != '#') {
      break;
    }
    end = std::min(line_end + 1, text.size());
  }
  std::string_view head = text.substr(0, end);
  while (head.ends_with('\n') || head.ends_with('\r') || head.ends_with(' ')) {
    head.remove_suffix(1);
  }
  return head;
}

std::string block_text(const CommandQueue& queue, const CommandProcess& process, Cards mode,
                       const std::vector<std::string>& commands) {
  std::string text = fmt::format("{}\n", queue.id);
  for (const std::string& command : commands) {
    text += command + "\n";
  }
  if (mode == Cards::multi) {
    text += fmt::format("{}\n", process.gpus);
  }
  return text + fmt::format("{}\n", process.memory_gib);
}

/// Whether the text holds exactly this process.
bool reads_as(const std::string& text, const CommandQueue& queue, const CommandProcess& process,
              Cards mode) {
  const CommandTree tree = read_tree(text, "", mode);
  if (!tree.mistakes.empty() || tree.size() != 1 || tree.queues[0].id != queue.id) {
    return false;
  }
  const CommandProcess& read = tree.queues[0].processes[0];
  return read.commands == process.commands && read.gpus == process.gpus &&
         read.memory_gib == process.memory_gib;
}

/// Why a process cannot be written.
Error misfit(const CommandQueue& queue, std::size_t index, const std::string& text, Cards mode) {
  const CommandTree tree = read_tree(text, "", mode);
  return {ErrorCode::invalid,
          fmt::format("queue {}, process {}: {}", queue.id, index,
                      tree.mistakes.empty()
                          ? "a command file cannot hold it as it is: a command is one line, no "
                            "comment, not empty and no number"
                          : tree.mistakes.front().message)};
}

Result<std::string> write_process(const CommandQueue& queue, std::size_t index, Cards mode) {
  const CommandProcess& process = queue.processes[index];
  std::string plain = block_text(queue, process, mode, process.commands);
  if (reads_as(plain, queue, process, mode)) {
    return plain;
  }
  // Quotes that belong to a command need others around them.
  std::vector<std::string> quoted;
  for (const std::string& command : process.commands) {
    quoted.push_back(fmt::format("\"{}\"", command));
  }
  std::string other = block_text(queue, process, mode, quoted);
  if (reads_as(other, queue, process, mode)) {
    return other;
  }
  return std::unexpected(misfit(queue, index, plain, mode));
}

}  // namespace

std::size_t CommandTree::size() const {
  std::size_t count = 0;
  for (const CommandQueue& queue : queues) {
    count += queue.processes.size();
  }
  return count;
}

CommandTree read_tree(std::string_view text, const std::string& file_name, Cards mode) {
  Diagnostics diagnostics(file_name);
  const auto blocks = split_blocks(without_mark(text));
  std::map<std::uint32_t, CommandQueue> queues;
  for (CommandTask& task : read_tasks(blocks, mode, diagnostics)) {
    CommandQueue& queue = queues[task.queue];
    queue.id = task.queue;
    queue.processes.push_back({std::move(task.commands), task.gpus,
                               static_cast<double>(task.memory) / static_cast<double>(kGiB),
                               task.at.line});
  }
  CommandTree tree;
  for (auto& [id, queue] : queues) {
    tree.queues.push_back(std::move(queue));
  }
  tree.mistakes = diagnostics.take();
  return tree;
}

Result<std::string> write_tree(const std::vector<CommandQueue>& queues, Cards mode,
                               std::string_view old) {
  const std::string_view head = head_of(without_mark(old));
  std::string text = head.empty() ? std::string() : fmt::format("{}\n", head);
  for (const CommandQueue& queue : queues) {
    for (std::size_t i = 0; i < queue.processes.size(); ++i) {
      TRY_ASSIGN(const std::string block, write_process(queue, i, mode));
      text += text.empty() ? block : "\n" + block;
    }
  }
  return text;
}

std::string empty_config(Cards mode) {
  return fmt::format(
      "# One task is a block of lines, and a blank line separates it from the next:\n"
      "#   its queue; tasks of a queue run one after the other\n"
      "#   its commands, each on a line; {{work_dir}} and {{uni_id}} are filled in\n"
      "{}"
      "#   the memory that it needs {}in GiB\n",
      mode == Cards::multi ? "#   how many GPUs it needs\n" : "",
      mode == Cards::multi ? "of each GPU, " : "");
}

}  // namespace berth::compete
