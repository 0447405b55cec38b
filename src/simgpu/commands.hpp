#pragma once
// The subcommands of berth-simgpu. Each takes the words after its name and returns an exit code:
// 0 done, 1 failed, 2 wrong usage.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/state.hpp"

namespace berth::simgpu {

using Words = std::vector<std::string>;

/// "--key value" and "--key=value", taken apart from the other words.
struct Options {
  std::map<std::string, std::string, std::less<>> values;
  Words words;

  [[nodiscard]] std::optional<std::string> get(std::string_view key) const;
  [[nodiscard]] Outcome<std::uint64_t> size(std::string_view key, std::uint64_t otherwise) const;
  [[nodiscard]] Outcome<std::uint64_t> milliseconds(std::string_view key,
                                                    std::uint64_t otherwise) const;
  [[nodiscard]] Outcome<std::uint64_t> number(std::string_view key, std::uint64_t otherwise,
                                              std::uint64_t max) const;
};
[[nodiscard]] Outcome<Options> parse_options(const Words& words,
                                             const std::vector<std::string_view>& allowed);

/// The state directory: `option` if given, else BERTH_SIM_DIR.
[[nodiscard]] Outcome<Directory> find_directory(const std::optional<std::string>& option);

/// Prints "berth-simgpu: <message>" and returns `code`.
int complain(const std::string& message, int code = 1);

/// Sleeps until the monotonic clock shows this many milliseconds.
void sleep_until_ms(std::uint64_t deadline);
[[nodiscard]] std::uint64_t monotonic_ms();

int run_init(const Words& words);
int run_show(const Words& words);
int run_set(const Words& words);
int run_hold(const Words& words);
int run_train(const Words& words);

/// The cards a CUDA program would see: CUDA_VISIBLE_DEVICES takes indices and (beginnings of)
/// UUIDs; the first entry that names no card, or one twice, ends the list. Unset shows all.
[[nodiscard]] std::vector<Card> visible_cards(const std::vector<Card>& all, const char* variable);

/// The message of PyTorch's torch.OutOfMemoryError.
[[nodiscard]] std::string out_of_memory_text(unsigned ordinal, const Card& card, const Grant& grant,
                                             std::uint64_t wanted, unsigned self);

}  // namespace berth::simgpu
