// berth results.

#include <algorithm>
#include <memory>

#include "cli/define.hpp"

namespace berth::cli {
namespace {

/// "a,b" in parts.
std::vector<std::string> in_words(const std::string& text) {
  std::vector<std::string> words;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    if (!word.empty()) {
      words.emplace_back(word);
    }
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  }
  return words;
}

bool is_id_word(const std::string& word) {
  return word.find_first_not_of("0123456789,-@~") == std::string::npos;
}

void add_metric(ResultsOptions& options, const std::string& text) {
  const auto equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (name.empty()) {
    throw CLI::ValidationError("--metric", "write NAME or NAME=PATTERN");
  }
  options.request.metrics.push_back(name);
  if (equals != std::string::npos) {
    options.log_metrics.push_back(
        {name, checked("--metric", Pattern::compile(text.substr(equals + 1)))});
  }
}

ResultsFormat format_from(const std::string& text) {
  constexpr std::pair<std::string_view, ResultsFormat> kFormats[] = {
      {"table", ResultsFormat::table}, {"markdown", ResultsFormat::markdown},
      {"md", ResultsFormat::markdown}, {"latex", ResultsFormat::latex},
      {"tex", ResultsFormat::latex},   {"csv", ResultsFormat::csv},
      {"json", ResultsFormat::json}};
  for (const auto& [name, format] : kFormats) {
    if (name == text) {
      return format;
    }
  }
  if (text == "html") {
    throw CLI::ValidationError("--format", "a report in HTML is written by --html FILE");
  }
  throw CLI::ValidationError(
      "--format", fmt::format("'{}' is not table, markdown, latex, csv or json", printable(text)));
}

void metric_options(CLI::App& sub, const std::shared_ptr<ResultsOptions>& in) {
  list_option(sub, "--metric", "NAME[=REGEX]",
              "show this one; with REGEX, find it in logs by its first group; repeatable",
              [in](const auto& t) { add_metric(*in, t); });
  option(sub, "--take", "last|best|max|min|first|mean", "which value stands for a run (last)",
         [in](const auto& t) {
           const auto take = take_from(t);
           if (!take) {
             throw CLI::ValidationError("--take", "is last, best, max, min, first or mean");
           }
           in->request.take = *take;
         });
  list_option(sub, "--file", "PATH",
              "read JSON, JSON lines or CSV, as out/{name}/metrics.json; repeatable",
              [in](const auto& t) { in->files_of_runs.push_back(t); });
  sub.add_flag("--partial", in->request.partial,
               "count what failed or unfinished runs have told, too");
}

void group_options(CLI::App& sub, const std::shared_ptr<ResultsOptions>& in) {
  option(sub, "--by", "PARAMS", "group by these, as lr,algorithm (all but those of --over)",
         [in](const auto& t) { in->request.by = in_words(t); });
  option(sub, "--over", "PARAMS", "average over these (seed)",
         [in](const auto& t) { in->request.over = in_words(t); });
  option(sub, "--best", "max:METRIC", "find the best group and run; also min:METRIC, METRIC",
         [in](const auto& t) { in->request.best = checked("--best", parse_best(t)); });
}

void output_options(CLI::App& sub, const std::shared_ptr<ResultsOptions>& in) {
  option(sub, "--format", "NAME", "table, markdown, latex, csv or json (table)",
         [in](const auto& t) { in->format = format_from(t); });
  sub.add_flag_callback(
      "--json", [in] { in->format = ResultsFormat::json; }, "the same as --format json");
  sub.add_flag("--wide", in->wide, "a column for each metric instead of a line");
  option(sub, "-o,--output", "FILE", "write it there", [in](const auto& t) { in->output = t; });
  option(sub, "--html", "FILE", "also write a report with plots, in one file",
         [in](const auto& t) { in->html = t; });
  option(sub, "--title", "TEXT", "of the report", [in](const auto& t) { in->title = t; });
  color_option(sub);
  pager_flag(sub);
}

}  // namespace

void define_results(CLI::App& app, Action& action) {
  CLI::App& sub =
      *command(app, "results", "Metrics of runs, as mean ± deviation over seeds",
               "  berth results                            the last batch\n"
               "  berth results 3-26 --by algorithm,lr --best max:test_acc\n"
               "  berth results sweep.yaml --format latex -o table.tex\n"
               "  berth results --batch 4 --metric acc='Acc(?:uracy)?[:= ]+([0-9.]+)'\n"
               "  berth results --file 'out/{name}/metrics.json' --html report.html\n"
               "Accuracies, losses and their kind are found in logs without being told how.");
  const auto in = std::make_shared<ResultsOptions>();
  const auto words = std::make_shared<std::vector<std::string>>();
  sub.add_option("WHAT", *words, "ids and ranges, as 3,5-9, or job files; default: the last batch")
      ->type_name("");
  option(sub, "--batch", "ID", "the jobs of this batch", [in](const auto& t) {
    in->batch = checked_number<std::uint64_t>("--batch", t, "the number of a batch");
  });
  metric_options(sub, in);
  group_options(sub, in);
  output_options(sub, in);
  sub.callback([in, words, &action] {
    std::vector<std::string> ids;
    for (const std::string& word : *words) {
      (is_id_word(word) ? ids : in->job_files).push_back(word);
    }
    if (static_cast<int>(!ids.empty()) + static_cast<int>(!in->job_files.empty()) +
            static_cast<int>(in->batch != 0) >
        1) {
      throw CLI::ValidationError("WHAT", "give ids, job files or --batch, one of them");
    }
    if (!ids.empty()) {
      in->ids = ids_of(ids);
    }
    action = [in] { return run_results(*in); };
  });
}

}  // namespace berth::cli
