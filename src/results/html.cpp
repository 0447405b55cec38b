#include "results/html.hpp"

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "results/html_plots.hpp"
#include "results/sheet.hpp"

namespace berth {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #fff; --soft: #6a737d; --rule: #d9dde2;
  --best: #e6f4ea; --0: #3b6fb6; --1: #d1702b; --2: #3f9a5a; --3: #b8424f; --4: #7d5fb2;
  --5: #8a6d4b; --6: #c2639b; --7: #5f6b78; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e6ea; --paper: #16181c; --soft: #9aa4b0;
  --rule: #343a42; --best: #1d3325; --0: #6f9fe0; --1: #eb965a; --2: #6cc388; --3: #e2717d;
  --4: #a98fdb; --5: #bb9b76; --6: #e08fc0; --7: #95a2b0; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.soft { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--rule);
  white-space: nowrap; }
.right { text-align: right; }
.best td { background: var(--best); font-weight: 600; }
svg { width: 100%; height: auto; display: block; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
.grid { stroke: var(--rule); stroke-width: 1; }
.error { stroke: var(--ink); stroke-width: 1.5; }
polyline { fill: none; stroke-width: 1.6; stroke-opacity: .85; }
.legend span { white-space: nowrap; margin-right: 1.2rem; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem; }
)";

std::string color_rules() {
  std::string out;
  for (std::size_t i = 0; i < kPlotColors; ++i) {
    out += fmt::format(
        ".s{0} {{ fill: var(--{0}); background: var(--{0}); }} .c{0} {{ stroke: var(--{0}); }}\n",
        i);
  }
  return out;
}

std::string table(const Sheet& sheet) {
  const auto css = [&](std::size_t column) {
    return sheet.columns[column].right ? " class=\"right\"" : "";
  };
  std::string out = "<div class=\"wide\"><table>\n<thead><tr>";
  for (std::size_t i = 0; i < sheet.columns.size(); ++i) {
    out += fmt::format("<th{}>{}</th>", css(i), html_text(sheet.columns[i].title));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const Sheet::Row& row : sheet.rows) {
    out += row.best ? "<tr class=\"best\">" : "<tr>";
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      out += fmt::format("<td{}>{}</td>", css(i), html_text(row.cells[i]));
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string legend(const Results& results) {
  std::string out = "<p class=\"legend soft\">";
  for (std::size_t i = 0; i < std::min(results.groups.size(), 4 * kPlotColors); ++i) {
    out += fmt::format("<span><i class=\"s{}\"></i>{}</span>", i % kPlotColors,
                       html_text(group_label(results, results.groups[i])));
  }
  return out + "</p>\n";
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : to_utf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        // What HTML forbids even as a reference.
        out += static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return out;
}

std::string to_html(const Results& results, const ReportFacts& facts) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n";
  out += fmt::format("<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n",
                     html_text(facts.title), kStyle, color_rules());
  out += fmt::format("<h1>{}</h1>\n<p class=\"soft\">{} runs in {} groups, {}</p>\n",
                     html_text(facts.title), results.runs.size(), results.groups.size(),
                     html_text(facts.made_at));
  out += table(make_sheet(results, SheetShape::tall));
  for (const std::string& remark : remarks(results)) {
    out += fmt::format("<p>{}</p>\n", html_text(remark));
  }
  for (std::size_t i = 0; i < results.metrics.size(); ++i) {
    out += fmt::format("<h2>{}</h2>\n{}", html_text(results.metrics[i]), bar_plot(results, i));
    if (const std::string curves = curve_plot(results, i); !curves.empty()) {
      out += legend(results) + curves;
    }
  }
  return out + "</body>\n</html>\n";
}

}  // namespace berth
