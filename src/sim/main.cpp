// berth-sim: runs seeds of the deterministic simulation and reports the first that fails.

#include <charconv>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "sim/simulation.hpp"

namespace berth::sim {
namespace {

constexpr std::string_view kHelp =
    R"(Usage: berth-sim [--seed N | --seeds FROM..TO] [--steps N] [--trace FILE] [--plant BUG]

Runs the scheduler's real core and engine in a simulated world: virtual clock, store,
runners, GPUs, clients and crashes, all decided by the seed.

  --seed N         run one seed (default 1)
  --seeds A..B     run the seeds from A to B and stop at the first that fails
  --steps N        requests the clients make (default 24)
  --trace FILE     write what happened, line by line; '-' for standard output
  --plant BUG      plant a bug on purpose: lost_exit, double_start or leaked_claim
  --help           show this text

Exit status: 0 all is well, 1 a checker found something, 2 wrong usage.
)";

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

int wrong_usage(const std::string& what) {
  fmt::print(stderr, "berth-sim: {}; see berth-sim --help\n", what);
  return 2;
}

struct Arguments {
  Options options;
  std::uint64_t from = 1;
  std::uint64_t to = 1;
  std::string trace;
};

/// Returns what is wrong, or nothing.
std::string parse(const std::vector<std::string_view>& words, Arguments& into) {
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const std::string_view option = words[i];
    if (i + 1 == words.size()) {
      return fmt::format("'{}' is unknown or needs a value", option);
    }
    const std::string_view value = words[i + 1];
    const auto bad = [&] { return fmt::format("'{}' is no value for {}", value, option); };
    if (option == "--seed" || option == "--steps") {
      const auto n = number(value);
      if (!n) {
        return bad();
      }
      if (option == "--steps") {
        into.options.actions = *n;
      } else {
        into.from = into.to = *n;
      }
    } else if (option == "--seeds") {
      const std::size_t dots = value.find("..");
      const auto from = number(value.substr(0, dots));
      const auto to =
          dots == std::string_view::npos ? std::nullopt : number(value.substr(dots + 2));
      if (!from || !to || *from > *to) {
        return bad();
      }
      into.from = *from;
      into.to = *to;
    } else if (option == "--trace") {
      into.trace = value;
      into.options.keep = Trace::Keep::text;
    } else if (option == "--plant") {
      const auto plant = plant_from(value);
      if (!plant) {
        return bad();
      }
      into.options.plant = *plant;
    } else {
      return fmt::format("unknown option '{}'", option);
    }
  }
  return {};
}

int run(const std::vector<std::string_view>& words) {
  for (const std::string_view word : words) {
    if (word == "--help" || word == "-h") {
      fmt::print("{}", kHelp);
      return 0;
    }
  }
  Arguments arguments;
  if (const std::string wrong = parse(words, arguments); !wrong.empty()) {
    return wrong_usage(wrong);
  }
  name_seed_on_abort();
  std::uint64_t moments = 0;
  std::uint64_t jobs = 0;
  std::uint64_t lives = 0;
  std::uint64_t hash = 0;
  for (std::uint64_t seed = arguments.from;; ++seed) {
    arguments.options.seed = seed;
    const Outcome outcome = simulate(arguments.options);
    moments += outcome.moments;
    jobs += outcome.jobs;
    lives += outcome.lives;
    hash = outcome.trace_hash;
    if (arguments.trace == "-") {
      fmt::print("{}", outcome.trace);
    } else if (!arguments.trace.empty()) {
      std::ofstream file(arguments.trace, std::ios::binary);
      if (!(file << outcome.trace).flush()) {
        return wrong_usage(fmt::format("'{}' cannot be written", arguments.trace));
      }
    }
    if (outcome.failure) {
      fmt::print(stderr, "seed {} failed after {} moments: {}\nreplay: {}\n", seed, outcome.moments,
                 *outcome.failure, how_to_replay(arguments.options));
      return 1;
    }
    if (seed == arguments.to) {
      break;
    }
  }
  fmt::print("{} seeds passed: {} jobs, {} starts of the daemon, {} moments; last trace {:016x}\n",
             arguments.to - arguments.from + 1, jobs, lives, moments, hash);
  return 0;
}

}  // namespace
}  // namespace berth::sim

int main(int argc, char** argv) {
  return berth::sim::run({argv + 1, argv + argc});
}
