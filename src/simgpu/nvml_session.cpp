#include "simgpu/nvml_session.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>

namespace berth::simgpu {
namespace {

struct Session {
  std::mutex mutex;  // clients such as nvitop call from several threads
  unsigned users = 0;
  std::string directory;
};

Session& session() {
  static Session one;
  return one;
}

// Handles are addresses in this array, so a wild pointer is recognised without being followed.
std::array<char, kCardsMax> handle_space{};

void sleep_ms(std::uint64_t milliseconds) {
  timespec rest{static_cast<time_t>(milliseconds / 1000),
                static_cast<long>(milliseconds % 1000) * 1'000'000};
  while (milliseconds != 0 && ::nanosleep(&rest, &rest) != 0 && errno == EINTR) {
  }
}

int check(const Directory& directory, Driver* out) {
  const auto driver = directory.driver();
  if (!driver) {
    return kDriverNotLoaded;
  }
  sleep_ms(driver->hang_ms);
  if (out != nullptr) {
    *out = *driver;
  }
  return static_cast<int>(driver->error);
}

}  // namespace

int begin_session() {
  const char* path = std::getenv("BERTH_SIM_DIR");
  if (path == nullptr || *path == '\0') {
    return kDriverNotLoaded;
  }
  if (const int code = check(Directory(path), nullptr); code != kSuccess) {
    return code;
  }
  const std::scoped_lock lock(session().mutex);
  if (session().users++ == 0) {
    session().directory = path;
  }
  return kSuccess;
}

int end_session() {
  const std::scoped_lock lock(session().mutex);
  if (session().users > 0) {  // one Shutdown too many is forgiven, as the real library does
    --session().users;
  }
  return kSuccess;
}

std::expected<Directory, int> enter_driver(Driver* driver) {
  std::string path;
  {
    const std::scoped_lock lock(session().mutex);
    if (session().users == 0) {
      return std::unexpected(static_cast<int>(kUninitialized));
    }
    path = session().directory;
  }
  Directory directory(std::move(path));
  if (const int code = check(directory, driver); code != kSuccess) {
    return std::unexpected(code);
  }
  return directory;
}

std::expected<Card, int> enter_card(const Directory& directory, unsigned index) {
  auto card = directory.card(index);
  if (!card) {
    return std::unexpected(static_cast<int>(kGpuIsLost));
  }
  sleep_ms(card->hang_ms);
  if (card->error != 0) {
    return std::unexpected(static_cast<int>(card->error));
  }
  return *std::move(card);
}

NvmlDevice* handle_of(unsigned index) {
  return reinterpret_cast<NvmlDevice*>(&handle_space.at(index));
}

std::optional<unsigned> index_of(const NvmlDevice* handle) {
  const auto address = reinterpret_cast<std::uintptr_t>(handle);
  const auto first = reinterpret_cast<std::uintptr_t>(handle_space.data());
  if (address < first || address >= first + handle_space.size()) {
    return std::nullopt;
  }
  return static_cast<unsigned>(address - first);
}

int copy_string(std::string_view text, char* buffer, unsigned length) {
  if (buffer == nullptr) {
    return kInvalidArgument;
  }
  if (length < text.size() + 1) {
    return kInsufficientSize;
  }
  std::memcpy(buffer, text.data(), text.size());
  buffer[text.size()] = '\0';
  return kSuccess;
}

}  // namespace berth::simgpu
