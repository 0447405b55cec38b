// Completion scripts for bash, zsh and fish. Commands, options and fixed words are written out;
// jobs and queues are asked for with `berth __complete` when they are needed.

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "cli/program_doc.hpp"

namespace berth::cli {
namespace {

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

/// In single quotes, for a POSIX shell.
std::string quoted(std::string_view text) {
  return "'" + replaced(std::string(text), "'", R"('\'')") + "'";
}

std::string all_names(const CommandDoc& command) {
  std::vector<std::string> names;
  for (const OptionDoc& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return fmt::format("{}", fmt::join(names, " "));
}

const OptionDoc* only_positional(const CommandDoc& command) {
  return command.positionals.empty() ? nullptr : &command.positionals.back();
}

/// The names of options that take a value, as patterns of a case.
std::string value_names(const CommandDoc& command) {
  std::vector<std::string> names;
  for (const OptionDoc& option : command.options) {
    if (!option.flag) {
      names.insert(names.end(), option.names.begin(), option.names.end());
    }
  }
  return fmt::format("{}", fmt::join(names, "|"));
}

// --- bash

std::string bash_action(const OptionDoc& option) {
  switch (option.completes) {
    case Completes::nothing:
      return ":";
    case Completes::words:
      return fmt::format("_berth_offer '{}'", fmt::join(option.words, " "));
    case Completes::jobs:
      return R"sh(_berth_offer "$(_berth_ask jobs)")sh";
    case Completes::queues:
      return R"sh(_berth_offer "$(_berth_ask queues)")sh";
    case Completes::files:
      return "compopt -o default";
    case Completes::directories:
      return "compopt -o dirnames";
    case Completes::command:
      return R"sh(COMPREPLY=($(compgen -c -- "$cur")))sh";
  }
  return ":";
}

constexpr std::string_view kBashHead =
    R"sh(# Completion of berth for bash; made by: berth completion bash
_berth_ask() {
  command berth __complete "$1" 2>/dev/null | cut -f1
}

# Offers words; of a list such as 3,5 its last part is completed.
_berth_offer() {
  local before=
  if [[ $cur == *,* ]]; then
    before=${cur%,*},
  fi
  local IFS=$' \n'
  COMPREPLY=($(compgen -P "$before" -W "$1" -- "${cur##*,}"))
}

_berth() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command= at word
  COMPREPLY=()
  # Bash takes --color=never apart at the equals sign.
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi
)sh";

constexpr std::string_view kBashAdd =
    R"sh(  # What follows the first word of add that is no option is a command of its own.
  if [[ $command == add ]]; then
    for ((at++; at < COMP_CWORD; at++)); do
      word=${COMP_WORDS[at]}
      case $word in
        --) ((at++)); break ;;
        @VALUES@)
          ((at++))
          if [[ ${COMP_WORDS[at]} == = ]]; then ((at++)); fi
          ;;
        -*|=) ;;
        *) break ;;
      esac
    done
    if ((at < COMP_CWORD)); then
      if declare -F _command_offset >/dev/null; then
        _command_offset "$at"
      else
        compopt -o default
      fi
      return
    fi
  fi
)sh";

}  // namespace

std::string bash_completion(const ProgramDoc& program) {
  std::string out(kBashHead);
  out += fmt::format(
      "  for ((at = 1; at < COMP_CWORD; at++)); do\n"
      "    word=${{COMP_WORDS[at]}}\n"
      "    case $word in\n"
      "      {})\n"
      "        ((at++))\n"
      "        if [[ ${{COMP_WORDS[at]}} == = ]]; then ((at++)); fi\n"
      "        ;;\n"
      "      -*|=) ;;\n"
      "      *) command=$word; break ;;\n"
      "    esac\n"
      "  done\n",
      value_names(program.main));
  std::string values;
  std::string options;
  std::string words;
  std::vector<std::string> names;
  const auto add = [&](const CommandDoc& command) {
    for (const OptionDoc& option : command.options) {
      if (!option.flag) {
        std::vector<std::string> patterns;
        for (const std::string& name : option.names) {
          patterns.push_back(fmt::format("'{} {}'", command.name, name));
        }
        values +=
            fmt::format("    {}) {}; return ;;\n", fmt::join(patterns, "|"), bash_action(option));
      }
    }
    options += fmt::format("      '{}') COMPREPLY=($(compgen -W '{}' -- \"$cur\")) ;;\n",
                           command.name, all_names(command));
    if (const OptionDoc* positional = only_positional(command)) {
      words += fmt::format("    '{}') {} ;;\n", command.name, bash_action(*positional));
    }
  };
  add(program.main);
  for (const CommandDoc& command : program.commands) {
    add(command);
    names.push_back(command.name);
    if (command.name == "add") {
      out += replaced(std::string(kBashAdd), "@VALUES@", value_names(command));
    }
  }
  out += "  case \"$command $prev\" in\n" + values + "  esac\n";
  out += "  if [[ $cur == -* ]]; then\n    case $command in\n" + options +
         "    esac\n    return\n  fi\n";
  out += fmt::format("  case $command in\n    '') COMPREPLY=($(compgen -W '{}' -- \"$cur\")) ;;\n",
                     fmt::join(names, " "));
  out += words + "  esac\n}\n\ncomplete -F _berth berth\n";
  return out;
}

// --- zsh

namespace {

/// Inside an option's description, where brackets and colons mean something.
std::string zsh_text(std::string text) {
  for (const char* special : {"\\", "[", "]", ":"}) {
    text = replaced(std::move(text), special, std::string("\\") + special);
  }
  return text;
}

std::string zsh_action(const OptionDoc& option) {
  switch (option.completes) {
    case Completes::nothing:
      return " ";
    case Completes::words:
      return option.repeatable ? fmt::format("_values -s , word {}", fmt::join(option.words, " "))
                               : fmt::format("({})", fmt::join(option.words, " "));
    case Completes::jobs:
      return " _berth_ask jobs";  // the blank keeps _arguments from adding words of its own
    case Completes::queues:
      return " _berth_ask queues";
    case Completes::files:
      return "_files";
    case Completes::directories:
      return "_files -/";
    case Completes::command:
      return "_normal";
  }
  return " ";
}

std::string zsh_arguments(const CommandDoc& command, std::string_view indent) {
  std::vector<std::string> specs;
  for (const OptionDoc& option : command.options) {
    const std::string exclude =
        option.repeatable ? "*" : fmt::format("({})", fmt::join(option.names, " "));
    for (const std::string& name : option.names) {
      std::string spec = exclude + name;
      if (!option.flag) {
        spec += name.starts_with("--") ? "=" : "+";
      }
      spec += "[" + zsh_text(option.help) + "]";
      if (!option.flag) {
        spec += ":" + zsh_text(option.type) + ":" + zsh_action(option);
      }
      specs.push_back(quoted(spec));
    }
  }
  for (const OptionDoc& positional : command.positionals) {
    const std::string& name = positional.names[0];
    std::string spec = positional.repeatable ? "*:" : ":";
    if (positional.completes == Completes::command) {
      spec = "(-)*::";  // from here on no option is berth's
    }
    specs.push_back(quoted(spec + zsh_text(name) + ":" + zsh_action(positional)));
  }
  return fmt::format("{}", fmt::join(specs, fmt::format(" \\\n{}", indent)));
}

}  // namespace

std::string zsh_completion(const ProgramDoc& program) {
  std::string out = R"sh(#compdef berth
# Completion of berth for zsh; made by: berth completion zsh

# Jobs or queues, with what they are beside them; of a list such as 3,5 the last part.
_berth_ask() {
  local -a found
  local entry tab=$'\t'
  for entry in ${(f)"$(command berth __complete $1 2>/dev/null)"}; do
    found+=("${${entry%%$tab*}//:/\\:}:${entry#*$tab}")
  done
  compset -P '*,'
  _describe -V -t $1 $1 found
}

_berth_commands() {
  local -a commands=(
)sh";
  for (const CommandDoc& command : program.commands) {
    out += fmt::format("    {}\n", quoted(command.name + ":" + command.summary));
  }
  out +=
      "  )\n  _describe -t commands command commands\n}\n\n_berth() {\n"
      "  local context state state_descr line\n  typeset -A opt_args\n"
      "  _arguments -C \\\n    ";
  out += zsh_arguments(program.main, "    ");
  out +=
      " \\\n    '1:command:_berth_commands' \\\n    '*::argument:->argument'\n"
      "  [[ $state == argument ]] || return\n  case $line[1] in\n";
  for (const CommandDoc& command : program.commands) {
    out += fmt::format("    {})\n      _arguments \\\n        {}\n      ;;\n", command.name,
                       zsh_arguments(command, "        "));
  }
  out +=
      "  esac\n}\n\n"
      "# Autoloaded, this file is the function; sourced, it defines it.\n"
      "if [[ $funcstack[1] == _berth ]]; then\n  _berth \"$@\"\nelse\n"
      "  compdef _berth berth\nfi\n";
  return out;
}

// --- fish

namespace {

/// In single quotes, for fish.
std::string fish_quoted(std::string text) {
  text = replaced(std::move(text), "\\", "\\\\");
  return "'" + replaced(std::move(text), "'", "\\'") + "'";
}

/// The options of `complete` that say what a value may be.
std::string fish_action(const OptionDoc& option) {
  switch (option.completes) {
    case Completes::nothing:
      return " -x";
    case Completes::words:
      return fmt::format(" -x -a {}",
                         option.repeatable
                             ? fmt::format("'(__berth_list {})'", fmt::join(option.words, " "))
                             : fish_quoted(fmt::format("{}", fmt::join(option.words, " "))));
    case Completes::jobs:
      return " -x -a '(__berth_ask jobs)'";
    case Completes::queues:
      return " -x -a '(__berth_ask queues)'";
    case Completes::files:
      return " -r -F";
    case Completes::directories:
      return " -x -a '(__fish_complete_directories)'";
    case Completes::command:
      return " -F -a '(__fish_complete_command)'";
  }
  return "";
}

std::string fish_options(const CommandDoc& command) {
  std::string out;
  for (const OptionDoc& option : command.options) {
    out += fmt::format("complete -c berth -n '__berth_in {}'", command.name);
    for (const std::string& name : option.names) {
      out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    out += (option.flag ? "" : fish_action(option)) + " -d " + fish_quoted(option.help) + "\n";
  }
  return out;
}

}  // namespace

std::string fish_completion(const ProgramDoc& program) {
  std::string out = R"sh(# Completion of berth for fish; made by: berth completion fish

# Whether this is the command; without one, whether there is none yet.
function __berth_in
    set -l words (commandline -opc)
    set -e words[1]
    while set -q words[1]
        switch $words[1]
            case --color
                set -e words[1]
            case '-*'
            case '*'
                contains -- $words[1] $argv
                return
        end
        set -e words[1]
    end
    test -z "$argv"
end

# Of a list such as 3,5 the last part is completed.
function __berth_list
    set -l before (commandline -ct | string match -r '^.*,' | string replace -r '^--[a-z]+=' '')
    printf '%s\n' "$before"$argv
end

function __berth_ask
    set -l before (commandline -ct | string match -r '^.*,' | string replace -r '^--[a-z]+=' '')
    for line in (command berth __complete $argv[1] 2>/dev/null)
        printf '%s\n' "$before$line"
    end
end

complete -c berth -f
)sh";
  for (const CommandDoc& command : program.commands) {
    out += fmt::format("complete -c berth -n __berth_in -a {} -d {}\n", command.name,
                       fish_quoted(command.summary));
  }
  out += fish_options(program.main);
  for (const CommandDoc& command : program.commands) {
    out += fish_options(command);
    if (const OptionDoc* positional = only_positional(command)) {
      std::string action = fish_action(*positional);
      if (action.starts_with(" -x") || action.starts_with(" -r")) {
        action.erase(0, 3);  // those are about the value of an option
      }
      if (!action.empty()) {
        out += fmt::format("complete -c berth -n '__berth_in {}'{}\n", command.name, action);
      }
    }
  }
  return out;
}

}  // namespace berth::cli
