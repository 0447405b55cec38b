#pragma once
// Tables of comma-separated values: the first line names the columns.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jobspec/diagnostic.hpp"

namespace berth {

struct CsvTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  ///< each as long as the header
};

/// Fields may be in double quotes, where a doubled quote is one and commas and line ends count for
/// nothing; others lose the blanks around them. Empty lines are left out. Mistakes are reported
/// with their line; rows that have them are missing.
[[nodiscard]] CsvTable parse_csv(std::string_view text, Diagnostics& diagnostics);

}  // namespace berth
