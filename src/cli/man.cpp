// Manual pages, in the macros of man(7).

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "api/text.hpp"
#include "cli/program_doc.hpp"

namespace berth::cli {
namespace {

/// Text as roff shows it: nothing in it is a request, an escape or beyond ASCII.
std::string roff(std::string_view text) {
  std::string out;
  bool line_begins = true;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
    const char c = text[0];
    if (length > 1) {
      std::uint32_t value = static_cast<unsigned char>(c) & (0xFFU >> (length + 1));
      for (const char more : text.substr(1, length - 1)) {
        value = value << 6 | (static_cast<unsigned char>(more) & 0x3FU);
      }
      out += fmt::format("\\[u{:04X}]", value);
    } else if (c == '\\') {
      out += "\\(rs";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else if (c == '`') {
      out += "\\(ga";
    } else if (c == '~') {
      out += "\\(ti";
    } else if (c == '^') {
      out += "\\(ha";
    } else {
      out += (line_begins && c == '.' ? "\\&" : "") + std::string(1, c);
    }
    line_begins = c == '\n';
    text.remove_prefix(length);
  }
  return out;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string option_tag(const OptionDoc& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) {
    names.push_back("\\fB" + roff(name) + "\\fR");
  }
  return fmt::format("{}{}", fmt::join(names, ", "),
                     option.type.empty() ? "" : " \\fI" + roff(option.type) + "\\fR");
}

std::string header(const std::string& page, const std::string& summary) {
  return fmt::format(".TH {} 1 \"\" \"berth {}\" \"berth\"\n.SH NAME\n{} \\- {}\n",
                     upper(roff(page)), BERTH_VERSION, roff(page), roff(summary));
}

std::string synopsis(const CommandDoc& command) {
  std::string out = ".SH SYNOPSIS\n\\fBberth";
  out += command.name.empty() ? "\\fR" : " " + roff(command.name) + "\\fR";
  out += command.options.empty() ? "" : " [\\fIOPTIONS\\fR]";
  for (const OptionDoc& positional : command.positionals) {
    const std::string name =
        "\\fI" + roff(positional.names[0]) + "\\fR" + (positional.repeatable ? "..." : "");
    out += positional.required ? " " + name : " [" + name + "]";
  }
  return out + (command.name.empty() ? " [\\fICOMMAND\\fR]\n" : "\n");
}

std::string tagged(const std::string& tag, const std::string& text) {
  return ".TP\n" + tag + "\n" + text + "\n";
}

std::string options(const CommandDoc& command) {
  std::string out = command.options.empty() && command.positionals.empty() ? "" : ".SH OPTIONS\n";
  for (const OptionDoc& positional : command.positionals) {
    out += tagged("\\fI" + roff(positional.names[0]) + "\\fR" +
                      (positional.type.empty() ? "" : " " + roff(positional.type)),
                  roff(positional.help));
  }
  for (const OptionDoc& option : command.options) {
    out += tagged(option_tag(option), roff(option.help));
  }
  return out;
}

std::string examples(const CommandDoc& command) {
  return command.examples.empty() ? "" : ".SH EXAMPLES\n.nf\n" + roff(command.examples) + "\n.fi\n";
}

constexpr std::string_view kExit =
    ".SH EXIT STATUS\n"
    "0: it went well. 1: it failed, or a job that was asked about did. 2: wrong usage. "
    "130: interrupted.\n";

constexpr std::string_view kEnvironment =
    ".SH ENVIRONMENT\n"
    ".TP\n\\fBBERTH_DIR\\fR\nthe directory of the instance, its socket included\n"
    ".TP\n\\fBBERTH_GPUS\\fR\nwhich GPUs a daemon that is started sees, as sim:2x24GiB or none\n"
    ".TP\n\\fBBERTH_PAGER\\fR, \\fBPAGER\\fR\nwhat shows long output on a terminal; cat: nothing "
    "does\n"
    ".TP\n\\fBNO_COLOR\\fR\nif set and not empty, no colours\n";

}  // namespace

std::string man_page(const ProgramDoc& program) {
  std::string out = header("berth", "run commands on free GPUs") + synopsis(program.main) +
                    ".SH DESCRIPTION\n" + roff(program.main.summary) +
                    "\nWithout a command, it shows what runs, what waits and what has failed.\n" +
                    ".SH COMMANDS\n";
  std::string group;
  for (const CommandDoc& command : program.commands) {
    if (command.group != group) {
      group = command.group;
      out += ".SS " + roff(group) + "\n";
    }
    out += tagged("\\fBberth\\-" + roff(command.name) + "\\fR(1)", roff(command.summary));
  }
  out += options(program.main) + examples(program.main);
  out += kExit;
  out += kEnvironment;
  return out;
}

std::string man_page(const ProgramDoc& program, const CommandDoc& command) {
  std::string out = header("berth-" + command.name, command.summary) + synopsis(command) +
                    options(command) + examples(command);
  out += kExit;
  out += ".SH SEE ALSO\n\\fBberth\\fR(1)";
  for (const CommandDoc& other : program.commands) {
    if (other.group == command.group && other.name != command.name) {
      out += ", \\fBberth\\-" + roff(other.name) + "\\fR(1)";
    }
  }
  return out + "\n";
}

}  // namespace berth::cli
