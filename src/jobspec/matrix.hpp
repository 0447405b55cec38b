#pragma once
// A matrix turns one job of a file into many, and puts each one's values into its texts.

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "jobspec/csv.hpp"
#include "jobspec/other_files.hpp"
#include "jobspec/yaml_tree.hpp"

namespace berth {

/// The value of one axis in one instance. Borrows from the matrix, or what that was read from.
struct Binding {
  std::string_view axis;
  std::string_view value;
};

/// One instance's values, in the order of the axes. Few, so searched one by one.
using Combination = std::vector<Binding>;

/// Replaces `{axis}` for the axes of `combination`. `{{axis}}` becomes `{axis}`; `${axis}`, and
/// every other brace, stays as it is, so shell, JSON and template texts survive.
[[nodiscard]] std::string substitute(std::string_view text, const Combination& combination);

/// The same for a command that bash reads: each value is what it is there, whatever signs are in
/// it, and stands inside of quotes that the text has already or gets some of its own.
[[nodiscard]] std::string substitute_in_shell(std::string_view text,
                                              const Combination& combination);

/// Whether `text` has a place for `axis`.
[[nodiscard]] bool mentions(std::string_view text, std::string_view axis);

/// The words that stand in `text` the way an axis would, `{word}`; axes or not.
[[nodiscard]] std::vector<std::string_view> placeholders(std::string_view text);

/// Whether `name` can name an axis.
[[nodiscard]] bool is_axis_name(std::string_view name);

/// `name` with the values of the combination put in, and those it does not mention behind it.
[[nodiscard]] std::string instance_name(std::string_view name, const Combination& combination);

struct AxisValues {
  std::string name;
  std::vector<std::string> values;
};

/// The combinations of a `matrix:`; without one, a single combination of nothing. Borrows from the
/// tree, which must outlive it. Copies share what was made for the first.
class Matrix {
 public:
  Matrix() = default;

  /// Mistakes are reported; what is returned can be used all the same.
  [[nodiscard]] static Matrix read(const Node& node, Diagnostics& diagnostics,
                                   const OtherFiles& others = {});

  // The same, part by part and from no file. Each part is combined with those before it.
  [[nodiscard]] Status add_axis(AxisValues axis);
  /// Axes that go together: the first value of each, the second of each, ….
  [[nodiscard]] Status add_zip(std::vector<AxisValues> axes);
  [[nodiscard]] Status add_table(CsvTable table);
  /// One more, behind all others. Needs a value for each axis there is.
  [[nodiscard]] Status add_combination(std::vector<std::pair<std::string, std::string>> values);

  [[nodiscard]] bool declared() const { return declared_; }

  /// Every axis there is, those of `include` as well; each once.
  [[nodiscard]] std::vector<std::string_view> axis_names() const;

  /// Saturates at 2^63.
  [[nodiscard]] std::uint64_t size() const;

  /// The first axis varies slowest; `include` comes after the product. Needs index < size().
  [[nodiscard]] Combination at(std::uint64_t index) const;

 private:
  /// Axes that vary together, one alone most of the time.
  struct Factor {
    std::vector<std::string_view> axes;
    std::vector<std::string_view> values;  ///< row by row
    [[nodiscard]] std::size_t rows() const { return values.size() / axes.size(); }
  };

  void read_axis(const Node::Entry& entry, Diagnostics& diagnostics);
  void read_include(const Node& node, Diagnostics& diagnostics);
  void read_zip(const Node& node, Diagnostics& diagnostics);
  void read_one_zip(const Node& node, Diagnostics& diagnostics);
  void read_csv(const Node& node, const OtherFiles& others, Diagnostics& diagnostics);
  [[nodiscard]] Status check_names(const std::vector<std::string>& names) const;
  [[nodiscard]] bool has_axis(std::string_view name) const;
  void add_factor(const std::vector<std::string>& names, std::vector<std::string_view> values);
  std::string_view keep(std::string text);
  [[nodiscard]] std::uint64_t product() const;

  bool declared_ = false;
  std::vector<Factor> factors_;
  std::vector<Combination> include_;
  std::shared_ptr<std::deque<std::string>> made_;  ///< texts that stand in no tree
};

}  // namespace berth
