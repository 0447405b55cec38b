#pragma once
// Names that mean a metric wherever they stand: accuracy, loss and their kind.

#include <string_view>

namespace berth {

enum class Known : std::uint8_t {
  no,
  maybe,  ///< also the name of settings (precision: 16): only a number with a fraction counts
  yes,
};

/// `name` in lower case, as in val_loss, eval/f1, acc@1.
[[nodiscard]] Known known_metric(std::string_view name);
/// Whether a fraction such as 93/100 is a value of it.
[[nodiscard]] bool is_accuracy(std::string_view name);
/// loss, error, perplexity and the like.
[[nodiscard]] bool lower_is_better(std::string_view name);
/// What counts the steps of a run: epoch, step, iteration.
[[nodiscard]] bool is_counter(std::string_view name);
/// How much people want to see it: held-out before training, accuracy before loss. Less is more.
[[nodiscard]] int metric_rank(std::string_view name);

}  // namespace berth
