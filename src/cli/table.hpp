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
    std::size_t least = 3;  ///< columns it needs to be of use, where it has as many
    int drop = 0;           ///< the highest is left out first where there is no room; 0: never
  };
  struct Cell {
    std::string text;  ///< printable
    Style style = Style::plain;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// One cell per column.
  void add(std::vector<Cell> row);
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  /// Lines with a header, without trailing blanks. Where the screen is too narrow for what the
  /// columns need at least, some are left out; then the widest gives way, as often as needed. A
  /// column that is empty in every row is left out.
  [[nodiscard]] std::string render(const Screen& screen) const;

 private:
  void make_room(std::size_t room, std::vector<std::size_t>& shown,
                 std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace berth::cli
