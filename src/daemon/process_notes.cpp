#include "daemon/process_notes.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "base/fd.hpp"
#include "base/utf8.hpp"
#include "gpu/process_facts.hpp"

namespace berth {
namespace {

constexpr std::size_t kCommandMax = 1024;
/// Processes come and go; beyond this what is known is forgotten and asked for again.
constexpr std::size_t kKnownMax = 4096;

std::string read_command_line(std::uint32_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/cmdline";
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, kCommandMax + 1> buffer{};
  const ssize_t got = file ? ::read(file.get(), buffer.data(), buffer.size()) : 0;
  return command_line_of(
      std::string_view(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))));
}

}  // namespace

struct ProcessNotes::Shared {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Process> asked;
  std::map<Process, ProcessNote> known;  ///< empty: asked for
  bool stopping = false;
};

ProcessNotes::ProcessNotes(Reader reader) : shared_(std::make_shared<Shared>()) {
  std::thread([shared = shared_, reader = std::move(reader)] {
    std::unique_lock lock(shared->mutex);
    for (;;) {
      shared->wake.wait(lock, [&] { return shared->stopping || !shared->asked.empty(); });
      if (shared->stopping) {
        return;
      }
      const Process process = shared->asked.front();
      shared->asked.pop_front();
      lock.unlock();
      ProcessNote note = reader(process);
      lock.lock();
      shared->known[process] = std::move(note);
    }
  }).detach();
}

ProcessNotes::~ProcessNotes() {
  const std::lock_guard lock(shared_->mutex);
  shared_->stopping = true;
  shared_->wake.notify_all();
}

ProcessNote ProcessNotes::of(const Process& process) {
  const std::lock_guard lock(shared_->mutex);
  if (const auto found = shared_->known.find(process); found != shared_->known.end()) {
    return found->second;
  }
  if (shared_->known.size() >= kKnownMax) {
    shared_->known.clear();
    shared_->asked.clear();
  }
  shared_->known.emplace(process, ProcessNote{});
  shared_->asked.push_back(process);
  shared_->wake.notify_one();
  return {};
}

ProcessNote read_process_note(const ProcessNotes::Process& process) {
  ProcessNote note;
  if (process.uid) {
    note.user = user_name(*process.uid);
  }
  note.command = read_command_line(process.pid);
  // The pid may have become another's meanwhile.
  const auto still = ProcessReader().read(process.pid);
  if (!still || still->stat.start_time != process.start_time) {
    note.command.clear();
  }
  return note;
}

std::string command_line_of(std::string_view cmdline) {
  const bool cut = cmdline.size() > kCommandMax;
  std::string words(cmdline.substr(0, kCommandMax));
  while (!words.empty() && words.back() == '\0') {
    words.pop_back();
  }
  std::ranges::replace(words, '\0', ' ');
  return printable(words) + (cut ? "…" : "");
}

std::string user_name(std::uint32_t uid) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    return found->pw_name;
  }
  return std::to_string(uid);
}

}  // namespace berth
