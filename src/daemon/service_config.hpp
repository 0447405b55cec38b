#pragma once
// What those who answer the API know of their instance.

#include <cstdint>
#include <string>

#include "api/views.hpp"
#include "daemon/shown_files.hpp"
#include "daemon/views.hpp"

namespace berth {

struct ServiceConfig {
  std::string dir;
  std::string logs;
  std::string instance;  ///< its id
  std::string node;
  bool simulated = false;
  std::uint32_t owner = 0;  ///< the only user who gets in
  ProcessNotes* processes =
      nullptr;           ///< what people want to know of those on the cards; none: nothing
  RestoreView restored;  ///< just before

  [[nodiscard]] ShownFiles shown_files() const { return {owner, dir, logs}; }
  [[nodiscard]] LogPlaces log_places() const { return {logs, instance}; }
};

}  // namespace berth
