#include "dialects/command_blocks.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

namespace berth {
namespace {

using Cards = DialectOptions::Cards;
using Kind = CommandLine::Kind;

constexpr std::uint64_t kMostQueue = 999'999'999;
constexpr std::uint64_t kMostGpus = 1024;
constexpr std::uint64_t kMostMemory = 65'536;  // GiB

/// How a block is built.
struct Form {
  bool head = false;        ///< begins with a number
  bool pair = false;        ///< ends with "queue,memory"
  std::size_t numbers = 0;  ///< at its end
  std::span<const CommandLine> body;
};

Form form_of(const CommandBlock& block) {
  Form form;
  form.head = block.front().kind == Kind::number;
  const std::size_t begin = form.head ? 1 : 0;
  std::size_t end = block.size();
  form.pair = end > begin && block.back().kind == Kind::pair;
  if (form.pair) {
    --end;
  }
  while (!form.pair && end > begin && block[end - 1].kind == Kind::number) {
    --end;
    ++form.numbers;
  }
  form.body = std::span(block).subspan(begin, end - begin);
  return form;
}

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

class BlockReader {
 public:
  BlockReader(Cards cards, Diagnostics& diagnostics) : cards_(cards), diagnostics_(diagnostics) {}

  /// None where something is wrong, which has been reported.
  std::optional<CommandTask> read(const CommandBlock& block) {
    if (!check_numbers(block)) {
      return std::nullopt;
    }
    const Form form = form_of(block);
    if (!check_body(block, form) || !check_form(block, form)) {
      return std::nullopt;
    }
    return task_of(block, form);
  }

 private:
  bool fail(const CommandLine& line, std::string message) {
    diagnostics_.add(line.at, std::move(message));
    return false;
  }

  bool check_numbers(const CommandBlock& block) {
    bool good = true;
    for (const CommandLine& line : block) {
      if (line.kind != Kind::near_number) {
        continue;
      }
      good = line.second.empty()
                 ? fail(line,
                        fmt::format("'{}' is not a number here: write plain digits as in 20 or "
                                    "20.5, without sign and not in full width, or queue,memory as "
                                    "in 1,20; memory is in GiB, and GB may follow it; a note "
                                    "begins with #, as in 20 #GiB",
                                    line.value))
                 : fail(line, fmt::format("this reads both ways: as the number {0} with the note "
                                          "'{1}', and as the number {0} before the command '{1}'; "
                                          "write {0} #{1}, or put the command on a line of its own",
                                          line.value, line.second));
    }
    return good;
  }

  bool check_body(const CommandBlock& block, const Form& form) {
    bool good = true;
    for (const CommandLine& line : form.body) {
      if (line.kind != Kind::command) {
        good = fail(line, fmt::format("'{}' stands where a command should be, and a line of digits "
                                      "is never one; is a blank line missing {} it?",
                                      line.text, line.kind == Kind::pair ? "after" : "before"));
      }
    }
    if (form.body.empty()) {
      good = fail(block.front(),
                  "this block has no command: put one or more, each on a line, between its queue "
                  "and the numbers at its end, or before queue,memory");
    }
    return good;
  }

  bool check_form(const CommandBlock& block, const Form& form) {
    if (form.pair) {
      return check_standard(block, form);
    }
    if (form.numbers > 2) {
      return fail(block[block.size() - form.numbers],
                  fmt::format("{} numbers end this block, and {} are the most; is a blank line "
                              "missing?",
                              form.numbers, cards_ == Cards::single ? "one" : "two"));
    }
    if (!form.head) {
      return form.numbers == 0
                 ? fail(block.back(),
                        "queue and memory are missing: end the block with queue,memory as in 1,20, "
                        "or begin it with its queue and end it with its memory, each on a line")
                 : fail(block.front(), fmt::format("the queue is missing: put its number on a line "
                                                   "before this one{}",
                                                   cards_ == Cards::multi || form.numbers == 2
                                                       ? ""
                                                       : ", or end the block with queue,memory"));
    }
    if (form.numbers == 0) {
      return fail(block.back(),
                  fmt::format("{} missing: the block must end with {}",
                              cards_ == Cards::multi ? "GPU count and memory are" : "the memory is",
                              cards_ == Cards::multi ? "both, each on a line" : "a number of GiB"));
    }
    if (form.numbers == 1 && cards_ == Cards::multi) {
      return fail(block.back(),
                  "the GPU count or the memory is missing: with several GPUs for each task a block "
                  "ends with both, each on a line; for one GPU each pass --mode single");
    }
    return form.numbers == 1 || check_several(block, form);
  }

  bool check_standard(const CommandBlock& block, const Form& form) {
    const CommandLine& last = block.back();
    if (form.head) {
      return fail(last,
                  fmt::format("this block reads both ways: as queue {0} with '{1}' for its memory, "
                              "and as queue {2} with {3} GiB and the number {0} for a command; "
                              "remove line {4}, or write the memory alone in line {5}",
                              block.front().value, last.text, last.value, last.second,
                              block.front().at.line, last.at.line));
    }
    if (cards_ == Cards::multi) {
      return fail(last,
                  "'queue,memory' is for one GPU: with several GPUs for each task a block is its "
                  "queue, commands, the GPU count and the memory, each on a line; for one GPU each "
                  "pass --mode single");
    }
    return true;
  }

  /// Two numbers at the end.
  bool check_several(const CommandBlock& block, const Form& form) {
    const CommandLine& count = block[block.size() - 2];
    if (cards_ == Cards::multi) {
      return true;
    }
    if (cards_ == Cards::single) {
      return fail(
          count, fmt::format("'{}' stands where a command should be, and a line of digits is never "
                             "one: with one GPU for each task a block ends with the memory alone; "
                             "for several use main_gpus, or 'berth run --mode multi'",
                             count.text));
    }
    const auto commands = counted(form.body.size(), "command");
    return fail(count,
                fmt::format("this block reads both ways: with --mode multi as queue {0}, {1}, {2} "
                            "GPUs with {3} GiB each; with --mode single as queue {0}, {1}, one GPU "
                            "with {3} GiB and '{2}' too many; the file's name does not tell, so "
                            "pass --mode, or name it command_gpus*.txt or command_gpu*.txt",
                            block.front().value, commands, count.value, block.back().value));
  }

  std::optional<CommandTask> task_of(const CommandBlock& block, const Form& form) {
    CommandTask task;
    task.at = block.front().at;
    const CommandLine& last = block.back();
    const auto queue = form.pair
                           ? whole(last, last.value, "the queue", 0, kMostQueue)
                           : whole(block.front(), block.front().value, "the queue", 0, kMostQueue);
    const auto memory = memory_of(last, form.pair ? last.second : last.value);
    std::optional<std::uint32_t> gpus = 1;
    if (form.numbers == 2) {
      const CommandLine& count = block[block.size() - 2];
      gpus = whole(count, count.value, "the GPU count", 1, kMostGpus);
    }
    bool good = queue && memory && gpus;
    for (const CommandLine& line : form.body) {
      auto command = command_of(line.text);
      if (!command) {
        good = fail(line, std::move(command.error()));
        continue;
      }
      task.commands.push_back(std::move(*command));
    }
    if (!good) {
      return std::nullopt;
    }
    task.queue = *queue;
    task.gpus = *gpus;
    task.memory = *memory;
    return task;
  }

  std::optional<std::uint32_t> whole(const CommandLine& line, std::string_view text,
                                     std::string_view what, std::uint64_t min, std::uint64_t max) {
    if (line.memory) {
      fail(line, fmt::format("{} stands here, and '{}' is a memory", what, line.text));
      return std::nullopt;
    }
    std::uint64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || stop != text.data() + text.size() || value < min || value > max) {
      fail(line,
           fmt::format("{} must be a whole number from {} to {}, not '{}'", what, min, max, text));
      return std::nullopt;
    }
    return static_cast<std::uint32_t>(value);
  }

  std::optional<Bytes> memory_of(const CommandLine& line, std::string_view text) {
    double value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const auto bytes = error == std::errc{} && value <= static_cast<double>(kMostMemory)
                           ? static_cast<Bytes>(value * static_cast<double>(kGiB))
                           : 0;
    if (stop != text.data() + text.size() || bytes < kMiB) {
      fail(line, fmt::format("the memory must be at least 0.001 and at most {} GiB, not '{}'",
                             kMostMemory, text));
      return std::nullopt;
    }
    return bytes;
  }

  Cards cards_;
  Diagnostics& diagnostics_;
};

}  // namespace

Cards cards_of_name(std::string_view file_name) {
  const auto path = std::filesystem::path(std::string(file_name));
  const auto name = path.stem().native();
  if (name.starts_with("command_gpus")) {
    return Cards::multi;  // copies such as command_gpus.txt.backup, too
  }
  return path.extension() == ".txt" && name.starts_with("command") ? Cards::single
                                                                   : Cards::by_file_name;
}

std::vector<CommandTask> read_tasks(std::span<const CommandBlock> blocks, Cards cards,
                                    Diagnostics& diagnostics) {
  std::vector<CommandTask> tasks;
  tasks.reserve(blocks.size());
  BlockReader reader(cards, diagnostics);
  for (const CommandBlock& block : blocks) {
    if (auto task = reader.read(block)) {
      tasks.push_back(std::move(*task));
    }
    if (diagnostics.full()) {
      break;
    }
  }
  return tasks;
}

bool has_a_task(std::span<const CommandBlock> blocks) {
  return std::ranges::any_of(blocks, [](const CommandBlock& block) {
    const Form form = form_of(block);
    const bool ends =
        form.pair ? !form.head : form.head && (form.numbers == 1 || form.numbers == 2);
    return ends && !form.body.empty() &&
           std::ranges::all_of(form.body,
                               [](const CommandLine& line) { return line.kind == Kind::command; });
  });
}

}  // namespace berth
