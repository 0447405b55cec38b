#include "daemon/log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

#include "base/fd.hpp"

namespace berth {
namespace {

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

void add_control(std::string& out, char c) {
  switch (c) {
    case '\n':
      out += "\\n";
      break;
    case '\t':
      out += "\\t";
      break;
    case '\r':
      out += "\\r";
      break;
    default:
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
}

/// The message of a line. Whatever was forgotten to be quoted, it stays one line.
class OneLine final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    std::string text;
    for (const char c : std::string_view(message.payload.data(), message.payload.size())) {
      if (is_control(c)) {
        add_control(text, c);
      } else {
        text += c;
      }
    }
    out.append(text.data(), text.data() + text.size());
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<OneLine>();
  }
};

bool same_file(int fd, const std::string& path) {
  struct stat ours{};
  struct stat theirs{};
  return ::fstat(fd, &ours) == 0 && ::stat(path.c_str(), &theirs) == 0 &&
         ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

/// Writes to standard error, so that whatever else speaks there, a dying library included, is in
/// the same file before and after it was rotated. A line that cannot be written is lost: there is
/// nobody to tell.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void rotate(const LogRotation& rotation) {
    const std::lock_guard lock(mutex_);
    rotation_ = rotation;
    struct stat status{};
    size_ = ::fstat(STDERR_FILENO, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
    rotates_ = true;
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (rotates_ && size_ > 0 && size_ + line.size() > rotation_.size) {
      next_file();
    }
    std::size_t done = 0;
    while (done < line.size()) {
      const ssize_t written = ::write(STDERR_FILENO, line.data() + done, line.size() - done);
      if (written < 0 && errno == EINTR) {
        continue;
      }
      if (written <= 0) {
        break;
      }
      done += static_cast<std::size_t>(written);
    }
    size_ += done;
  }
  void flush_() override {}

 private:
  void next_file() {
    const bool stdout_too = same_file(STDOUT_FILENO, rotation_.file);
    const auto name = [this](unsigned number) {
      return number == 0 ? rotation_.file : fmt::format("{}.{}", rotation_.file, number);
    };
    for (unsigned number = rotation_.keep; number > 0; --number) {
      [[maybe_unused]] const int missing =
          std::rename(name(number - 1).c_str(), name(number).c_str());
    }
    const Fd fresh(::open(rotation_.file.c_str(),  // NOLINT
                          O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (fresh) {
      ::dup2(fresh.get(), STDERR_FILENO);
      if (stdout_too) {
        ::dup2(fresh.get(), STDOUT_FILENO);
      }
    }
    size_ = 0;  // where that failed it goes on in the old one, and is tried again after as much
  }

  LogRotation rotation_;
  bool rotates_ = false;
  std::uint64_t size_ = 0;
};

std::shared_ptr<StderrSink>& the_sink() {
  static auto sink = std::make_shared<StderrSink>();
  return sink;
}

}  // namespace

std::string log_value(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (is_control(c)) {
      add_control(out, c);
    } else {
      if (c == '"' || c == '\\') {
        out += '\\';
      }
      out += c;
    }
  }
  out += '"';
  return out;
}

void open_log(const std::string& level) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<OneLine>('*').set_pattern("time=%Y-%m-%dT%H:%M:%S.%e%z level=%l pid=%P %*");
  auto logger = std::make_shared<spdlog::logger>("berthd", the_sink());
  logger->set_formatter(std::move(formatter));
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
}

void rotate_log(const LogRotation& rotation) {
  if (same_file(STDERR_FILENO, rotation.file)) {
    the_sink()->rotate(rotation);
  }
}

}  // namespace berth
