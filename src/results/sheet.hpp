#pragma once
// Results as a table, and the table in the formats that people paste.

#include <cstdint>
#include <string>
#include <vector>

#include "results/aggregate.hpp"

namespace berth {

enum class SheetShape : std::uint8_t {
  tall,  ///< a line for each group and metric, with all that is known of it
  wide,  ///< a line for each group, a column for each metric
};

struct Sheet {
  struct Column {
    std::string title;
    bool right = false;
  };
  struct Row {
    std::vector<std::string> cells;
    bool best = false;
  };
  std::vector<Column> columns;
  std::vector<Row> rows;
};

/// What is not known is "-".
[[nodiscard]] Sheet make_sheet(const Results& results, SheetShape shape);

/// What a table does not say: the best, the runs that failed, those that tell nothing.
[[nodiscard]] std::vector<std::string> remarks(const Results& results);

[[nodiscard]] std::string to_markdown(const Sheet& sheet);
/// A tabular of the package booktabs; its first line says so.
[[nodiscard]] std::string to_latex(const Sheet& sheet);
/// A line for each group and metric, with numbers in full.
[[nodiscard]] std::string to_csv(const Results& results);
/// Everything, each run included.
[[nodiscard]] std::string to_json(const Results& results);

}  // namespace berth
