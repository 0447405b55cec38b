#pragma once
// Keeps the rules of berth.yaml as the file says, while the daemon runs.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "daemon/loop.hpp"
#include "daemon/settings.hpp"
#include "daemon/worker.hpp"

namespace berth {

/// Belongs to the loop's thread; the file is read on the worker's.
class SettingsWatch {
 public:
  struct Hooks {
    /// Takes over all that the file says now, and calls back when that is durable.
    std::function<void(const Settings::Values&, std::function<void()>)> apply;
    std::function<void(const std::string& problem)> complain;
  };

  /// `first`: what has been read already.
  SettingsWatch(Loop& loop, Worker& readers, std::string path, Settings first, Hooks hooks);

  /// What holds, and what is wrong with the file.
  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  /// What is wrong with the file, and with what it says about listening.
  [[nodiscard]] std::vector<std::string> problems() const;
  /// Why what the file says about listening is not done; empty: it is.
  [[nodiscard]] const std::string& listen_refusal() const { return read_.listen.problem; }
  void set_listen_problem(std::string problem) { listen_problem_ = std::move(problem); }

  /// Begins to look for changes. Where the system cannot tell of them, reload() is left.
  void start();
  /// Reads the file again. A file with mistakes changes no rule.
  void reload(std::function<void()> then = [] {});

 private:
  void listen();
  void changed();
  void take(Settings fresh, std::function<void()> then);

  Loop& loop_;
  Worker& readers_;
  std::string path_;
  Settings settings_;
  Settings read_;  ///< what the file said last
  std::string listen_problem_;
  Hooks hooks_;
  Fd inotify_;
  Loop::Handle readable_;
  Loop::Handle settle_;
};

}  // namespace berth
