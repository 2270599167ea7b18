// Positions, labels, arrival numbers and ids of the stored examples: one copy for all trees
// (promise 5).
//
// A block of new examples is staged behind all slots in use, so that trees refer to any example by
// its slot alone. When the block ends, those that some tree kept settle, in order of arrival, into
// slots that are free or close up at the tail; the others are dropped. Every slot counts its
// holders: the nodes, over all trees, that refer to it. One that has none left is dead from the next
// publication on, and becomes free when no call that began before still runs.
//
// Where trees are searched as a graph, an example that is forgotten is marked first: it keeps its
// holders, so that searches pass through it, and no search of a version that has the mark returns it.
//
// Invariants: what a version has is neither moved nor written while a call reads that version. Rows
// that lie in a mapped file are never written. Slots do not leave the engine: outside, an example is
// its arrival number or its id.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/chunked_array.hpp"
#include "base/types.hpp"
#include "store/ids.hpp"
#include "store/row_sketches.hpp"

namespace boundary_forest {

// The part of a published version that the store knows.
struct StoreVersion {
  std::uint64_t number = 0;  // of this publication
  std::uint64_t seen = 0;    // examples that had arrived; never falls
  Slot stored = 0;           // examples that are stored and not forgotten
  Slot slots = 0;            // slots in use: those of stored examples, and some that were freed
  std::shared_ptr<const RowSketches> sketches = {};  // of all these slots, or null
};

// The rows of a saved forest. With an owner they stay where they are, are never written, and none is
// touched before it is needed; else they are copied.
struct SavedRows {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::shared_ptr<const void> owner = {};
  bool in_file = false;  // mapped, so that they do not count as memory
};

class ExampleStore {
 public:
  ExampleStore(ElementType type, std::size_t n_features, std::size_t label_length,
               IdKind ids = IdKind::none, bool has_marks = false)
      : type_(type),
        n_features_(n_features),
        label_length_(label_length),
        rows_(rows_log2(n_features * size_of(type)), n_features * size_of(type), 0),
        labels_(8, label_length, 3),
        arrivals_(8, 1, 3),
        holders_(8, 1, 3),
        has_marks_(has_marks),
        marks_(8, 1, 3),
        ids_(ids) {}

  ElementType element_type() const { return type_; }
  std::size_t n_features() const { return n_features_; }
  std::size_t label_length() const { return label_length_; }
  std::size_t row_bytes() const { return rows_.width(); }

  const std::byte* row(Slot slot) const { return rows_.at(slot); }
  ChunkedArray<std::byte>::Places rows() const { return rows_.places(); }
  // Short enough that a group of them fits into the second cache with what is in use.
  bool has_short_rows() const { return rows_.width() <= 1024; }
  void prefetch(Slot slot) const {
    const std::byte* row = this->row(slot);
    for (std::size_t at = 0; at < rows_.width(); at += 64) __builtin_prefetch(row + at, 0, 2);
  }
  const double* label(Slot slot) const { return labels_.at(slot); }
  Arrival arrival(Slot slot) const { return arrivals_[slot]; }
  const IdColumn& ids() const { return ids_; }

  // The learner's view: slots in use, staged ones included, and how many are alive.
  Slot size() const { return size_; }
  Slot n_living() const { return n_living_; }
  bool is_alive(Slot slot) const {
    const std::uint32_t word = holders_[slot].load(std::memory_order_relaxed);
    return word != 0 && (word & dead) == 0;
  }

  // Whether the version has the example of this slot, which must be below version.slots.
  bool is_in(const StoreVersion& version, Slot slot) const {
    const std::uint32_t word = holders_[slot].load(std::memory_order_acquire);
    if (word == 0) return false;
    // Dead, but perhaps not yet in that version; numbers are compared modulo 2^31.
    if ((word & dead) != 0 && ((word - version.number - 1) & ~dead) >= (dead >> 1)) return false;
    return arrival(slot) < version.seen;
  }

  // Whether the version has forgotten the example, which its searches still pass through.
  bool is_forgotten(const StoreVersion& version, Slot slot) const {
    if (!has_marks_) return false;
    const std::uint32_t word = marks_[slot].load(std::memory_order_acquire);
    if (word <= forgotten_by_all) return word != 0;
    return ((static_cast<std::uint32_t>(version.number) - word) & ~dead) < (dead >> 1);
  }
  // The learner's view.
  bool is_marked(Slot slot) const {
    return has_marks_ && marks_[slot].load(std::memory_order_relaxed) != 0;
  }
  Slot n_marked() const { return n_marked_; }

  // Copies n examples behind the last slot; returns the slot of the first. ids has at least
  // first_id + n of them, or none.
  Slot stage(const std::byte* rows, const double* labels, std::size_t n, Arrival first_arrival,
             const Ids& ids = {}, std::size_t first_id = 0);

  // Likewise, with these arrival numbers.
  Slot stage(const std::byte* rows, const double* labels, std::span<const Arrival> arrivals,
             const Ids& ids);

  // Puts n saved examples into a store that is empty; nobody holds them yet.
  void restore(std::size_t n, const SavedRows& rows, const double* labels, const Arrival* arrivals,
               const Ids& ids);

  // Drops the staged examples from `first` on that are not marked, and settles the others; where[i]
  // becomes the slot of example first + i, or `nothing`.
  void settle(Slot first, std::span<const char> marked, std::span<Slot> where);

  // A node refers to the slot; no longer does, from the next publication on.
  void hold(Slot slot);
  void let_go(Slot slot, std::uint64_t next_publication);

  // The example is forgotten from the next publication on: its id is free, and it is returned no more.
  // It must not be marked yet.
  void mark(Slot slot, std::uint64_t next_publication);

  // What happened since the last call is published, with a number above `number`. Nothing fails
  // there after reserve_to_commit().
  void reserve_to_commit();
  void commit(std::uint64_t number);
  // What was dead before the oldest version that is read can be used again. If it throws, nothing
  // has changed.
  void recycle_before(std::uint64_t oldest_read);
  // Takes back what happened since the last commit.
  void rollback();

  // Drops the slots from `size` on, which were never committed.
  void truncate(Slot size) {
    size_ = size;
    if (sketches_) sketches_->truncate(size);
  }

  // From now on rows are sketched by this coder, or by none. All slots in use must be sketched before they are
  // compared; see sketches().
  void sketch_by(std::shared_ptr<const RowCoder> coder) {
    sketches_ = coder ? std::make_shared<RowSketches>(std::move(coder)) : nullptr;
  }
  void extend_sketches(std::size_t n_threads) {
    if (sketches_)
      sketches_->extend(size_, n_threads, [&](Slot slot) { return Position{row(slot), type_}; });
  }
  // The learner's view: those of all slots in use, or null.
  std::shared_ptr<const RowSketches> sketches() const {
    return sketches_ && sketches_->size() >= size_ ? sketches_ : nullptr;
  }

  // Gives back the memory that staging needed.
  void shrink() {
    rows_.shrink_to(size_);
    labels_.shrink_to(size_);
    arrivals_.shrink_to(size_);
    holders_.shrink_to(size_);
    marks_.shrink_to(size_);
    ids_.shrink_to(size_);
    if (sketches_) sketches_->shrink_to(size_);
  }

  // May be called by any thread.
  std::size_t position_bytes() const { return rows_.bytes() + owned_bytes_; }
  std::size_t example_bytes() const {
    return labels_.bytes() + arrivals_.bytes() + holders_.bytes() + marks_.bytes();
  }
  std::size_t id_bytes() const { return ids_.bytes(); }

 private:
  // A word of holders_ is their number, or `dead` and the publication that is the first without the
  // example; 0 once nobody can read it any more, and while it is staged.
  static constexpr std::uint32_t dead = 0x80000000U;
  // A word of marks_ is 0; or `dead` and the publication that is the first to have forgotten the
  // example; or this, once all versions that are read have.
  static constexpr std::uint32_t forgotten_by_all = 1;

  // Chunks of about 64 KB.
  static unsigned rows_log2(std::size_t row_bytes) {
    unsigned log2 = 0;
    while (log2 < 12 && (row_bytes << (log2 + 1)) <= 65536) ++log2;
    return log2;
  }

  void grow_to(std::size_t n);
  void move(Slot from, Slot to);
  void wipe(Slot slot);
  void set_holders(Slot slot, std::uint32_t word);

  ElementType type_;
  std::size_t n_features_;
  std::size_t label_length_;
  std::shared_ptr<const void> owner_;  // of rows that lie elsewhere
  std::size_t owned_bytes_ = 0;        // of such rows, unless they are in a file
  ChunkedArray<std::byte> rows_;
  ChunkedArray<double> labels_;  // label_length values an example
  ChunkedArray<Arrival> arrivals_;
  ChunkedArray<std::atomic<std::uint32_t>> holders_;
  bool has_marks_;
  ChunkedArray<std::atomic<std::uint32_t>> marks_;  // if examples can be marked
  IdColumn ids_;
  std::shared_ptr<RowSketches> sketches_;  // null: there are none
  std::shared_ptr<RowSketches> committed_sketches_;
  Slot size_ = 0;
  Slot n_living_ = 0;
  Slot n_marked_ = 0;  // of the living
  std::vector<Slot> free_;

  struct RetiredSlot {
    std::uint64_t number;
    Slot slot;
  };
  std::vector<RetiredSlot> retired_;    // dead, but perhaps still read; by number, ascending
  std::vector<RetiredSlot> forgotten_;  // marked, but perhaps still returned; likewise

  // Since the last commit.
  struct Change {
    Slot slot;
    std::uint32_t word;  // that it had before
  };
  Slot committed_size_ = 0;
  Slot committed_living_ = 0;
  std::vector<Change> changes_;  // of slots below committed_size_
  std::vector<Slot> taken_;      // slots that were free
  std::vector<Slot> settled_;    // new examples, wherever they settled
  std::vector<Slot> dying_;      // examples without a holder
  std::vector<Slot> marked_;
};

}  // namespace boundary_forest
