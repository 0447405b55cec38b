#include "cli/program_doc.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string_view>

#include "core/job.hpp"
#include "core/rule_table.hpp"

namespace berth::cli {
namespace {

constexpr std::string_view kExamples = "Examples:\n";

/// "auto|always|never": the words themselves. Types in capitals stand for something.
bool lists_words(std::string_view type) {
  return type.find('|') != std::string_view::npos &&
         std::ranges::all_of(type, [](char c) { return (c >= 'a' && c <= 'z') || c == '|'; });
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  while (true) {
    const auto at = text.find(separator);
    out.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) {
      return out;
    }
    text.remove_prefix(at + 1);
  }
}

std::vector<std::string> state_names() {
  std::vector<std::string> out;
  for (const JobState state :
       {JobState::queued, JobState::running, JobState::paused, JobState::succeeded,
        JobState::failed, JobState::killed, JobState::cancelled}) {
    out.emplace_back(to_string(state));
  }
  return out;
}

void classify(OptionDoc& doc, const std::string& kind) {
  const std::string& name = doc.names.back();
  if (lists_words(kind)) {
    doc.completes = Completes::words;
    doc.words = split(kind, '|');
  } else if (kind == "STATES") {
    doc.completes = Completes::words;
    doc.words = state_names();
  } else if (kind == "KEY") {
    doc.completes = Completes::words;
    for (const RuleDef& rule : rule_definitions()) {
      doc.words.emplace_back(rule.key);
    }
  } else if (name == "--queue") {
    doc.completes = Completes::queues;
  } else if (kind == "IDS" || (kind == "ID" && name != "--batch")) {
    doc.completes = Completes::jobs;
  } else if (kind == "FILE") {
    doc.completes = Completes::files;
  } else if (kind == "DIR") {
    doc.completes = Completes::directories;
  } else if (kind == "CMD") {
    doc.completes = Completes::command;
  }
}

OptionDoc describe_option(const CLI::Option& option) {
  OptionDoc doc;
  doc.help = option.get_description();
  doc.required = option.get_required();
  doc.type = option.get_type_name();
  if (option.get_positional()) {
    doc.names = {option.get_name(true, false)};
    doc.repeatable = option.get_expected_max() > 1;
    classify(doc, doc.type.empty() ? doc.names[0] : doc.type);
    return doc;
  }
  for (const std::string& name : option.get_snames()) {
    doc.names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    doc.names.push_back("--" + name);
  }
  doc.flag = option.get_expected_min() == 0;
  if (doc.flag) {
    doc.type.clear();
  }
  doc.repeatable = !doc.flag && option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  classify(doc, doc.type);
  return doc;
}

CommandDoc describe_command(const CLI::App& app) {
  CommandDoc doc;
  doc.name = app.get_parent() == nullptr ? "" : app.get_name();
  doc.summary = app.get_description();
  doc.group = app.get_group();
  doc.examples = app.get_footer();
  if (doc.examples.starts_with(kExamples)) {
    doc.examples.erase(0, kExamples.size());
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) {
      continue;  // hidden
    }
    (option->get_positional() ? doc.positionals : doc.options).push_back(describe_option(*option));
  }
  return doc;
}

}  // namespace

ProgramDoc describe_program(const CLI::App& app) {
  ProgramDoc program;
  program.main = describe_command(app);
  std::vector<std::string> groups;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_group().empty()) {
      continue;  // hidden
    }
    program.commands.push_back(describe_command(*sub));
    if (std::ranges::find(groups, sub->get_group()) == groups.end()) {
      groups.push_back(sub->get_group());
    }
  }
  std::ranges::stable_sort(program.commands, {}, [&](const CommandDoc& command) {
    return std::ranges::find(groups, command.group) - groups.begin();
  });
  return program;
}

}  // namespace berth::cli
