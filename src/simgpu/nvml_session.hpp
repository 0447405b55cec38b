#pragma once
// What every exported function does first: is the library initialised, is the driver well, is the
// card there. No exception leaves; the callers are C.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/nvml_abi.hpp"
#include "simgpu/state.hpp"

#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace berth::simgpu {

/// Counts the Init calls; the directory is that of BERTH_SIM_DIR at the first of them.
[[nodiscard]] int begin_session();
[[nodiscard]] int end_session();

/// The directory of the session, after the driver's delay; or the code to fail with.
[[nodiscard]] std::expected<Directory, int> enter_driver(Driver* driver = nullptr);
/// The card of a handle, after its delay; or the code to fail with.
[[nodiscard]] std::expected<Card, int> enter_card(const Directory& directory, unsigned index);

[[nodiscard]] NvmlDevice* handle_of(unsigned index);
[[nodiscard]] std::optional<unsigned> index_of(const NvmlDevice* handle);

[[nodiscard]] NvmlPciInfo pci_info(const Card& card);

/// Copies with the final zero; kInsufficientSize when the buffer is too short.
[[nodiscard]] int copy_string(std::string_view text, char* buffer, unsigned length);

/// The code of `body`, or kUnknown if it throws.
template <class Body>
int guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    return kUnknown;
  }
}

/// Runs `body(directory, driver)` in the session.
template <class Body>
int with_driver(Body&& body) noexcept {
  return guarded([&] {
    Driver driver;
    const auto directory = enter_driver(&driver);
    return directory ? body(*directory, driver) : directory.error();
  });
}

/// Runs `body(directory, card)` for a valid handle of a healthy card.
template <class Body>
int with_card(const NvmlDevice* handle, Body&& body) noexcept {
  return with_driver([&](const Directory& directory, const Driver& driver) -> int {
    const auto index = index_of(handle);
    if (!index || *index >= driver.cards) {
      return kInvalidArgument;
    }
    const auto card = enter_card(directory, *index);
    return card ? body(directory, *card) : card.error();
  });
}

/// with_card for functions that only tell a number.
template <class Number>
int tell(const NvmlDevice* handle, Number* out, std::optional<Number> value) noexcept {
  return with_card(handle, [&](const Directory&, const Card&) -> int {
    if (out == nullptr) {
      return kInvalidArgument;
    }
    if (!value) {
      return kNotSupported;
    }
    *out = *value;
    return kSuccess;
  });
}

}  // namespace berth::simgpu
