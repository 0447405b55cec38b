#pragma once
// A matrix turns one job of a file into many, and puts each one's values into its texts.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jobspec/yaml_tree.hpp"

namespace berth {

/// The value of one axis in one instance. Borrows from the tree the matrix was read from.
struct Binding {
  std::string_view axis;
  std::string_view value;
};

/// One instance's values, in the order of the axes. Few, so searched one by one.
using Combination = std::vector<Binding>;

/// Replaces `{axis}` for the axes of `combination`. `{{axis}}` becomes `{axis}`; `${axis}`, and
/// every other brace, stays as it is, so shell, JSON and template texts survive.
[[nodiscard]] std::string substitute(std::string_view text, const Combination& combination);

/// Whether `text` has a place for `axis`.
[[nodiscard]] bool mentions(std::string_view text, std::string_view axis);

/// The words that stand in `text` the way an axis would, `{word}`; axes or not.
[[nodiscard]] std::vector<std::string_view> placeholders(std::string_view text);

/// The combinations of a `matrix:`; without one, a single combination of nothing. Borrows from the
/// tree, which must outlive it.
class Matrix {
 public:
  Matrix() = default;

  /// Mistakes are reported; what is returned can be used all the same.
  [[nodiscard]] static Matrix read(const Node& node, Diagnostics& diagnostics);

  [[nodiscard]] bool declared() const { return declared_; }

  /// Every axis there is, those of `include` as well; each once.
  [[nodiscard]] std::vector<std::string_view> axis_names() const;

  /// Saturates at 2^63.
  [[nodiscard]] std::uint64_t size() const;

  /// The first axis varies slowest; `include` comes after the product. Needs index < size().
  [[nodiscard]] Combination at(std::uint64_t index) const;

 private:
  struct Axis {
    std::string_view name;
    std::vector<std::string_view> values;
  };

  void read_axis(const Node::Entry& entry, Diagnostics& diagnostics);
  void read_include(const Node& node, Diagnostics& diagnostics);
  [[nodiscard]] std::uint64_t product() const;

  bool declared_ = false;
  std::vector<Axis> axes_;
  std::vector<Combination> include_;
};

}  // namespace berth
