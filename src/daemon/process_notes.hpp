#pragma once
// Who runs a process and what its command line is, for people to read.
//
// Both can hang: a directory service asked for a name, and /proc/<pid>/cmdline of a process that is
// stuck in the driver. So a thread of its own asks, nothing waits for it, and the end of the daemon
// leaves it behind. What is not known yet is empty, and there the next time.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace berth {

struct ProcessNote {
  std::string user;
  std::string command;

  friend bool operator==(const ProcessNote&, const ProcessNote&) = default;
};

class ProcessNotes {
 public:
  struct Process {
    std::uint32_t pid = 0;
    std::uint64_t start_time = 0;  ///< with pid it names a process
    std::optional<std::uint32_t> uid;

    friend auto operator<=>(const Process&, const Process&) = default;
  };
  using Reader = std::function<ProcessNote(const Process&)>;

  explicit ProcessNotes(Reader reader);
  ~ProcessNotes();
  ProcessNotes(const ProcessNotes&) = delete;
  ProcessNotes& operator=(const ProcessNotes&) = delete;

  /// Never blocks.
  [[nodiscard]] ProcessNote of(const Process& process);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

/// What the machine itself says.
[[nodiscard]] ProcessNote read_process_note(const ProcessNotes::Process& process);

/// The text of a cmdline file on one line, cut where it gets long.
[[nodiscard]] std::string command_line_of(std::string_view cmdline);

/// The user's name, or the number where there is none.
[[nodiscard]] std::string user_name(std::uint32_t uid);

}  // namespace berth
