#include "dialects/script_lines.hpp"

#include <algorithm>

namespace berth {
namespace {

constexpr std::string_view kBlanks = " \t\r";

bool is_blank(char c) {
  return kBlanks.find(c) != std::string_view::npos;
}

/// Words as a shell would separate them; `#` at the beginning of one ends the line.
std::vector<DirectiveWord> split_words(std::string_view line, std::size_t begin,
                                       std::uint32_t number) {
  std::vector<DirectiveWord> words;
  for (std::size_t at = begin; at < line.size();) {
    if (is_blank(line[at])) {
      ++at;
      continue;
    }
    if (line[at] == '#') {
      break;
    }
    DirectiveWord word{{}, {number, static_cast<std::uint32_t>(at + 1)}};
    char quote = 0;
    for (; at < line.size() && (quote != 0 || !is_blank(line[at])); ++at) {
      const char c = line[at];
      if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
      } else if (c == quote) {
        quote = 0;
      } else if (c == '\\' && quote != '\'' && at + 1 < line.size()) {
        word.text += line[++at];
      } else {
        word.text += c;
      }
    }
    words.push_back(std::move(word));
  }
  return words;
}

/// Where the words of a directive begin; npos: the line is none.
std::size_t directive_at(std::string_view line, std::string_view mark) {
  const bool is_one =
      line.starts_with(mark) && (line.size() == mark.size() || is_blank(line[mark.size()]));
  return is_one ? mark.size() : std::string_view::npos;
}

/// What follows the calls of a program in a line of a shell script; lines that only speak of it
/// have none.
std::vector<std::string_view> calls(std::string_view line, std::string_view program) {
  constexpr std::string_view kBefore = " \t;|&(`!";
  std::vector<std::string_view> found;
  const auto first = line.find_first_not_of(kBlanks);
  if (first == std::string_view::npos || line[first] == '#' ||
      line.substr(first).starts_with("echo ")) {
    return found;
  }
  for (std::size_t at = 0; (at = line.find(program, at)) != std::string_view::npos; ++at) {
    const auto end = at + program.size();
    const bool begins = at == 0 || kBefore.find(line[at - 1]) != std::string_view::npos;
    if (begins && (end == line.size() || is_blank(line[end]))) {
      found.push_back(line.substr(end));
    }
  }
  return found;
}

/// Whether the words behind `scontrol` are show hostnames.
bool asks_for_names(std::string_view words) {
  for (const std::string_view word : {"show", "hostname"}) {
    words.remove_prefix(std::min(words.find_first_not_of(kBlanks), words.size()));
    if (!words.starts_with(word)) {
      return false;
    }
    words.remove_prefix(word.size());
  }
  return true;
}

std::vector<std::string> read_interpreter(std::string_view line) {
  std::vector<std::string> words;
  for (auto& word : split_words(line, 2, 1)) {
    words.push_back(std::move(word.text));
  }
  const auto is_env = [](std::string_view word) { return word == "env" || word.ends_with("/env"); };
  if (!words.empty() && is_env(words.front())) {
    words.erase(words.begin());
    if (!words.empty() && words.front() == "-S") {
      words.erase(words.begin());
    }
  }
  return words;
}

}  // namespace

ScriptLines read_script_lines(std::string_view text) {
  ScriptLines out;
  text = without_mark(text);
  std::uint32_t number = 0;
  bool commands = false;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (number == 1 && line.starts_with("#!")) {
      out.interpreter = read_interpreter(line);
      continue;
    }
    const auto slurm = directive_at(line, "#SBATCH");
    const auto own = directive_at(line, "#BERTH");
    if (slurm != std::string_view::npos || own != std::string_view::npos) {
      if (commands) {
        out.too_late.push_back({number, 1});
      } else {
        const bool is_slurm = slurm != std::string_view::npos;
        out.directives.push_back({is_slurm, split_words(line, is_slurm ? slurm : own, number)});
      }
      continue;
    }
    const auto first = line.find_first_not_of(kBlanks);
    commands = commands || (first != std::string_view::npos && line[first] != '#');
    if (!calls(line, "srun").empty()) {
      out.srun.push_back(number);
    }
    if (const auto found = calls(line, "scontrol"); !found.empty()) {
      out.scontrol.push_back(number);
      if (!std::ranges::all_of(found, asks_for_names)) {
        out.other_scontrol.push_back(number);
      }
    }
  }
  return out;
}

}  // namespace berth
