#include "access/key_ring.hpp"

#include <algorithm>

#include "access/secret.hpp"

namespace berth {
namespace {

constexpr Millis kUseNoted{60'000};
/// Marks a secret as one of ours, for people and for programs that look for leaked ones.
constexpr std::string_view kTokenPrefix = "berth_";

bool has_expired(const KeyRecord& key, Millis now) {
  return key.expires && *key.expires <= now;
}

}  // namespace

TokenAnswer KeyRing::add(Wish wish, Millis now) {
  TokenAnswer answer;
  answer.secret = std::string(kTokenPrefix) + new_secret();
  KeyRecord& key = answer.token;
  key.id = ++file_.last_id;
  key.kind = std::move(wish.kind);
  key.name = std::move(wish.name);
  key.scope = std::move(wish.scope);
  key.hash = secret_hash(answer.secret);
  key.created = now;
  if (wish.lifetime > Millis(0)) {
    key.expires = now + wish.lifetime;
  }
  file_.keys.push_back(key);
  return answer;
}

bool KeyRing::remove(std::uint64_t id) {
  return std::erase_if(file_.keys, [&](const KeyRecord& key) { return key.id == id; }) > 0;
}

bool KeyRing::prune(Millis now) {
  return std::erase_if(file_.keys, [&](const KeyRecord& key) { return has_expired(key, now); }) > 0;
}

const KeyRecord* KeyRing::find(std::string_view secret, std::string_view kind, Millis now) const {
  const std::string hash = secret_hash(secret);
  const KeyRecord* found = nullptr;
  for (const KeyRecord& key : file_.keys) {
    if (same_secret(key.hash, hash) && key.kind == kind && !has_expired(key, now)) {
      found = &key;
    }
  }
  return found;
}

const KeyRecord* KeyRing::by_id(std::uint64_t id) const {
  const auto key = std::ranges::find(file_.keys, id, &KeyRecord::id);
  return key == file_.keys.end() ? nullptr : &*key;
}

bool KeyRing::used(std::uint64_t id, Millis now) {
  const auto key = std::ranges::find(file_.keys, id, &KeyRecord::id);
  if (key == file_.keys.end() || (key->last_used && now - *key->last_used < kUseNoted)) {
    return false;
  }
  key->last_used = now;
  return true;
}

Scope scope_of(const KeyRecord& key) {
  return key.scope == "full" ? Scope::full : Scope::read;
}

}  // namespace berth
