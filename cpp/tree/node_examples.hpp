// The example of each node of a tree.
//
// Where trees are searched as a graph, each has every example, as a node in order of arrival, which is the order
// of slots. So from some node on, behind those that were planted together or rebuilt, node v has the example
// of slot v, and nothing is stored for it: 4 bytes less per node.
//
// Invariants: one writer. What a reader was given stays true: when more nodes come to be stored, those below are
// what they were.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/chunked_array.hpp"
#include "base/types.hpp"

namespace boundary_forest {

class NodeExamples {
 public:
  // `may_follow`: most nodes may have the slot of their own number.
  explicit NodeExamples(bool may_follow) : may_follow_(may_follow), slots_(chunk_log2, 1, 2) {}

  Slot operator[](NodeId v) const {
    return v < n_stored_.load(std::memory_order_acquire) ? slots_[v] : v;
  }
  void prefetch(NodeId v) const {
    if (v < n_stored_.load(std::memory_order_acquire)) __builtin_prefetch(slots_.at(v));
  }

  // Nodes are appended in order.
  void append(NodeId v, Slot slot) {
    if (!may_follow_ || slot != v) store(v, slot);
  }
  void set(NodeId v, Slot slot) {
    if ((*this)[v] != slot) store(v, slot);
  }
  // Nodes from n on are gone.
  void truncate(NodeId n) {
    if (n < n_stored_.load(std::memory_order_relaxed))
      n_stored_.store(n, std::memory_order_release);
  }

  // See ChunkedArray.
  void settle(std::uint64_t number) { slots_.settle(number); }
  void recycle_before(std::uint64_t oldest_read) { slots_.recycle_before(oldest_read); }

  // May be called by any thread.
  std::size_t bytes() const { return slots_.bytes(); }

 private:
  static constexpr unsigned chunk_log2 = 7;

  void store(NodeId v, Slot slot) {
    const NodeId before = n_stored_.load(std::memory_order_relaxed);
    if (v >= before) slots_.grow_to(v + std::size_t{1});
    for (NodeId u = before; u < v; ++u) slots_[u] = u;
    slots_[v] = slot;
    if (v >= before) n_stored_.store(v + 1, std::memory_order_release);
  }

  const bool may_follow_;
  ChunkedArray<Slot> slots_;
  std::atomic<NodeId> n_stored_{0};  // of the first nodes; the others follow
};

}  // namespace boundary_forest
