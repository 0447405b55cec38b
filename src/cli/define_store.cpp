// rm, clean, history, backup, restore.

#include <memory>

#include "base/units.hpp"
#include "cli/define.hpp"

namespace berth::cli {
namespace {

JobState ended_state(std::string_view word) {
  const auto state = job_state_from(word);
  if (!state || !is_terminal(*state)) {
    throw CLI::ValidationError(
        "--state", fmt::format("'{}' is not a state in which a job has ended; there are succeeded, "
                               "failed, killed and cancelled",
                               printable(word)));
  }
  return *state;
}

/// Calls `each` with the words between commas.
template <class Each>
void words_of(std::string_view text, Each each) {
  while (true) {
    const std::string_view word = text.substr(0, text.find(','));
    each(word);
    if (word.size() == text.size()) {
      return;
    }
    text.remove_prefix(word.size() + 1);
  }
}

void define_removal(CLI::App& app, Action& action) {
  const auto rm = std::make_shared<RemoveOptions>();
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App& one = *command(app, "rm", "Forget jobs, with the logs that berth keeps for them",
                           "  berth rm 3,5-9\n"
                           "Waiting jobs are cancelled; running ones must be killed first. A log\n"
                           "that you named with --log is yours and stays.");
  ids_argument(one, *words, "ids and ranges, as 3,5-9");
  one.get_option("IDS")->required();
  json_flag(one, rm->json);
  one.callback([&action, rm, words] {
    rm->ids = ids_of(*words);
    action = [rm] { return run_remove(*rm); };
  });

  const auto clean = std::make_shared<RemoveOptions>();
  CLI::App& many = *command(app, "clean", "Forget jobs that have ended",
                            "  berth clean --older 7d\n"
                            "  berth clean --state succeeded --queue car --keep 100\n"
                            "  berth clean --dry-run");
  list_option(
      many, "--state", "STATES", "only these, as succeeded,killed", [clean](const auto& text) {
        words_of(text, [&](std::string_view word) { clean->states.push_back(ended_state(word)); });
      });
  option(many, "--queue", "NAME", "only of this queue",
         [clean](const auto& text) { clean->queue = text; });
  option(many, "--older", "TIME", "only what ended longer ago, as 12h, 7d",
         [clean](const auto& text) { clean->older = checked("--older", parse_duration(text)); });
  option(many, "--keep", "N", "leave the newest N of them", [clean](const auto& text) {
    clean->keep = checked_number<std::uint64_t>("--keep", text, "a number of jobs");
  });
  many.add_flag("--dry-run", clean->dry_run, "only tell what would be removed");
  json_flag(many, clean->json);
  many.callback([&action, clean] { action = [clean] { return run_remove(*clean); }; });
}

void define_history(CLI::App& app, Action& action) {
  const auto history = std::make_shared<HistoryOptions>();
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App& sub = *command(app, "history", "What happened, the newest last",
                           "  berth history --since 2h\n"
                           "  berth history 3,5-9 --kind failed,retried\n"
                           "  berth history -f");
  ids_argument(sub, *words, "only of these jobs, as 3,5-9");
  option(sub, "--since", "TIME", "only the last 2h, 7d", [history](const auto& text) {
    history->since = checked("--since", parse_duration(text));
  });
  list_option(sub, "--kind", "KINDS",
              "only submitted, started, succeeded, failed, retried, killed, cancelled, …",
              [history](const auto& text) {
                words_of(text, [&](std::string_view word) { history->kinds.emplace_back(word); });
              });
  option(sub, "--limit", "N", "at most so many, the newest (50)", [history](const auto& text) {
    history->limit = checked_number<std::uint32_t>("--limit", text, "a number of lines");
  });
  sub.add_flag("-f,--follow", history->follow, "go on with what happens from now on");
  json_flag(sub, history->json);
  sub.callback([&action, history, words] {
    if (!words->empty()) {
      history->ids = ids_of(*words);
    }
    action = [history] { return run_history(*history); };
  });
}

void define_copies(CLI::App& app, Action& action) {
  const auto backup = std::make_shared<BackupOptions>();
  CLI::App& sub =
      *command(app, "backup", "Copy the database to a file while jobs go on",
               "  berth backup /mnt/backup/berth.db\n"
               "It holds all jobs, queues and history. Logs, and what runs, are not in it.");
  sub.add_option("FILE", backup->file, "the copy")->required()->type_name("");
  sub.add_flag("--force", backup->force, "replace the file if it is there");
  json_flag(sub, backup->json);
  sub.callback([&action, backup] { action = [backup] { return run_backup(*backup); }; });

  const auto file = std::make_shared<std::string>();
  CLI::App& back = *command(app, "restore", "Start again from a backup",
                            "  berth restore /mnt/backup/berth.db\n"
                            "Nothing may be running. The present database is kept beside the\n"
                            "restored one. Jobs that waited when the backup was made start again,\n"
                            "also if they have run since.");
  back.add_option("FILE", *file, "what berth backup made")->required()->type_name("");
  back.callback([&action, file] { action = [file] { return run_restore(*file); }; });
}

}  // namespace

void define_store(CLI::App& app, Action& action) {
  define_removal(app, action);
  define_history(app, action);
  define_copies(app, action);
}

}  // namespace berth::cli
