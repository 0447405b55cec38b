#include "jobspec/csv.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace berth {
namespace {

class CsvReader {
 public:
  CsvReader(std::string_view text, Diagnostics& diagnostics)
      : text_(without_mark(text)), diagnostics_(diagnostics) {}

  CsvTable read() {
    CsvTable table;
    while (at_ < text_.size() && !diagnostics_.full()) {
      const Position begin{line_, 1};
      auto fields = record();
      if (fields.size() == 1 && fields[0].empty()) {
        continue;
      }
      if (table.header.empty()) {
        table.header = std::move(fields);
      } else if (fields.size() != table.header.size()) {
        diagnostics_.add(begin,
                         fmt::format("this row has {} field{} and the header {}", fields.size(),
                                     fields.size() == 1 ? "" : "s", table.header.size()));
      } else {
        table.rows.push_back(std::move(fields));
      }
    }
    if (table.rows.empty() && diagnostics_.empty()) {
      diagnostics_.add({}, table.header.empty()
                               ? "there is nothing in this table; its first line names the axes"
                               : "this table has a header and no rows");
    }
    return table;
  }

 private:
  std::vector<std::string> record() {
    std::vector<std::string> fields;
    while (true) {
      fields.push_back(field());
      if (at_ == text_.size()) {
        return fields;
      }
      const char behind = text_[at_++];
      if (behind != ',') {
        return fields;
      }
    }
  }

  /// Up to the comma or the line feed behind it, or the end.
  std::string field() {
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '"') {
      return quoted();
    }
    const auto end = std::min(text_.find_first_of(",\n", at_), text_.size());
    auto value = text_.substr(at_, end - at_);
    at_ = end;
    count_line();
    const auto last = value.find_last_not_of(" \t\r");
    return std::string(value.substr(0, last == std::string_view::npos ? 0 : last + 1));
  }

  std::string quoted() {
    const Position begin = place();
    std::string value;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"' && text_.substr(at_ + 1).starts_with('"')) {
        ++at_;
      } else if (text_[at_] == '"') {
        break;
      }
      if (text_[at_] == '\n') {
        ++line_;
        line_begin_ = at_ + 1;
      }
      value += text_[at_];
    }
    if (at_ == text_.size()) {
      diagnostics_.add(begin, "this quoted field has no end");
      return value;
    }
    ++at_;
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '\r') {
      ++at_;
    }
    if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n') {
      diagnostics_.add(place(), "a comma or the end of the line must follow the closing quote");
      at_ = std::min(text_.find_first_of(",\n", at_), text_.size());
    }
    count_line();
    return value;
  }

  void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t", at_), text_.size()); }

  /// The line feed that ends a record is taken by record().
  void count_line() {
    if (at_ < text_.size() && text_[at_] == '\n') {
      ++line_;
      line_begin_ = at_ + 1;
    }
  }

  [[nodiscard]] Position place() const {
    return {line_, static_cast<std::uint32_t>(at_ - line_begin_ + 1)};
  }

  std::string_view text_;
  Diagnostics& diagnostics_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  std::size_t line_begin_ = 0;
};

}  // namespace

CsvTable parse_csv(std::string_view text, Diagnostics& diagnostics) {
  return CsvReader(text, diagnostics).read();
}

}  // namespace berth
