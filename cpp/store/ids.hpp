// External ids: names that the user gives to examples, integers or text, kept with the rows of the
// store.
//
// Readers look up an example's id by its slot. The learner alone finds examples by their ids, in an
// index that changes only when a block is published: so a block that is taken back, or a call that
// is interrupted, has nothing to undo here.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/chunked_array.hpp"
#include "base/rng.hpp"
#include "base/types.hpp"

namespace boundary_forest {

// Ids on their way in or out, one an example, all of one kind.
struct Ids {
  std::vector<std::int64_t> integers;
  std::vector<std::string> texts;

  std::size_t size() const { return integers.size() + texts.size(); }
  IdKind kind() const {
    return !integers.empty() ? IdKind::integer : !texts.empty() ? IdKind::text : IdKind::none;
  }
  // Of the kind that there is.
  void drop_first(std::size_t n) {
    const auto drop = [n](auto& ids) {
      if (!ids.empty()) ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n));
    };
    drop(integers);
    drop(texts);
  }
};

// Slots by a hash of what they hold: open addressing with linear probing, at most three quarters
// full, so 5 to 11 bytes an example. Removing shifts back what comes after, so nothing is marked.
class SlotIndex {
 public:
  // The slot with this hash for which same(slot) holds, or `nothing`.
  template <class Same>
  Slot find(std::uint64_t hash, Same&& same) const {
    if (n_ == 0) return nothing;
    for (std::size_t at = hash & mask();; at = (at + 1) & mask()) {
      if (table_[at] == nothing) return nothing;
      if (same(table_[at])) return table_[at];
    }
  }

  // n more can be inserted without asking for memory.
  template <class Hash>
  void reserve_more(std::size_t n, Hash&& hash) {
    while (4 * (n_ + n) > 3 * table_.size()) grow(hash);
  }

  template <class Hash>
  void insert(Slot slot, Hash&& hash) {
    reserve_more(1, hash);
    std::size_t at = hash(slot) & mask();
    while (table_[at] != nothing) at = (at + 1) & mask();
    table_[at] = slot;
    ++n_;
  }

  template <class Hash>
  void erase(Slot slot, Hash&& hash) {
    std::size_t hole = hash(slot) & mask();
    while (table_[hole] != slot) hole = (hole + 1) & mask();
    for (std::size_t at = (hole + 1) & mask(); table_[at] != nothing; at = (at + 1) & mask()) {
      // What stands at `at` may move into the hole unless its own place lies behind the hole.
      if (((at - hash(table_[at])) & mask()) < ((at - hole) & mask())) continue;
      table_[hole] = table_[at];
      hole = at;
    }
    table_[hole] = nothing;
    --n_;
  }

  // May be called by any thread.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  std::size_t mask() const { return table_.size() - 1; }

  template <class Hash>
  void grow(Hash&& hash) {
    const std::vector<Slot> before = std::exchange(
        table_, std::vector<Slot>(std::max<std::size_t>(16, 2 * table_.size()), nothing));
    bytes_ = table_.size() * sizeof(Slot);
    n_ = 0;
    for (const Slot slot : before)
      if (slot != nothing) insert(slot, hash);
  }

  std::vector<Slot> table_;  // its length is a power of two
  std::size_t n_ = 0;
  std::atomic<std::size_t> bytes_{0};
};

// The ids of the stored examples, by slot.
class IdColumn {
 public:
  explicit IdColumn(IdKind kind) : kind_(kind), integers_(8, 1, 3), texts_(8, 1, 3) {}

  IdKind kind() const { return kind_; }

  void grow_to(std::size_t n) {
    if (kind_ == IdKind::integer) integers_.grow_to(n);
    if (kind_ == IdKind::text) texts_.grow_to(n);
  }
  void shrink_to(std::size_t n) {
    integers_.shrink_to(n);
    texts_.shrink_to(n);
  }

  // See ChunkedArray.
  void settle(std::uint64_t number) {
    integers_.settle(number);
    texts_.settle(number);
  }
  void recycle_before(std::uint64_t oldest_read) {
    integers_.recycle_before(oldest_read);
    texts_.recycle_before(oldest_read);
  }

  void put(Slot slot, const Ids& ids, std::size_t i) {
    if (kind_ == IdKind::integer) integers_[slot] = ids.integers[i];
    if (kind_ == IdKind::text) texts_[slot] = ids.texts[i];
  }
  void move(Slot from, Slot to) {
    if (kind_ == IdKind::integer) integers_[to] = integers_[from];
    if (kind_ == IdKind::text) texts_[to] = std::move(texts_[from]);
  }
  // Leaves nothing behind, and gives back the memory of a long text.
  void clear(Slot slot) {
    if (kind_ == IdKind::integer) integers_[slot] = 0;
    if (kind_ == IdKind::text) texts_[slot] = std::string();
  }
  // Room for n ids, and copying one there.
  Ids blank(std::size_t n) const {
    return {std::vector<std::int64_t>(kind_ == IdKind::integer ? n : 0),
            std::vector<std::string>(kind_ == IdKind::text ? n : 0)};
  }
  void get(Slot slot, Ids& out, std::size_t i) const {
    if (kind_ == IdKind::integer) out.integers[i] = integers_[slot];
    if (kind_ == IdKind::text) out.texts[i] = texts_[slot];
  }

  // The index of published examples.
  void reserve_more(std::size_t n) {
    if (kind_ != IdKind::none)
      index_.reserve_more(n, [this](Slot other) { return hash_at(other); });
  }
  void add(Slot slot) {
    if (kind_ != IdKind::none) index_.insert(slot, [this](Slot other) { return hash_at(other); });
  }
  void remove(Slot slot) {
    if (kind_ != IdKind::none) index_.erase(slot, [this](Slot other) { return hash_at(other); });
  }
  // The stored example with the i-th of these ids, or `nothing`.
  Slot find(const Ids& ids, std::size_t i) const {
    if (kind_ == IdKind::text)
      return index_.find(hash(ids.texts[i]),
                         [&](Slot slot) { return texts_[slot] == ids.texts[i]; });
    return index_.find(hash(ids.integers[i]),
                       [&](Slot slot) { return integers_[slot] == ids.integers[i]; });
  }

  // Throws std::invalid_argument if ids occur twice or, unless they may, already name a stored example.
  void check_new(const Ids& ids, bool may_be_known = false) const;

  // May be called by any thread. Texts of more than 15 bytes take memory beyond this.
  std::size_t bytes() const { return integers_.bytes() + texts_.bytes() + index_.bytes(); }

 private:
  static std::uint64_t hash(std::int64_t id) { return mix64(static_cast<std::uint64_t>(id) + 1); }
  static std::uint64_t hash(const std::string& id) {
    return mix64(std::hash<std::string_view>{}(id));
  }
  std::uint64_t hash_at(Slot slot) const {
    return kind_ == IdKind::text ? hash(texts_[slot]) : hash(integers_[slot]);
  }

  IdKind kind_;
  ChunkedArray<std::int64_t> integers_;
  ChunkedArray<std::string> texts_;
  SlotIndex index_;
};

}  // namespace boundary_forest
