#include "daemon/settings_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace berth {
namespace {

/// Editors write a file in several steps.
constexpr Millis kSettled{50};
constexpr std::string_view kIgnored = "; ignored";

}  // namespace

SettingsWatch::SettingsWatch(Loop& loop, Worker& readers, std::string path, Settings first,
                             Hooks hooks)
    : loop_(loop),
      readers_(readers),
      path_(std::move(path)),
      settings_(std::move(first)),
      read_(settings_),
      hooks_(std::move(hooks)) {}

std::vector<std::string> SettingsWatch::problems() const {
  std::vector<std::string> all = settings_.problems;
  if (!listen_problem_.empty()) {
    all.push_back(listen_problem_);
  }
  return all;
}

void SettingsWatch::start() {
  inotify_ = Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  // The directory, because most editors put a new file in the old one's place.
  const std::string directory = std::filesystem::path(path_).parent_path().string();
  if (!inotify_ ||
      ::inotify_add_watch(inotify_.get(), directory.c_str(),
                          IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE) < 0) {
    hooks_.complain(fmt::format("changes of {} are not noticed ({}); send SIGHUP after one", path_,
                                std::strerror(errno)));
    inotify_ = Fd();
    return;
  }
  listen();
  reload();  // it may have changed since it was read
}

void SettingsWatch::listen() {
  readable_ = loop_.when_readable(inotify_.get(), [this] { changed(); });
}

void SettingsWatch::changed() {
  const std::string name = std::filesystem::path(path_).filename().string();
  alignas(inotify_event) std::array<char, 16 * 1024> buffer{};
  bool ours = false;
  ssize_t got = 0;
  while ((got = ::read(inotify_.get(), buffer.data(), buffer.size())) > 0) {
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* text = buffer.data() + at + sizeof event;
      // After an overflow nobody knows what has changed.
      ours = ours || (event.mask & IN_Q_OVERFLOW) != 0 || (event.len > 0 && name == text);
      at += sizeof event + event.len;
    }
  }
  if (ours) {
    settle_ = loop_.after(kSettled, [this] { reload(); });
  }
  listen();
}

void SettingsWatch::reload(std::function<void()> then) {
  readers_.post([this, then = std::move(then)]() mutable {
    auto fresh = std::make_shared<Settings>(read_settings(path_));
    loop_.post([this, fresh, then = std::move(then)]() mutable {
      take(std::move(*fresh), std::move(then));
    });
  });
}

void SettingsWatch::take(Settings fresh, std::function<void()> then) {
  if (fresh == read_) {
    then();
    return;
  }
  read_ = fresh;
  if (!fresh.problems.empty()) {
    for (std::string& problem : fresh.problems) {
      if (problem.ends_with(kIgnored)) {
        problem.resize(problem.size() - kIgnored.size());
      }
      problem += "; until it is repaired, the rules stay as they were";
    }
    settings_.problems = std::move(fresh.problems);
    for (const std::string& problem : settings_.problems) {
      hooks_.complain(problem);
    }
    then();
    return;
  }
  settings_ = std::move(fresh);
  hooks_.apply(settings_.values, std::move(then));
}

}  // namespace berth
