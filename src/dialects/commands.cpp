// Command files: command.txt, command_gpu*.txt and command_gpus*.txt, with their configuration.

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/crc32.hpp"
#include "base/utf8.hpp"
#include "dialects/command_blocks.hpp"
#include "dialects/command_config.hpp"
#include "dialects/command_place.hpp"
#include "dialects/dialect.hpp"
#include "jobspec/entry_checks.hpp"
#include "jobspec/matrix.hpp"

namespace berth {
namespace {

namespace fs = std::filesystem;
using Cards = DialectOptions::Cards;

/// Such tasks are tried again until they succeed; this is where even patience ends.
constexpr std::uint32_t kRetries = 100;

/// A file and where it is.
struct Found {
  std::string text;
  std::string shown;  ///< its name in messages
  fs::path path;      ///< absolute; empty: standard input
};

/// A file's name as part of the name of a queue.
std::string label_of(const fs::path& path) {
  constexpr std::size_t kLongest = 75;
  std::string label = path.empty() ? "commands" : to_utf8(path.stem().native());
  for (char& c : label) {
    if (c == ' ' || c == ',' || c == '=' || c == '\x7f' || static_cast<unsigned char>(c) < 0x20) {
      c = '-';
    }
  }
  while (label.size() > kLongest || !is_utf8(label)) {
    label.pop_back();
  }
  return label;
}

/// Tells apart the queues of files that have the same name: each project has its command.txt.
std::string mark_of(const fs::path& path) {
  return fmt::format("-{:04x}", crc32(path.lexically_normal().native()) & 0xffffU);
}

class CommandFile {
 public:
  CommandFile(const Source& source, const DialectOptions& options)
      : source_(source), options_(options) {}

  Parsed read() {
    if (!refuse_options() || !find_files()) {
      return std::unexpected(std::move(mistakes_));
    }
    const CommandConfig config = read_config();
    warn_of_encoding();
    Diagnostics diagnostics(commands_.shown);
    const auto blocks = split_blocks(without_mark(commands_.text));
    if (blocks.size() > kJobFileMostJobs) {
      diagnostics.add({}, fmt::format("this file has {} tasks, and {} are the most; split it",
                                      blocks.size(), kJobFileMostJobs));
    } else {
      tasks_ = read_tasks(blocks, cards_, diagnostics);
    }
    if (blocks.empty()) {
      diagnostics.add(
          {},
          "there is no task in this file; write for example a line 'python train.py' and below "
          "it a line '1,20' for queue 1 and 20 GiB");
    }
    keep(diagnostics);
    if (!mistakes_.empty()) {
      return std::unexpected(std::move(mistakes_));
    }
    return job_file(config);
  }

 private:
  bool keep(Diagnostics& diagnostics) {
    std::ranges::move(diagnostics.take(), std::back_inserter(mistakes_));
    return mistakes_.empty();
  }

  bool refuse(Position at, std::string message) {
    mistakes_.push_back({source_.file_name, at, std::move(message)});
    return false;
  }

  bool refuse_options() {
    if (source_.text.size() > kJobFileMostBytes) {
      return refuse(
          {}, fmt::format("this file is larger than {}; split it", format_size(kJobFileMostBytes)));
    }
    if (!options_.command_template.empty() || options_.seed_in_config) {
      return refuse({},
                    "a command file has its commands; leave out --template and "
                    "--seed-in-config");
    }
    if (!options_.arguments.empty()) {
      return refuse({}, "a command file takes no arguments");
    }
    return true;
  }

  /// The command file, its configuration, and the directory their paths start from.
  bool find_files() {
    Found self{std::string(source_.text), source_.file_name, {}};
    if (source_.file_name != kStandardInput) {
      self.path = source_.base_dir / fs::path(source_.file_name).filename();
    }
    const fs::path extension = self.path.extension();
    if (looks_like_command_config(source_.text) ||
        ((extension == ".yaml" || extension == ".yml") && has_config_key(source_.text))) {
      return find_commands_of(std::move(self));
    }
    commands_ = std::move(self);
    cards_ =
        options_.cards != Cards::by_file_name ? options_.cards : cards_of_name(source_.file_name);
    return find_config();
  }

  /// `source` is a configuration that names the command file.
  bool find_commands_of(Found self) {
    config_ = std::move(self);
    if (!options_.config_file.empty()) {
      return refuse({}, "this is a configuration itself; leave out --config-file");
    }
    script_dir_ =
        source_.base_dir.filename() == "config" ? source_.base_dir.parent_path() : source_.base_dir;
    Diagnostics ignored(config_->shown);
    const CommandConfig config = read_command_config(config_->text, ignored);
    const auto& single = config.gpu_command_file;
    const auto& multi = config.gpus_command_file;
    cards_ = options_.cards;
    if (cards_ == Cards::by_file_name) {
      if (single && multi) {
        return refuse(multi->at,
                      fmt::format("this configuration names two command files; pass --mode "
                                  "single for '{}' or --mode multi for '{}'",
                                  single->path, multi->path));
      }
      if (single || multi) {
        cards_ = multi ? Cards::multi : Cards::single;
      }
    }
    const auto& named = cards_ == Cards::multi ? multi : single;
    return named ? find_named(*named) : find_unnamed();
  }

  /// A bare name may mean a file in command/, where such schedulers keep them.
  bool find_named(const NamedPath& named) {
    const fs::path path(named.path);
    std::vector<fs::path> places = {script_dir_ / path};
    if (!path.has_parent_path()) {
      places.push_back(script_dir_ / "command" / path);
    }
    std::string looked_at;
    for (const fs::path& place : places) {
      const fs::path file = with_index(place.lexically_normal(), options_.config_index);
      auto text = source_.read(file);
      if (text) {
        return take_commands(file, std::move(*text));
      }
      if (text.error().code != ErrorCode::not_found) {
        return refuse(named.at, fmt::format("the command file this configuration names cannot be "
                                            "read: {}",
                                            text.error().message));
      }
      looked_at += fmt::format("{}'{}'", looked_at.empty() ? "" : " and no ", file.native());
    }
    return refuse(named.at, fmt::format("the command file this configuration names is not there: "
                                        "no {}; correct the path, or pass --command-file",
                                        looked_at));
  }

  /// It leaves that to the usual name: beside it, or where one of the programs is started.
  bool find_unnamed() {
    const bool either = cards_ == Cards::by_file_name;
    for (const fs::path& place : {script_dir_, either ? fs::path() : source_.here}) {
      const auto in_place = [&](Cards cards) {
        return place.empty() || (!either && cards_ != cards)
                   ? std::nullopt
                   : command_file_in(place, cards, options_.config_index, source_.read);
      };
      const auto single = in_place(Cards::single);
      const auto multi = in_place(Cards::multi);
      if (single && multi) {
        return refuse({}, fmt::format("this configuration names no command file, and there are "
                                      "two; pass --mode single for '{}' or --mode multi for '{}'",
                                      single->native(), multi->native()));
      }
      if (single || multi) {
        script_dir_ = place;
        cards_ = multi ? Cards::multi : Cards::single;
        const fs::path& file = multi ? *multi : *single;
        auto text = source_.read(file);
        return text ? take_commands(file, std::move(*text)) : refuse({}, text.error().message);
      }
    }
    if (either) {
      return refuse({}, fmt::format("this configures a scheduler and names no command file, and "
                                    "none of {} is beside it; give the command file instead, which "
                                    "finds its configuration: berth check ./command.txt",
                                    usual_names(Cards::single, options_.config_index)));
    }
    return refuse({}, fmt::format("this configuration names no '{}', and none of {} is beside it; "
                                  "add the key, or pass --command-file",
                                  cards_ == Cards::multi ? "gpus_command_file" : "gpu_command_file",
                                  usual_names(cards_, options_.config_index)));
  }

  bool take_commands(const fs::path& path, std::string text) {
    commands_ = {std::move(text), path.native(), path};
    return true;
  }

  bool find_config() {
    const fs::path& base = source_.base_dir;
    script_dir_ = base.filename() == "command" ? base.parent_path() : base;
    if (!options_.config_file.empty()) {
      const fs::path path(options_.config_file);
      if (path.parent_path() == base) {
        script_dir_ = base;
      }
      return take_config(path, true);
    }
    const std::array places = {
        std::pair{base / "config.yaml", base}, std::pair{base / "gpu_manage.yaml", base},
        std::pair{base.parent_path() / "config" / "gpu_manage.yaml", base.parent_path()},
        std::pair{base / "config" / "gpu_manage.yaml", base}};
    for (const auto& [path, script_dir] : places) {
      if (!take_config(path, false)) {
        return false;
      }
      if (config_) {
        script_dir_ = script_dir;
        return true;
      }
    }
    return true;
  }

  /// False when something is wrong; without `must` a file need not be there, nor be ours.
  bool take_config(const fs::path& path, bool must) {
    auto text = source_.read(path);
    if (!text) {
      return (!must && text.error().code == ErrorCode::not_found) ||
             refuse({}, fmt::format("the configuration cannot be read: {}", text.error().message));
    }
    if (!must && !text->empty() && !has_config_key(*text)) {
      warnings_.push_back(
          fmt::format("{}:1:1: this is left alone: no key in it is one of a "
                      "scheduler's configuration",
                      path.native()));
      return true;
    }
    config_ = Found{std::move(*text), path.native(), path};
    found_by_place_ = !must;
    return true;
  }

  CommandConfig read_config() {
    Diagnostics diagnostics(config_ ? config_->shown : source_.file_name);
    auto config = read_command_config(config_ ? config_->text : "", diagnostics);
    keep(diagnostics);
    if (found_by_place_ && !mistakes_.empty()) {
      mistakes_.front().message +=
          "; if this file belongs to another program, pass --config-file with the scheduler's own";
    }
    for (const auto& [at, message] : config.warnings) {
      warn(config_->shown, at, message);
    }
    return config;
  }

  void warn(const std::string& file, Position at, std::string_view message) {
    warnings_.push_back(fmt::format("{}:{}:{}: {}", file, at.line, at.column, message));
  }

  /// Braces that mean something else are usual in commands; each word is told of once.
  void warn_of_slips(const CommandTask& task) {
    for (const std::string& command : task.commands) {
      for (const std::string_view word : placeholders(command)) {
        if (auto slip = slip_of(word); !slip.empty() && slips_.insert(std::string(word)).second) {
          warn(commands_.shown, task.at, slip);
        }
      }
    }
  }

  /// Editors of other times and places write other encodings. The commands run as they are.
  void warn_of_encoding() {
    if (is_utf8(commands_.text)) {
      return;
    }
    std::uint32_t number = 1;
    for (std::string_view rest = commands_.text; !rest.empty(); ++number) {
      const auto end = std::min(rest.find('\n'), rest.size());
      if (!is_utf8(rest.substr(0, end))) {
        break;
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    warn(commands_.shown, {number, 1},
         "this line is not UTF-8, and programs may not find the files it names; if it is Chinese "
         "as older editors write it: iconv -f GB18030 -t UTF-8 FILE > NEW");
  }

  Parsed job_file(const CommandConfig& config) {
    JobFile file;
    const bool multi = cards_ == Cards::multi;
    const std::string label = label_of(commands_.path);
    file.name = label;
    file.rules = config.rules;
    file.rules["order"] = multi ? "largest_first" : "random";
    const std::string lane = label + mark_of(commands_.path.empty() ? script_dir_ : commands_.path);
    const std::string work_dir = resolve_work_dir(config.work_dir, script_dir_).native();
    if (config.work_dir && source_.lacks_directory && source_.lacks_directory(work_dir)) {
      warn(config_->shown, config.work_dir->at, no_directory("work_dir", work_dir));
    }
    std::map<std::uint32_t, std::uint32_t> counts;
    file.jobs.reserve(tasks_.size());
    for (CommandTask& task : tasks_) {
      const auto number = ++counts[task.queue];
      const std::string queue = fmt::format("{}/{}", lane, task.queue);
      if (number == 1) {
        file.queues.push_back({queue, 1});
      }
      if (config.max_gpu && task.gpus > *config.max_gpu) {
        warn(commands_.shown, task.at,
             fmt::format("this task needs {} GPUs and will wait as long as 'max_gpu' is {}",
                         task.gpus, *config.max_gpu));
      }
      if (config.listed_gpus && task.gpus > *config.listed_gpus) {
        warn(commands_.shown, task.at,
             fmt::format("this task needs {} GPUs and will wait as long as 'compete_gpus' lists {}",
                         task.gpus, *config.listed_gpus));
      }
      warn_of_slips(task);
      JobSpec job;
      job.name = fmt::format("q{}-{}", task.queue, number);
      job.queue = queue;
      job.request.gpus = {task.gpus, task.gpus};
      job.request.gpu_memory = task.memory;
      job.retries = kRetries;
      // Programs that these files were written for expect indices here.
      job.payload.extra_env = {"CUDA_VISIBLE_DEVICES={gpu_list}"};
      job.payload.cwd = work_dir;
      job.payload.work_dir = work_dir;
      // Such files put pipelines into the background, with or without a word of their uni_id: what
      // a command leaves running belongs to its task.
      job.payload.linger = true;
      for (std::string& command : task.commands) {
        job.payload.commands.push_back({true, {std::move(command)}});
      }
      file.jobs.push_back(std::move(job));
    }
    file.traits.state_dir = (script_dir_ / "logs").lexically_normal().native();
    file.traits.log = multi ? "compete_gpus.log" : "compete_gpu.log";
    file.traits.mode = multi ? "multi" : "single";
    file.traits.config_file = commands_.path.lexically_normal().native();
    file.traits.config_index =
        options_.config_index != 0 ? options_.config_index : index_of(commands_.path);
    file.warnings = std::move(warnings_);
    return file;
  }

  const Source& source_;
  const DialectOptions& options_;
  Found commands_;
  std::optional<Found> config_;
  bool found_by_place_ = false;  ///< the configuration: nobody has named it
  fs::path script_dir_;
  Cards cards_ = Cards::by_file_name;
  std::vector<CommandTask> tasks_;
  std::vector<Diagnostic> mistakes_;
  std::vector<std::string> warnings_;
  std::set<std::string> slips_;
};

/// The key of "key: value", "key:" or "\"key\": value", as the lines of YAML begin; empty: none.
std::string_view yaml_key(std::string_view line) {
  constexpr std::string_view kWord =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  const auto begin = std::min(line.find_first_not_of("\"'"), line.size());
  const auto end = std::min(line.find_first_not_of(kWord, begin), line.size());
  const auto colon = std::min(line.find_first_not_of("\"' ", end), line.size());
  const bool is_key = begin < end && colon < line.size() && line[colon] == ':' &&
                      (colon + 1 == line.size() || line[colon + 1] == ' ');
  return is_key ? line.substr(begin, end - begin) : std::string_view();
}

}  // namespace

bool looks_like_commands(std::string_view text) {
  text = without_mark(text);
  if (looks_like_command_config(text)) {
    return true;
  }
  const auto first = text.substr(0, text.find('\n'));
  if (first.starts_with("#!") || text.find('\0') != std::string_view::npos) {
    return false;
  }
  const auto blocks = split_blocks(text);
  if (blocks.empty()) {
    return false;
  }
  constexpr std::string_view kOtherBegins = "{[%-?&!";
  const auto begin = blocks.front().front().text;
  if (!yaml_key(begin).empty() || kOtherBegins.find(begin.front()) != std::string_view::npos) {
    return false;
  }
  return has_a_task(blocks);
}

Parsed parse_commands(const Source& source, const DialectOptions& options) {
  return CommandFile(source, options).read();
}

}  // namespace berth
