// berth-simgpu train: a training run that fails the way PyTorch does.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "simgpu/commands.hpp"

namespace berth::simgpu {
namespace {

/// What --on-signal asks for.
struct OnSignal {
  int number = 0;  ///< 0: nothing
  bool exit = false;
};

struct Plan {
  std::uint64_t memory = 0;
  std::uint64_t ramp_ms = 0;
  std::uint64_t time_ms = 0;
  unsigned util = 0;
  std::uint64_t steps = 0;
  std::uint64_t fail_at = 0;  ///< 0: never
  int exit_code = 0;
  std::string fail_text;  ///< raised at fail_at; empty: the usual one
  OnSignal on_signal;
};

/// "USR1:checkpoint" or "TERM:checkpoint-exit".
Outcome<OnSignal> parse_on_signal(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, int>, 5> kSignals{
      {{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"TERM", SIGTERM}, {"INT", SIGINT}, {"HUP", SIGHUP}}};
  const std::size_t colon = text.find(':');
  const std::string_view action =
      colon == text.npos ? "" : std::string_view(text).substr(colon + 1);
  for (const auto& [name, number] : kSignals) {
    if (text.substr(0, colon) == name && (action == "checkpoint" || action == "checkpoint-exit")) {
      return OnSignal{number, action == "checkpoint-exit"};
    }
  }
  return std::unexpected(
      "--on-signal takes USR1, USR2, TERM, INT or HUP with ':checkpoint' or "
      "':checkpoint-exit', not '" +
      text + "'");
}

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
  const auto signal = options.get("on-signal");
  const auto on_signal = signal ? parse_on_signal(*signal) : OnSignal{};
  if (!on_signal) {
    return std::unexpected(on_signal.error());
  }
  const std::string fail_text = options.get("fail").value_or("");
  return Plan{.memory = *memory,
              .ramp_ms = *ramp,
              .time_ms = *time,
              .util = static_cast<unsigned>(*util),
              .steps = *steps,
              // A text to fail with is raised at the last step if no other is named.
              .fail_at = *fail_at == 0 && !fail_text.empty() ? *steps : *fail_at,
              .exit_code = static_cast<int>(*exit_code),
              .fail_text = fail_text,
              .on_signal = *on_signal};
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

/// The signal waits from the beginning for sleep_or_checkpoint, which so cannot miss it.
sigset_t block(const OnSignal& on_signal) {
  sigset_t signals;
  ::sigemptyset(&signals);
  if (on_signal.number != 0) {
    ::sigaddset(&signals, on_signal.number);
    // Never called: berth warns only who has a handler.
    ::signal(on_signal.number, [](int) {});
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  }
  return signals;
}

/// Sleeps until `deadline`, and says "checkpoint" for each signal that comes. False: one said to
/// end.
bool sleep_or_checkpoint(std::uint64_t deadline, const OnSignal& on_signal) {
  const sigset_t signals = block(on_signal);
  while (on_signal.number != 0) {
    const std::uint64_t now = monotonic_ms();
    const std::uint64_t left = deadline > now ? deadline - now : 0;
    const timespec timeout{static_cast<time_t>(left / 1000),
                           static_cast<long>(left % 1000) * 1'000'000};
    if (::sigtimedwait(&signals, nullptr, &timeout) == on_signal.number) {
      std::printf("checkpoint\n");
      std::fflush(stdout);
      if (on_signal.exit) {
        return false;
      }
    } else if (errno == EAGAIN) {
      break;
    }
  }
  sleep_until_ms(deadline);
  return true;
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
  block(plan.on_signal);
  if (directory != nullptr) {
    if (const auto exception = allocate(*directory, cards, plan, start)) {
      return raise("loss = model(batch).mean()", *exception);
    }
  }
  const std::uint64_t begun = std::max(monotonic_ms(), start);
  const std::uint64_t end = std::max(begun, start + plan.time_ms);
  for (std::uint64_t step = 1; step <= plan.steps; ++step) {
    if (!sleep_or_checkpoint(begun + (end - begun) * step / plan.steps, plan.on_signal)) {
      return 0;
    }
    if (step == plan.fail_at) {
      const std::string usual = "RuntimeError: simulated failure at step " + std::to_string(step);
      const int code = raise("loss.backward()", plan.fail_text.empty() ? usual : plan.fail_text);
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
  return sleep_or_checkpoint(end, plan.on_signal) ? plan.exit_code : 0;
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
  const auto options = parse_options(words, {"dir", "memory", "ramp", "time", "util", "steps",
                                             "exit-code", "fail-at", "fail", "on-signal"});
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
