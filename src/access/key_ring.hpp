#pragma once
// The keys of an instance: who gets in, as what, until when. No file and no clock: `now` is an
// argument, milliseconds since 1970.

#include <string>
#include <string_view>
#include <utility>

#include "api/access.hpp"
#include "api/routes.hpp"

namespace berth {

class KeyRing {
 public:
  KeyRing() = default;
  explicit KeyRing(AccessFile file) : file_(std::move(file)) {}

  struct Wish {
    std::string kind;
    std::string name;
    std::string scope;
    Millis lifetime{0};  ///< 0: for ever
  };
  /// A new key and its secret, which is told now or never.
  [[nodiscard]] TokenAnswer add(Wish wish, Millis now);
  /// False if there is none of this id.
  bool remove(std::uint64_t id);
  /// Lets go of what has expired; whether there was any.
  bool prune(Millis now);

  /// The key with this secret, of this kind, if it has not expired. Looks at all of them, whichever
  /// fits.
  [[nodiscard]] const KeyRecord* find(std::string_view secret, std::string_view kind,
                                      Millis now) const;
  /// Null: there is none of this id.
  [[nodiscard]] const KeyRecord* by_id(std::uint64_t id) const;
  /// Notes the use; whether that is news worth keeping.
  bool used(std::uint64_t id, Millis now);

  void set_port(std::uint16_t port) { file_.port = port; }
  [[nodiscard]] const AccessFile& file() const { return file_; }

 private:
  AccessFile file_;
};

[[nodiscard]] Scope scope_of(const KeyRecord& key);

}  // namespace berth
