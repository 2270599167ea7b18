// How examples are staged, settle, die and make room; what is read of them is in the header.
#include "store/example_store.hpp"

namespace boundary_forest {

void ExampleStore::grow_to(std::size_t n) {
  rows_.grow_to(n);
  labels_.grow_to(n);
  arrivals_.grow_to(n);
  holders_.grow_to(n);
  if (has_marks_) marks_.grow_to(n);
  ids_.grow_to(n);
}

Slot ExampleStore::stage(const std::byte* rows, const double* labels, std::size_t n,
                         Arrival first_arrival, const Ids& ids, std::size_t first_id) {
  if (n >= nothing - size_) throw std::length_error("a forest stores at most 2^32 - 2 examples");
  grow_to(size_ + n);
  for (std::size_t i = 0; i < n; ++i) {
    const Slot slot = size_ + static_cast<Slot>(i);
    std::memcpy(rows_.at(slot), rows + i * rows_.width(), rows_.width());
    if (label_length_ > 0)
      std::memcpy(labels_.at(slot), labels + i * label_length_, label_length_ * sizeof(double));
    arrivals_[slot] = first_arrival + i;
    holders_[slot].store(0, std::memory_order_relaxed);
    if (has_marks_) marks_[slot].store(0, std::memory_order_relaxed);
    ids_.put(slot, ids, first_id + i);
  }
  const Slot first = size_;
  size_ += static_cast<Slot>(n);
  return first;
}

Slot ExampleStore::stage(const std::byte* rows, const double* labels,
                         std::span<const Arrival> arrivals, const Ids& ids) {
  const Slot first = stage(rows, labels, arrivals.size(), 0, ids);
  for (std::size_t i = 0; i < arrivals.size(); ++i)
    arrivals_[first + static_cast<Slot>(i)] = arrivals[i];
  return first;
}

void ExampleStore::restore(std::size_t n, const SavedRows& rows, const double* labels,
                           const Arrival* arrivals, const Ids& ids) {
  labels_.grow_to(n);
  arrivals_.grow_to(n);
  holders_.grow_to(n);
  if (has_marks_) marks_.grow_to(n);
  ids_.grow_to(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::copy_n(labels + i * label_length_, label_length_, labels_.at(i));
    arrivals_[i] = arrivals[i];
    holders_[i].store(0, std::memory_order_relaxed);  // not so after a restoration that failed
    ids_.put(static_cast<Slot>(i), ids, i);
  }
  if (rows.owner) {
    rows_.adopt(const_cast<std::byte*>(rows.data), n);
    owner_ = rows.owner;
    owned_bytes_ = rows.in_file ? 0 : rows.bytes;
  } else {
    rows_.grow_to(n);
    for (std::size_t i = 0; i < n; i += rows_.chunk_elements())
      std::memcpy(rows_.at(i), rows.data + i * rows_.width(),
                  std::min(n - i, rows_.chunk_elements()) * rows_.width());
  }
  size_ = static_cast<Slot>(n);
}

void ExampleStore::move(Slot from, Slot to) {
  std::memcpy(rows_.at(to), rows_.at(from), rows_.width());
  std::copy_n(labels_.at(from), label_length_, labels_.at(to));
  arrivals_[to] = arrivals_[from];
  ids_.move(from, to);
  if (sketches_ && from < sketches_->size()) sketches_->move(from, to);
}

void ExampleStore::settle(Slot first, std::span<const char> marked, std::span<Slot> where) {
  Slot tail = first;
  for (std::size_t i = 0; i < marked.size(); ++i) {
    where[i] = nothing;
    if (!marked[i]) continue;
    const Slot from = first + static_cast<Slot>(i);
    Slot to = tail;
    if (free_.empty()) {
      ++tail;
    } else {
      to = free_.back();
      taken_.push_back(to);
      free_.pop_back();
    }
    if (from != to) move(from, to);
    where[i] = to;
  }
  truncate(tail);
}

void ExampleStore::set_holders(Slot slot, std::uint32_t word) {
  if (slot < committed_size_)
    changes_.push_back({slot, holders_[slot].load(std::memory_order_relaxed)});
  holders_[slot].store(word, std::memory_order_release);
}

void ExampleStore::hold(Slot slot) {
  const std::uint32_t word = holders_[slot].load(std::memory_order_relaxed);
  set_holders(slot, word + 1);
  if (word > 0) return;
  ++n_living_;
  settled_.push_back(slot);
}

void ExampleStore::let_go(Slot slot, std::uint64_t next_publication) {
  const std::uint32_t word = holders_[slot].load(std::memory_order_relaxed);
  if (word > 1) {
    set_holders(slot, word - 1);
    return;
  }
  set_holders(slot, dead | static_cast<std::uint32_t>(next_publication));
  --n_living_;
  dying_.push_back(slot);
}

void ExampleStore::mark(Slot slot, std::uint64_t next_publication) {
  reserve_more(marked_, 1);
  marks_[slot].store(dead | static_cast<std::uint32_t>(next_publication),
                     std::memory_order_release);
  marked_.push_back(slot);
  ++n_marked_;
}

void ExampleStore::reserve_to_commit() {
  ids_.reserve_more(settled_.size());
  reserve_more(retired_, dying_.size());
  reserve_more(forgotten_, marked_.size());
}

void ExampleStore::commit(std::uint64_t number) {
  for (const Slot slot : marked_) {
    ids_.remove(slot);
    forgotten_.push_back({number, slot});
  }
  for (const Slot slot : settled_) ids_.add(slot);
  for (const Slot slot : dying_) {
    ids_.remove(slot);
    retired_.push_back({number, slot});
  }
  changes_.clear();
  taken_.clear();
  settled_.clear();
  dying_.clear();
  marked_.clear();
  committed_size_ = size_;
  committed_living_ = n_living_;
  rows_.settle(number);
  labels_.settle(number);
  arrivals_.settle(number);
  holders_.settle(number);
  marks_.settle(number);
  ids_.settle(number);
  committed_sketches_ = sketches_;
  if (sketches_) sketches_->settle(number);
}

void ExampleStore::recycle_before(std::uint64_t oldest_read) {
  if (!retired_.empty()) reserve_more(free_, retired_.size());
  auto retired = retired_.begin();
  for (; retired != retired_.end() && retired->number < oldest_read; ++retired) {
    holders_[retired->slot].store(0, std::memory_order_relaxed);
    wipe(retired->slot);
    if (rows_.is_own(retired->slot)) free_.push_back(retired->slot);
  }
  retired_.erase(retired_.begin(), retired);
  auto forgotten = forgotten_.begin();
  for (; forgotten != forgotten_.end() && forgotten->number < oldest_read; ++forgotten)
    marks_[forgotten->slot].store(forgotten_by_all, std::memory_order_relaxed);
  forgotten_.erase(forgotten_.begin(), forgotten);
  rows_.recycle_before(oldest_read);
  labels_.recycle_before(oldest_read);
  arrivals_.recycle_before(oldest_read);
  holders_.recycle_before(oldest_read);
  marks_.recycle_before(oldest_read);
  ids_.recycle_before(oldest_read);
  if (sketches_) sketches_->recycle_before(oldest_read);
}

// What may have been forgotten on request leaves nothing behind.
void ExampleStore::wipe(Slot slot) {
  if (rows_.is_own(slot)) std::memset(rows_.at(slot), 0, rows_.width());
  std::fill_n(labels_.at(slot), label_length_, 0.0);
  ids_.clear(slot);
  if (sketches_) sketches_->wipe(slot);
}

void ExampleStore::rollback() {
  for (; !changes_.empty(); changes_.pop_back()) {
    const auto [slot, word] = changes_.back();
    holders_[slot].store(word, std::memory_order_release);
  }
  free_.insert(free_.end(), taken_.begin(), taken_.end());
  taken_.clear();
  settled_.clear();
  dying_.clear();
  for (const Slot slot : marked_) marks_[slot].store(0, std::memory_order_release);
  n_marked_ -= static_cast<Slot>(marked_.size());
  marked_.clear();
  sketches_ = committed_sketches_;
  truncate(committed_size_);
  n_living_ = committed_living_;
  shrink();
}

}  // namespace boundary_forest
