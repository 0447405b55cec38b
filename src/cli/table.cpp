#include "cli/table.hpp"

#include <algorithm>
#include <numeric>

#include "base/assert.hpp"

namespace berth::cli {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kNarrowest = 3;

}  // namespace

void Table::add(std::vector<Cell> row) {
  BERTH_ASSERT(row.size() == columns_.size());
  rows_.push_back(std::move(row));
}

std::string Table::render(const Screen& screen) const {
  std::vector<std::size_t> shown;
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = 0;
    for (const auto& row : rows_) {
      width = std::max(width, display_width(row[i].text));
    }
    if (width > 0 || rows_.empty()) {
      shown.push_back(i);
      widths.push_back(std::max(width, display_width(columns_[i].title)));
    }
  }
  if (screen.width && !widths.empty()) {
    const std::size_t gaps = kGap * (widths.size() - 1);
    while (std::accumulate(widths.begin(), widths.end(), gaps) > *screen.width) {
      const auto widest = std::ranges::max_element(widths);
      if (*widest <= kNarrowest) {
        break;
      }
      --*widest;
    }
  }
  std::string out;
  const auto line = [&](const auto& cell_at) {
    std::string text;
    std::size_t blanks = 0;  // owed, and dropped at the end of a line
    for (std::size_t k = 0; k < shown.size(); ++k) {
      const Cell cell = cell_at(shown[k]);
      const std::string cut = shorten(cell.text, widths[k]);
      const std::size_t padding = widths[k] - std::min(widths[k], display_width(cut));
      const bool right = columns_[shown[k]].align == Align::right;
      if (!cut.empty()) {
        text += std::string(blanks + (right ? padding : 0), ' ') + styled(cut, cell.style, screen);
        blanks = (right ? 0 : padding) + kGap;
      } else {
        blanks += padding + kGap;
      }
    }
    out += text + "\n";
  };
  line([&](std::size_t i) { return Cell{columns_[i].title, Style::dim}; });
  for (const auto& row : rows_) {
    line([&](std::size_t i) { return row[i]; });
  }
  return out;
}

}  // namespace berth::cli
