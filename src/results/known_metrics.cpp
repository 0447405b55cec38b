#include "results/known_metrics.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace berth {
namespace {

constexpr std::array<std::string_view, 31> kSure{
    "acc",    "accuracy", "loss",   "f1",   "auc",        "auroc", "auprc", "bleu",
    "rouge1", "rouge2",   "rougel", "ppl",  "perplexity", "mse",   "rmse",  "mae",
    "iou",    "miou",     "psnr",   "ssim", "fid",        "wer",   "cer",   "mrr",
    "ndcg",   "nll",      "bpb",    "elbo", "acc1",       "acc5",  "mcc"};
constexpr std::array<std::string_view, 12> kUnsure{"precision", "recall", "map",    "em",
                                                   "r2",        "dice",   "reward", "return",
                                                   "top1",      "top5",   "score",  "err"};
constexpr std::array<std::string_view, 14> kLower{"loss", "error", "err", "ppl", "perplexity",
                                                  "mse",  "rmse",  "mae", "fid", "wer",
                                                  "cer",  "nll",   "bpb", "time"};
/// May stand behind the word that matters, as in acc_epoch, f1_macro, accuracy_score.
constexpr std::array<std::string_view, 12> kSuffixes{"score",    "rate",    "epoch", "mean",
                                                     "avg",      "average", "macro", "micro",
                                                     "weighted", "step",    "top1",  "top5"};
constexpr std::array<std::string_view, 4> kHeldOut{"test", "eval", "val", "valid"};
constexpr std::array<std::string_view, 6> kCounters{"epoch", "step",      "global_step",
                                                    "iter",  "iteration", "train/epoch"};

template <std::size_t N>
bool among(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

bool is_number(std::string_view part) {
  return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
}

/// Takes the last part of the name away and returns it.
std::string_view take_part(std::string_view& name) {
  const auto cut = name.find_last_of("_/.@- ");
  const std::string_view part = cut == std::string_view::npos ? name : name.substr(cut + 1);
  name.remove_suffix(cut == std::string_view::npos ? name.size() : name.size() - cut);
  return part;
}

/// The word that says what is measured.
std::string_view main_word(std::string_view name) {
  while (!name.empty()) {
    const std::string_view part = take_part(name);
    if (name.empty() || !(is_number(part) || part.empty() || among(kSuffixes, part))) {
      return part;
    }
  }
  return {};
}

bool has_part(std::string_view name, const auto& test) {
  while (!name.empty()) {
    if (test(take_part(name))) {
      return true;
    }
  }
  return false;
}

}  // namespace

Known known_metric(std::string_view name) {
  const std::string_view word = main_word(name);
  if (among(kSure, word)) {
    return Known::yes;
  }
  const bool error = word == "error" && word.size() != name.size();  // test_error, not error
  return among(kUnsure, word) || error ? Known::maybe : Known::no;
}

bool is_accuracy(std::string_view name) {
  const std::string_view word = main_word(name);
  return word == "acc" || word == "accuracy";
}

bool lower_is_better(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return has_part(lower, [](std::string_view part) { return among(kLower, part); });
}

bool is_counter(std::string_view name) {
  return among(kCounters, name);
}

int metric_rank(std::string_view name) {
  int rank = known_metric(name) == Known::yes ? 0 : 8;
  rank += lower_is_better(name) ? 1 : 0;
  rank += has_part(name, [](std::string_view part) { return part.starts_with("train"); }) ? 4 : 0;
  rank += has_part(name, [](std::string_view part) { return among(kHeldOut, part); }) ? 0 : 2;
  return rank;
}

}  // namespace berth
