#pragma once
// The log of one job, read from its files: with the user's own rights, not by the daemon.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "api/views.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"
#include "cli/log_file.hpp"

namespace berth::cli {

/// The attempt with this number, or the last one; null if there is none.
[[nodiscard]] const AttemptView* find_attempt(const JobDetail& detail,
                                              const std::optional<std::uint32_t>& number);

/// Lines of one of several logs, each behind the job's name. Of a line that a progress bar has
/// written over and over, what it showed last is kept.
class PrefixedLines {
 public:
  PrefixedLines(std::string prefix, LogSink out)
      : prefix_(std::move(prefix)), out_(std::move(out)) {}
  void feed(std::string_view text);
  void finish();  ///< lets go of a last line without an end

 private:
  void line(std::string_view text);

  std::string prefix_;
  LogSink out_;
  std::string partial_;
};

/// A job's log while it grows, one attempt after the other.
class FollowedLog {
 public:
  virtual ~FollowedLog() = default;
  /// What the daemon says now. `next` is told the number of each further attempt that is begun,
  /// and of the first that is looked at where that is not the job's first; it may be called later,
  /// too, by drain().
  [[nodiscard]] virtual Status look(const JobDetail& detail,
                                    const std::function<void(std::uint32_t)>& next) = 0;
  /// Hands on what has been written meanwhile.
  [[nodiscard]] virtual Status drain() = 0;
  /// Everything has been handed on, and nothing more will come.
  [[nodiscard]] virtual bool over() const = 0;
  /// Whether there has been any log at all.
  [[nodiscard]] virtual bool opened() const = 0;
};

/// Reads it from the files of this machine.
class LogFollower final : public FollowedLog {
 public:
  LogFollower(std::optional<std::uint32_t> attempt, std::optional<std::uint64_t> lines,
              LogSink sink)
      : only_(attempt), lines_(lines), sink_(std::move(sink)) {}

  [[nodiscard]] Status look(const JobDetail& detail,
                            const std::function<void(std::uint32_t)>& next) override;
  [[nodiscard]] Status drain() override;
  [[nodiscard]] bool over() const override { return over_; }
  [[nodiscard]] bool opened() const override { return opened_; }

 private:
  [[nodiscard]] Status open(bool must);
  void forget();
  /// The sink, with a look at where its last line stands.
  [[nodiscard]] LogSink noting();
  /// Of an attempt that has ended with so much left out of its log.
  [[nodiscard]] Status drain_ended(std::uint64_t dropped);
  void skip_to(std::uint64_t position, std::uint64_t limit);

  std::optional<std::uint32_t> only_;
  std::optional<std::uint64_t> lines_;
  LogSink sink_;
  std::uint64_t current_ = 0;  ///< id of the attempt being read
  std::string path_;
  Fd fd_;
  std::optional<TailFile> tail_;  ///< the one being read; none: the log itself
  std::uint64_t at_ = 0;          ///< position in all of the output, once there is a tail
  bool in_line_ = false;          ///< what was handed on last has no end of line
  bool opened_ = false;
  bool over_ = false;
};

}  // namespace berth::cli
