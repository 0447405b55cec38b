#pragma once
// A hash map in many small parts. A std::unordered_map of a million entries moves all of them when
// it grows, which takes tens of milliseconds; here a part grows at a time, which takes
// microseconds.

#include <array>
#include <cstddef>
#include <iterator>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace berth {

template <class Key, class Value, std::size_t Shards = 1024>
class ShardedMap {
  using Shard = std::unordered_map<Key, Value>;

  template <bool Const>
  class Iterator {
    using Inner =
        std::conditional_t<Const, typename Shard::const_iterator, typename Shard::iterator>;
    using Owner = std::conditional_t<Const, const ShardedMap, ShardedMap>;

   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = typename Shard::value_type;
    using difference_type = std::ptrdiff_t;
    using reference = decltype(*std::declval<Inner>());
    using pointer = std::remove_reference_t<reference>*;

    Iterator() = default;
    reference operator*() const { return *inner_; }
    pointer operator->() const { return &*inner_; }
    Iterator& operator++() {
      ++inner_;
      skip_empty();
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) {
      return a.shard_ == b.shard_ && (a.shard_ == Shards || a.inner_ == b.inner_);
    }

   private:
    friend class ShardedMap;
    Iterator(Owner* owner, std::size_t shard, Inner inner)
        : owner_(owner), shard_(shard), inner_(inner) {}
    void skip_empty() {
      while (inner_ == owner_->shards_[shard_].end()) {
        if (++shard_ == Shards) {
          return;
        }
        inner_ = owner_->shards_[shard_].begin();
      }
    }
    Owner* owner_ = nullptr;
    std::size_t shard_ = Shards;
    Inner inner_{};
  };

 public:
  using value_type = typename Shard::value_type;
  using node_type = typename Shard::node_type;
  using iterator = Iterator<false>;
  using const_iterator = Iterator<true>;

  /// Ids fill all parts alike; with one limit for all of them they would also all grow at once.
  ShardedMap() {
    for (std::size_t i = 0; i < Shards; ++i) {
      shards_[i].max_load_factor(0.75F + 0.75F * static_cast<float>(i) / Shards);
    }
  }

  [[nodiscard]] iterator begin() { return first<iterator>(*this); }
  [[nodiscard]] const_iterator begin() const { return first<const_iterator>(*this); }
  [[nodiscard]] iterator end() { return {this, Shards, {}}; }
  [[nodiscard]] const_iterator end() const { return {this, Shards, {}}; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  [[nodiscard]] iterator find(const Key& key) { return look<iterator>(*this, key); }
  [[nodiscard]] const_iterator find(const Key& key) const {
    return look<const_iterator>(*this, key);
  }
  [[nodiscard]] bool contains(const Key& key) const { return shards_[shard_of(key)].contains(key); }
  [[nodiscard]] Value& at(const Key& key) { return shards_[shard_of(key)].at(key); }
  [[nodiscard]] const Value& at(const Key& key) const { return shards_[shard_of(key)].at(key); }
  Value& operator[](const Key& key) { return try_emplace(key).first->second; }

  template <class... Arguments>
  std::pair<iterator, bool> try_emplace(const Key& key, Arguments&&... arguments) {
    const std::size_t shard = shard_of(key);
    const auto [inner, fresh] =
        shards_[shard].try_emplace(key, std::forward<Arguments>(arguments)...);
    size_ += fresh ? 1 : 0;
    return {iterator(this, shard, inner), fresh};
  }
  template <class Mapped>
  std::pair<iterator, bool> emplace(const Key& key, Mapped&& value) {
    return try_emplace(key, std::forward<Mapped>(value));
  }
  std::size_t erase(const Key& key) {
    const std::size_t erased = shards_[shard_of(key)].erase(key);
    size_ -= erased;
    return erased;
  }
  node_type extract(const Key& key) {
    node_type node = shards_[shard_of(key)].extract(key);
    size_ -= node.empty() ? 0 : 1;
    return node;
  }

 private:
  /// Ids are handed out one after the other: the middle bits of a product spread them, and leave
  /// the low ones, by which a part chooses its bucket, alone.
  static std::size_t shard_of(const Key& key) {
    return (std::hash<Key>{}(key) * 0x9E3779B97F4A7C15ULL >> 40) % Shards;
  }
  template <class It, class Self>
  static It first(Self& self) {
    It it(&self, 0, self.shards_[0].begin());
    it.skip_empty();
    return it;
  }
  template <class It, class Self>
  static It look(Self& self, const Key& key) {
    const std::size_t shard = shard_of(key);
    const auto inner = self.shards_[shard].find(key);
    return inner == self.shards_[shard].end() ? self.end() : It(&self, shard, inner);
  }

  std::array<Shard, Shards> shards_;
  std::size_t size_ = 0;
};

}  // namespace berth
