#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.hpp"
#include "results/numbers.hpp"
#include "results/sheet.hpp"

namespace berth {
namespace {

/// Columns of text, near enough for tables that are read as source.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string one_line(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(out, [](unsigned char c) { return c < ' ' || c == 0x7F; }, ' ');
  return out;
}

std::string markdown_cell(std::string_view text) {
  std::string out;
  for (const char c : one_line(text)) {
    if (std::string_view("\\|*_`<>[]").find(c) != std::string_view::npos) {
      out += '\\';
    }
    out += c;
  }
  return out;
}

std::string latex_cell(std::string_view text) {
  std::string out;
  const std::string line = one_line(text);
  for (std::size_t i = 0; i < line.size(); ++i) {
    switch (line[i]) {
      case '\\':
        out += "\\textbackslash{}";
        break;
      case '~':
        out += "\\textasciitilde{}";
        break;
      case '^':
        out += "\\textasciicircum{}";
        break;
      case '#':
      case '$':
      case '%':
      case '&':
      case '_':
      case '{':
      case '}':
        out += '\\';
        out += line[i];
        break;
      default:
        if (std::string_view(line).substr(i).starts_with("±")) {
          out += "$\\pm$";
          i += std::string_view("±").size() - 1;
        } else {
          out += line[i];
        }
    }
  }
  return out;
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string blanks(width - std::min(width, width_of(text)), ' ');
  return right ? blanks + text : text + blanks;
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return std::string(text);
  }
  std::string out = "\"";
  for (const char c : text) {
    out += c == '"' ? "\"\"" : std::string(1, c);
  }
  return out + '"';
}

std::string exact_or_nothing(const std::optional<double>& value) {
  return value ? exact(*value) : "";
}

}  // namespace

std::string to_markdown(const Sheet& sheet) {
  std::vector<std::vector<std::string>> cells;
  std::vector<std::size_t> widths;
  for (const Sheet::Column& column : sheet.columns) {
    widths.push_back(std::max<std::size_t>(3, width_of(markdown_cell(column.title))));
  }
  for (const Sheet::Row& row : sheet.rows) {
    auto& line = cells.emplace_back();
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const std::string text = markdown_cell(row.cells[i]);
      line.push_back(row.best ? fmt::format("**{}**", text) : text);
      widths[i] = std::max(widths[i], width_of(line.back()));
    }
  }
  std::string out = "|";
  std::string rule = "|";
  for (std::size_t i = 0; i < sheet.columns.size(); ++i) {
    const bool right = sheet.columns[i].right;
    out += " " + padded(markdown_cell(sheet.columns[i].title), widths[i], right) + " |";
    rule += fmt::format(" {}{} |", std::string(widths[i] - (right ? 1 : 0), '-'), right ? ":" : "");
  }
  out += "\n" + rule + "\n";
  for (const auto& line : cells) {
    out += "|";
    for (std::size_t i = 0; i < line.size(); ++i) {
      out += " " + padded(line[i], widths[i], sheet.columns[i].right) + " |";
    }
    out += "\n";
  }
  return out;
}

std::string to_latex(const Sheet& sheet) {
  std::string out = "% needs \\usepackage{booktabs}\n\\begin{tabular}{";
  for (const Sheet::Column& column : sheet.columns) {
    out += column.right ? 'r' : 'l';
  }
  out += "}\n\\toprule\n";
  for (std::size_t i = 0; i < sheet.columns.size(); ++i) {
    out += (i > 0 ? " & " : "") + latex_cell(sheet.columns[i].title);
  }
  out += " \\\\\n\\midrule\n";
  for (const Sheet::Row& row : sheet.rows) {
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const std::string text = latex_cell(row.cells[i]);
      out += (i > 0 ? " & " : "") + (row.best ? fmt::format("\\textbf{{{}}}", text) : text);
    }
    out += " \\\\\n";
  }
  return out + "\\bottomrule\n\\end{tabular}\n";
}

std::string to_csv(const Results& results) {
  std::string out;
  for (const std::string& name : results.by) {
    out += csv_cell(name) + ",";
  }
  out += "metric,n,mean,std,min,max,runs,failed,missing,best\n";
  for (const Group& group : results.groups) {
    for (std::size_t i = 0; i < results.metrics.size(); ++i) {
      const Summary& summary = group.summaries[i];
      for (const std::string& value : group.key) {
        out += csv_cell(value) + ",";
      }
      const bool best = group.best && results.metrics[i] == results.best_rule->metric;
      out += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", csv_cell(results.metrics[i]), summary.n,
                         exact_or_nothing(summary.mean), exact_or_nothing(summary.deviation),
                         exact_or_nothing(summary.min), exact_or_nothing(summary.max),
                         group.runs.size(), group.failed, summary.missing, best ? 1 : 0);
    }
  }
  return out;
}

}  // namespace berth
