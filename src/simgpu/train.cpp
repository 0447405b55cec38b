// berth-simgpu train: a training run that fails the way PyTorch does.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "simgpu/commands.hpp"

namespace berth::simgpu {
namespace {

struct Plan {
  std::uint64_t memory = 0;
  std::uint64_t ramp_ms = 0;
  std::uint64_t time_ms = 0;
  unsigned util = 0;
  std::uint64_t steps = 0;
  std::uint64_t fail_at = 0;  ///< 0: never
  int exit_code = 0;
};

Outcome<Plan> make_plan(const Options& options) {
  const auto memory = options.size("memory", 1ULL << 30U);
  const auto ramp = options.milliseconds("ramp", 0);
  const auto time = options.milliseconds("time", 1000);
  const auto util = options.number("util", 80, 100);
  const auto steps = options.number("steps", 10, 100'000'000);
  const auto fail_at = options.number("fail-at", 0, 100'000'000);
  const auto exit_code = options.number("exit-code", 0, 255);
  for (const auto* value : {&memory, &ramp, &time, &util, &steps, &fail_at, &exit_code}) {
    if (!*value) {
      return std::unexpected(value->error());
    }
  }
  return Plan{*memory,
              *ramp,
              *time,
              static_cast<unsigned>(*util),
              *steps,
              *fail_at,
              static_cast<int>(*exit_code)};
}

/// The end of a Python program that did not catch its exception.
int raise(const char* line, const std::string& exception) {
  std::fflush(stdout);
  std::fprintf(stderr,
               "Traceback (most recent call last):\n"
               "  File \"train.py\", line 42, in <module>\n"
               "    %s\n"
               "%s\n",
               line, exception.c_str());
  return 1;
}

/// Takes the memory in equal pieces spread over the ramp. Returns what was raised, if anything.
std::optional<std::string> allocate(const Directory& directory, const std::vector<Card>& cards,
                                    const Plan& plan, std::uint64_t start) {
  constexpr std::uint64_t kPieceMs = 50;
  const std::uint64_t pieces = std::clamp<std::uint64_t>(plan.ramp_ms / kPieceMs, 1, 20);
  std::uint64_t taken = 0;
  for (std::uint64_t piece = 1; piece <= pieces; ++piece) {
    const std::uint64_t target = piece == pieces ? plan.memory : plan.memory / pieces * piece;
    Allocation more;
    more.bytes = target - taken;
    more.util = piece == pieces ? plan.util : 0;
    for (unsigned ordinal = 0; ordinal < cards.size(); ++ordinal) {
      const auto grant = directory.allocate(cards[ordinal].index, more);
      if (!grant) {
        return "RuntimeError: CUDA error: unknown error (" + grant.error() + ")";
      }
      if (!grant->granted) {
        return "torch.OutOfMemoryError: " + out_of_memory_text(ordinal, cards[ordinal], *grant,
                                                               more.bytes,
                                                               static_cast<unsigned>(::getpid()));
      }
    }
    taken = target;
    if (plan.ramp_ms > 0) {
      sleep_until_ms(start + plan.ramp_ms * piece / pieces);
    }
  }
  return std::nullopt;
}

bool is_lost(const Directory& directory, const std::vector<Card>& cards) {
  return std::ranges::any_of(cards, [&](const Card& card) {
    const auto now = directory.card(card.index);
    return !now || now->error != 0;
  });
}

int train(const Directory* directory, const std::vector<Card>& cards, const Plan& plan) {
  const std::uint64_t start = monotonic_ms();
  if (directory != nullptr) {
    if (const auto exception = allocate(*directory, cards, plan, start)) {
      return raise("loss = model(batch).mean()", *exception);
    }
  }
  const std::uint64_t begun = std::max(monotonic_ms(), start);
  const std::uint64_t end = std::max(begun, start + plan.time_ms);
  for (std::uint64_t step = 1; step <= plan.steps; ++step) {
    sleep_until_ms(begun + (end - begun) * step / plan.steps);
    if (step == plan.fail_at) {
      const int code = raise("loss.backward()",
                             "RuntimeError: simulated failure at step " + std::to_string(step));
      return plan.exit_code == 0 ? code : plan.exit_code;
    }
    if (directory != nullptr && is_lost(*directory, cards)) {
      return raise("loss.backward()", "torch.AcceleratorError: CUDA error: GPU is lost");
    }
    const double progress = static_cast<double>(step) / static_cast<double>(plan.steps);
    std::printf("step %llu/%llu loss=%.4f acc=%.4f\n", static_cast<unsigned long long>(step),
                static_cast<unsigned long long>(plan.steps),
                0.05 + 2.25 * std::exp(-3.0 * progress), 0.98 - 0.88 * std::exp(-3.0 * progress));
    std::fflush(stdout);
  }
  sleep_until_ms(end);
  return plan.exit_code;
}

}  // namespace

std::vector<Card> visible_cards(const std::vector<Card>& all, const char* variable) {
  if (variable == nullptr) {
    return all;
  }
  std::vector<Card> visible;
  std::string_view rest(variable);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view entry = rest.substr(0, comma);
    rest.remove_prefix(comma == rest.npos ? rest.size() : comma + 1);
    std::vector<Card> matches;
    for (const Card& card : all) {
      if (parse_number(entry) == card.index ||
          (entry.starts_with("GPU-") && card.uuid.starts_with(entry))) {
        matches.push_back(card);
      }
    }
    const bool again = matches.size() == 1 && std::ranges::any_of(visible, [&](const Card& card) {
                         return card.index == matches[0].index;
                       });
    if (matches.size() != 1 || again) {
      break;
    }
    visible.push_back(matches[0]);
  }
  return visible;
}

std::string out_of_memory_text(unsigned ordinal, const Card& card, const Grant& grant,
                               std::uint64_t wanted, unsigned self) {
  std::string text = "CUDA out of memory. Tried to allocate " + format_torch_size(wanted) +
                     ". GPU " + std::to_string(ordinal) + " has a total capacity of " +
                     format_torch_size(card.memory) + " of which " + format_torch_size(grant.free) +
                     " is free. ";
  std::uint64_t own = 0;
  for (const Allocation& user : grant.users) {
    if (user.pid == self) {
      own = user.bytes;
    } else {
      text += "Process " + std::to_string(user.pid) + " has " + format_torch_size(user.bytes) +
              " memory in use. ";
    }
  }
  text +=
      "Including non-PyTorch memory, this process has " + format_torch_size(own) +
      " memory in use. Of the allocated memory " + format_torch_size(own) +
      " is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated. If reserved "
      "but unallocated memory is large try setting "
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
      "documentation for Memory Management  "
      "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)";
  return text;
}

int run_train(const Words& words) {
  const auto options = parse_options(
      words, {"dir", "memory", "ramp", "time", "util", "steps", "exit-code", "fail-at"});
  if (!options || !options->words.empty()) {
    return complain(
        options ? "train takes only options, not '" + options->words[0] + "'" : options.error(), 2);
  }
  const auto plan = make_plan(*options);
  if (!plan) {
    return complain(plan.error(), 2);
  }
  if (plan->memory == 0) {
    return train(nullptr, {}, *plan);
  }
  const auto directory = find_directory(options->get("dir"));
  const auto all = directory ? directory->cards() : std::unexpected(directory.error());
  const auto cards =
      all ? visible_cards(*all, std::getenv("CUDA_VISIBLE_DEVICES")) : std::vector<Card>{};
  if (cards.empty()) {
    return raise("model = Model().cuda()",
                 "RuntimeError: CUDA error: no CUDA-capable device is detected");
  }
  if (is_lost(*directory, cards)) {
    return raise("model = Model().cuda()", "torch.AcceleratorError: CUDA error: GPU is lost");
  }
  const int code = train(&*directory, cards, *plan);
  for (const Card& card : cards) {
    directory->release(card.index);
  }
  return code;
}

}  // namespace berth::simgpu
