#pragma once
// One instance: its store, engine, supervisors, probe and API, on one loop.

#include <memory>
#include <optional>

#include "api/wire.hpp"
#include "base/result.hpp"
#include "daemon/options.hpp"

namespace berth {

class Daemon {
 public:
  /// Takes the instance's lock, opens its store and recovers what was running. Fails, changing
  /// nothing, when another daemon has the directory or its database cannot be used.
  /// `restored`: what there is to tell of a restoring just before.
  [[nodiscard]] static Result<std::unique_ptr<Daemon>> open(const DaemonOptions& options,
                                                            const RestoreView& restored = {});
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Serves until told to stop. Running jobs go on without it. The exit code for main().
  int run();
  /// After run(): ended to be replaced by one that starts from this backup.
  [[nodiscard]] const std::optional<RestoreRequest>& to_restore() const;

 private:
  struct Impl;
  explicit Daemon(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth
