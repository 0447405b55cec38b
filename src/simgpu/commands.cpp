#include "simgpu/commands.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "simgpu/files.hpp"

namespace berth::simgpu {
namespace {

constexpr std::uint64_t kMib = 1024ULL * 1024;
constexpr std::uint64_t kGib = 1024 * kMib;

/// The indices that a word of the command line names: "2", a UUID or its beginning, "all".
Outcome<std::vector<unsigned>> find_cards(const Directory& directory, const std::string& word) {
  const auto cards = directory.cards();
  if (!cards) {
    return std::unexpected(cards.error());
  }
  std::vector<unsigned> found;
  for (const Card& card : *cards) {
    if (word == "all" || word == std::to_string(card.index) ||
        (word.starts_with("GPU-") && card.uuid.starts_with(word))) {
      found.push_back(card.index);
    }
  }
  if (found.empty()) {
    return std::unexpected("there is no GPU '" + word + "' in '" + directory.path() +
                           "'; berth-simgpu show lists them");
  }
  return found;
}

std::string or_unknown(const std::optional<unsigned>& value, const char* unit) {
  return value ? std::to_string(*value) + unit : "?";
}

std::string state_of(const Card& card) {
  const std::string state = card.error == 0 ? "ok" : "error " + std::to_string(card.error);
  const unsigned errors = card.ecc.resolve(0).value_or(0);
  return errors == 0 ? state : state + ", ecc " + std::to_string(errors);
}

}  // namespace

std::optional<std::string> Options::get(std::string_view key) const {
  const auto found = values.find(key);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

Outcome<std::uint64_t> Options::size(std::string_view key, std::uint64_t otherwise) const {
  const auto text = get(key);
  return text ? parse_size(*text) : otherwise;
}

Outcome<std::uint64_t> Options::milliseconds(std::string_view key, std::uint64_t otherwise) const {
  const auto text = get(key);
  return text ? parse_milliseconds(*text) : otherwise;
}

Outcome<std::uint64_t> Options::number(std::string_view key, std::uint64_t otherwise,
                                       std::uint64_t max) const {
  const auto text = get(key);
  const auto value = text ? parse_number(*text) : otherwise;
  if (!value || *value > max) {
    return std::unexpected("--" + std::string(key) + " takes a number up to " +
                           std::to_string(max) + ", not '" + text.value_or("") + "'");
  }
  return *value;
}

Outcome<Options> parse_options(const Words& words, const std::vector<std::string_view>& allowed) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) {
      options.words.push_back(words[i]);
      continue;
    }
    const std::size_t equals = words[i].find('=');
    const std::string key = words[i].substr(2, equals == std::string::npos ? equals : equals - 2);
    if (std::ranges::find(allowed, key) == allowed.end()) {
      return std::unexpected("there is no option --" + key + " here; see berth-simgpu --help");
    }
    if (equals != std::string::npos) {
      options.values[key] = words[i].substr(equals + 1);
    } else if (i + 1 < words.size()) {
      options.values[key] = words[++i];
    } else {
      return std::unexpected("--" + key + " needs a value; see berth-simgpu --help");
    }
  }
  return options;
}

Outcome<Directory> find_directory(const std::optional<std::string>& option) {
  const char* variable = std::getenv("BERTH_SIM_DIR");
  const std::string path = option.value_or(variable == nullptr ? "" : variable);
  if (path.empty()) {
    return std::unexpected("which simulated GPUs? Set BERTH_SIM_DIR or pass --dir DIR");
  }
  return Directory(path);
}

int complain(const std::string& message, int code) {
  std::fprintf(stderr, "berth-simgpu: %s\n", message.c_str());
  return code;
}

std::uint64_t monotonic_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

void sleep_until_ms(std::uint64_t deadline) {
  const timespec until{static_cast<time_t>(deadline / 1000),
                       static_cast<long>(deadline % 1000) * 1'000'000};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

int run_init(const Words& words) {
  if (words.size() != 2) {
    return complain("init takes a directory and a spec: berth-simgpu init DIR 8x24GiB", 2);
  }
  const auto done = Directory(words[0]).init(words[1]);
  return done ? 0 : complain(done.error());
}

int run_show(const Words& words) {
  const auto options = parse_options(words, {"dir"});
  if (!options || options->words.size() > 1) {
    return complain(options ? "show takes one directory" : options.error(), 2);
  }
  const auto directory = find_directory(
      options->words.empty() ? options->get("dir") : std::optional(options->words.front()));
  if (!directory) {
    return complain(directory.error(), 2);
  }
  const auto driver = directory->driver();
  const auto cards = directory->cards();
  if (!driver || !cards) {
    return complain(driver ? cards.error() : driver.error());
  }
  std::printf("simulated driver %s, CUDA %u.%u, %s%s\n", driver->version.c_str(),
              driver->cuda / 1000, driver->cuda % 1000 / 10, driver->spec.c_str(),
              driver->error == 0
                  ? ""
                  : (", failing with NVML code " + std::to_string(driver->error)).c_str());
  std::printf("%-3s  %-40s  %-22s  %19s  %5s  %s\n", "GPU", "UUID", "NAME", "MEMORY USED / TOTAL",
              "UTIL", "STATE");
  std::string processes;
  for (const Card& card : *cards) {
    const auto users = directory->users(card.index);
    const std::string memory = std::to_string((total_bytes(users) + card.reserved) / kMib) + " / " +
                               std::to_string(card.memory / kMib) + " MiB";
    std::printf("%-3u  %-40s  %-22s  %19s  %5s  %s\n", card.index, card.uuid.c_str(),
                card.name.c_str(), memory.c_str(),
                or_unknown(card.util.resolve(total_util(users)), " %").c_str(),
                state_of(card).c_str());
    for (const Allocation& user : users) {
      std::string name = read_file("/proc/" + std::to_string(user.pid) + "/comm").value_or("?");
      std::erase(name, '\n');
      processes += "GPU " + std::to_string(card.index) + "  pid " + std::to_string(user.pid) +
                   "  " + name + "  " + std::to_string(user.bytes / kMib) + " MiB  " +
                   std::to_string(user.util) + " %\n";
    }
  }
  std::printf("\n%s", processes.empty() ? "No running processes\n" : processes.c_str());
  return 0;
}

int run_set(const Words& words) {
  const auto options = parse_options(words, {"dir"});
  if (!options || options->words.size() != 3) {
    return complain(options ? "set takes a GPU, a key and a value: berth-simgpu set 0 util 50"
                            : options.error(),
                    2);
  }
  const auto directory = find_directory(options->get("dir"));
  if (!directory) {
    return complain(directory.error(), 2);
  }
  const std::string& target = options->words[0];
  if (target == "driver") {
    const auto done = directory->set_driver(options->words[1], options->words[2]);
    return done ? 0 : complain(done.error());
  }
  const auto indices = find_cards(*directory, target);
  if (!indices) {
    return complain(indices.error());
  }
  for (const unsigned index : *indices) {
    if (const auto done = directory->set_card(index, options->words[1], options->words[2]); !done) {
      return complain(done.error());
    }
  }
  return 0;
}

int run_hold(const Words& words) {
  const auto options = parse_options(words, {"dir", "memory", "util", "time", "type"});
  if (!options || options->words.size() != 1) {
    return complain(
        options ? "hold takes one GPU: berth-simgpu hold 0 --memory 18GiB" : options.error(), 2);
  }
  const auto memory = options->size("memory", kGib);
  const auto util = options->number("util", 0, 100);
  const auto time = options->milliseconds("time", 0);
  const std::string type = options->get("type").value_or("C");
  if (!memory || !util || !time || (type != "C" && type != "G" && type != "C+G")) {
    return complain(!memory ? memory.error()
                    : !util ? util.error()
                    : !time ? time.error()
                            : "--type is C, G or C+G",
                    2);
  }
  const auto directory = find_directory(options->get("dir"));
  if (!directory) {
    return complain(directory.error(), 2);
  }
  const auto indices = find_cards(*directory, options->words[0]);
  if (!indices) {
    return complain(indices.error());
  }
  Allocation wanted;
  wanted.bytes = *memory;
  wanted.util = static_cast<unsigned>(*util);
  wanted.compute = type != "G";
  wanted.graphics = type != "C";
  const std::uint64_t start = monotonic_ms();
  for (const unsigned index : *indices) {
    const auto grant = directory->allocate(index, wanted);
    if (!grant || !grant->granted) {
      return complain(grant ? "GPU " + std::to_string(index) + " has only " +
                                  format_torch_size(grant->free) + " free"
                            : grant.error());
    }
    std::printf("holding %s of GPU %u, pid %d\n", format_torch_size(*memory).c_str(), index,
                static_cast<int>(::getpid()));
  }
  std::fflush(stdout);
  if (options->get("time")) {
    sleep_until_ms(start + *time);
  } else {
    while (true) {
      ::pause();
    }
  }
  for (const unsigned index : *indices) {
    directory->release(index);
  }
  return 0;
}

}  // namespace berth::simgpu
