// berth results: what the runs of a sweep have come to.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.hpp"
#include "cli/commands.hpp"
#include "cli/daemon.hpp"
#include "cli/pager.hpp"
#include "cli/result_runs.hpp"
#include "cli/table.hpp"
#include "results/html.hpp"
#include "results/sheet.hpp"

namespace berth::cli {
namespace {

Status write_file(const std::string& path, std::string_view text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));  // NOLINT
  while (fd && !text.empty()) {
    const ssize_t size = ::write(fd.get(), text.data(), text.size());
    if (size < 0 && errno != EINTR) {
      break;
    }
    text.remove_prefix(size < 0 ? 0 : static_cast<std::size_t>(size));
  }
  if (!fd || !text.empty()) {
    return fail_errno(fmt::format("cannot write '{}'", printable(path)), errno);
  }
  return {};
}

std::string terminal_table(const Results& results, SheetShape shape, const Screen& screen) {
  constexpr std::size_t kWhole = 99;
  const Sheet sheet = make_sheet(results, shape);
  std::vector<Table::Column> columns;
  for (std::size_t i = 0; i < sheet.columns.size(); ++i) {
    const Sheet::Column& column = sheet.columns[i];
    columns.push_back({printable(column.title), column.right ? Align::right : Align::left,
                       i < results.by.size() ? 6 : kWhole});
  }
  Table table(std::move(columns));
  for (const Sheet::Row& row : sheet.rows) {
    std::vector<Table::Cell> cells;
    for (const std::string& text : row.cells) {
      cells.push_back({printable(text), row.best ? Style::bold : Style::plain});
    }
    table.add(std::move(cells));
  }
  return table.render(screen);
}

std::string remark_lines(const Results& results) {
  std::string out;
  for (const std::string& remark : remarks(results)) {
    out += printable(remark) + "\n";
  }
  return out;
}

std::string rendered(const Results& results, const ResultsOptions& options, const Screen& screen) {
  const SheetShape shape = options.wide ? SheetShape::wide : SheetShape::tall;
  switch (options.format) {
    case ResultsFormat::table: {
      const std::string notes = remark_lines(results);
      return terminal_table(results, shape, screen) + (notes.empty() ? "" : "\n" + notes);
    }
    case ResultsFormat::markdown:
      return to_markdown(make_sheet(results, shape));
    case ResultsFormat::latex:
      return to_latex(make_sheet(results, shape));
    case ResultsFormat::csv:
      return to_csv(results);
    case ResultsFormat::json:
      return to_json(results);
  }
  return {};
}

Status check_found(const Results& results) {
  if (!results.metrics.empty()) {
    return {};
  }
  return fail(ErrorCode::not_found,
              fmt::format("{} run{} no metric; tell where to look: --metric "
                          "acc='Acc[:= ]+([0-9.]+)' for logs, --file 'out/{{name}}/metrics.json' "
                          "for files",
                          results.runs.size(), results.runs.size() == 1 ? " tells" : "s tell"));
}

}  // namespace

Outcome run_results(const ResultsOptions& options) {
  TRY_ASSIGN(Daemon daemon, Daemon::open());
  TRY_ASSIGN(std::vector<Run> runs, gather_runs(daemon, options));
  TRY_ASSIGN(const Results results, aggregate(std::move(runs), options.request));
  TRY(check_found(results));
  if (!options.html.empty()) {
    const ReportFacts facts{options.title.empty() ? "Results" : options.title,
                            date_time(read_clock().wall)};
    TRY(write_file(options.html, to_html(results, facts)));
  }
  if (!options.output.empty()) {
    TRY(write_file(options.output, rendered(results, options, Screen{})));
    return 0;
  }
  const Screen screen = look_at_stdout();
  print_paged(rendered(results, options, screen), screen);
  return 0;
}

}  // namespace berth::cli
