#pragma once
// Tables that fit the terminal.

#include <string>
#include <vector>

#include "cli/terminal.hpp"

namespace berth::cli {

enum class Align : std::uint8_t { left, right };

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::left;
  };
  struct Cell {
    std::string text;  ///< printable
    Style style = Style::plain;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// One cell per column.
  void add(std::vector<Cell> row);
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  /// Lines with a header, without trailing blanks. Where the screen is too narrow, the widest
  /// column gives way, as often as needed. A column that is empty in every row is left out.
  [[nodiscard]] std::string render(const Screen& screen) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace berth::cli
