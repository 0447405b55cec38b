// The options of gpu_resource_manager and what help says of them.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "cli/gpu_manager.hpp"
#include "cli/terminal.hpp"
#include "jobspec/diagnostic.hpp"

namespace berth::cli::gpu_manager {
namespace {

enum class Kind : std::uint8_t { deed, deed_for_task, gpus, config, leases };

struct OptionDef {
  std::string_view name;
  Kind kind;
  Deed deed = Deed::monitor;
  bool takes_value = false;
  std::string_view what = {};  ///< it would do, where it needs leases
};

constexpr std::array kOptions = {
    OptionDef{"--status", Kind::deed, Deed::status},
    OptionDef{"--start-program", Kind::deed_for_task, Deed::start_program, true},
    OptionDef{"--release", Kind::deed_for_task, Deed::release, true},
    OptionDef{"--monitor-only", Kind::deed, Deed::monitor},
    OptionDef{"--daemon", Kind::deed, Deed::monitor},
    OptionDef{"--gpus", Kind::gpus, Deed::monitor, true},
    OptionDef{"--config", Kind::config, Deed::monitor, true},
    OptionDef{"--help", Kind::deed, Deed::help},
    OptionDef{"-h", Kind::deed, Deed::help},
    OptionDef{"--version", Kind::deed, Deed::version},
    OptionDef{"--allocate", Kind::leases, Deed::monitor, true, "holding GPUs without a program"},
    OptionDef{"--request", Kind::leases, Deed::monitor, true, "holding GPUs without a program"},
    OptionDef{"--quick-get", Kind::leases, Deed::monitor, true, "holding GPUs without a program"},
    OptionDef{"--use", Kind::leases, Deed::monitor, false,
              "running something on GPUs that are held"},
    OptionDef{"--manage", Kind::leases, Deed::monitor, false, "keeping a number of GPUs at hand"},
};

class Reader {
 public:
  explicit Reader(const Words& words) : words_(words) {}

  Result<Request> read() {
    while (at_ < words_.size()) {
      TRY(next());
    }
    if (request_.gpus && request_.deed != Deed::start_program) {
      return fail(ErrorCode::invalid, "--gpus: say for which program: --start-program TASK");
    }
    return request_;
  }

 private:
  Status next() {
    const std::string& word = words_[at_++];
    const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const std::string name = word.substr(0, equals);
    const auto* const known = std::ranges::find(kOptions, name, &OptionDef::name);
    if (known == kOptions.end()) {
      return unknown(name);
    }
    if (known->kind == Kind::leases) {
      return fail(ErrorCode::refused,
                  fmt::format("{}: {} comes with leases, which this version does not have; "
                              "--start-program TASK [--gpus N] takes GPUs for a program when it "
                              "starts, and they are free again when it has ended",
                              name, known->what));
    }
    std::string value;
    if (known->takes_value) {
      TRY_ASSIGN(value, value_of(name, equals == std::string::npos
                                           ? std::nullopt
                                           : std::optional(word.substr(equals + 1))));
    } else if (equals != std::string::npos) {
      return fail(ErrorCode::invalid, fmt::format("{} takes no value", name));
    }
    return take(*known, std::move(value));
  }

  static Status unknown(const std::string& name) {
    std::vector<std::string_view> names;
    for (const OptionDef& option : kOptions) {
      names.push_back(option.name);
    }
    return fail(ErrorCode::invalid, fmt::format("there is no option '{}'{}", printable(name),
                                                did_you_mean(name, names)));
  }

  Result<std::string> value_of(const std::string& name, std::optional<std::string> given) {
    if (!given && at_ < words_.size() && !words_[at_].starts_with("--")) {
      given = words_[at_++];
    }
    if (!given || given->empty()) {
      return fail(ErrorCode::invalid, fmt::format("{} needs a value", name));
    }
    return *given;
  }

  Status take(const OptionDef& option, std::string value) {
    switch (option.kind) {
      case Kind::config:
        request_.config = std::move(value);
        request_.config_named = true;
        return {};
      case Kind::gpus:
        return take_gpus(value);
      case Kind::deed_for_task:
        request_.task = std::move(value);
        [[fallthrough]];
      case Kind::deed:
        // To watch is what is done anyway.
        if (request_.deed != Deed::monitor && request_.deed != option.deed) {
          return fail(ErrorCode::invalid, fmt::format("{}: one thing at a time", option.name));
        }
        request_.deed = option.deed;
        return {};
      case Kind::leases:
        break;
    }
    std::unreachable();
  }

  Status take_gpus(const std::string& value) {
    std::uint32_t count = 0;
    const char* const end = value.data() + value.size();
    const auto [at, error] = std::from_chars(value.data(), end, count);
    if (error != std::errc() || at != end || count == 0) {
      return fail(ErrorCode::invalid,
                  fmt::format("--gpus: '{}' is not a number of GPUs", printable(value)));
    }
    request_.gpus = count;
    return {};
  }

  const Words& words_;
  std::size_t at_ = 0;
  Request request_;
};

}  // namespace

Result<Request> parse_words(const Words& words) {
  return Reader(words).read();
}

std::string help_text(std::string_view program) {
  return fmt::format(
      "{0}: programs on the GPUs of this machine, by gpu_manager_config.json\n"
      "Usage: {0} [OPTION]\n\n"
      "  (none)                watch the GPUs and the tasks; q ends\n"
      "  --status              show them once\n"
      "  --start-program TASK  start the program of the configuration as TASK\n"
      "    --gpus N            on exactly N GPUs\n"
      "  --release TASK        end it; its GPUs are free\n"
      "  --config FILE         another configuration than ./gpu_manager_config.json\n\n"
      "GPUs are taken when a program starts. To hold some without a program (--allocate,\n"
      "--request, --quick-get, --use, --manage) comes with leases, which this version does\n"
      "not have. Tasks are berth's jobs: berth ls, berth log and berth why show more.\n",
      program);
}

}  // namespace berth::cli::gpu_manager
