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

void Table::make_room(std::size_t room, std::vector<std::size_t>& shown,
                      std::vector<std::size_t>& widths) const {
  const auto gaps = [&] { return kGap * (widths.size() - 1); };
  const auto least = [&](std::size_t k) { return std::min(widths[k], columns_[shown[k]].least); };
  while (true) {
    std::size_t needed = gaps();
    std::size_t first = 0;
    for (std::size_t k = 0; k < shown.size(); ++k) {
      needed += least(k);
      first = columns_[shown[k]].drop > columns_[shown[first]].drop ? k : first;
    }
    if (needed <= room || columns_[shown[first]].drop == 0) {
      break;
    }
    shown.erase(shown.begin() + static_cast<std::ptrdiff_t>(first));
    widths.erase(widths.begin() + static_cast<std::ptrdiff_t>(first));
  }
  // First down to what they need, then, on a screen too narrow even for that, further.
  for (const bool further : {false, true}) {
    while (std::accumulate(widths.begin(), widths.end(), gaps()) > room) {
      std::optional<std::size_t> widest;
      for (std::size_t k = 0; k < widths.size(); ++k) {
        if (widths[k] > (further ? kNarrowest : least(k)) &&
            (!widest || widths[k] > widths[*widest])) {
          widest = k;
        }
      }
      if (!widest) {
        break;
      }
      --widths[*widest];
    }
  }
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
    make_room(*screen.width, shown, widths);
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
