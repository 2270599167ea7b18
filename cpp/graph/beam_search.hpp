// Best-first search along the links of a graph, with a beam of the closest examples (beam.hpp).
//
// Slots from `end` on are invisible. Rows are what the search compares: codes, or the stored rows
// themselves. is_returned(slot) says whether an example may be returned; others are passed through. What is in
// the beam in the end is a function of the links and the rows alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "distance/metric.hpp"
#include "graph/links.hpp"
#include "graph/search_scratch.hpp"
#include "tree/boundary_tree.hpp"

namespace boundary_forest {

template <class Rows, class IsReturned>
class BeamSearch {
 public:
  BeamSearch(const Links& links, Slot end, const Rows& rows, std::size_t row_bytes, const Metric& d,
             const Position& y, IsReturned is_returned, SearchScratch& scratch)
      : links_(links),
        end_(end),
        rows_(rows),
        row_bytes_(row_bytes),
        d_(d),
        y_(y),
        is_returned_(is_returned),
        scratch_(scratch) {
    scratch_.visited.reset(end);
  }

  // From one example on.
  void start_at(Slot slot) {
    offer(scratch_.visited.meet(1, end_, [&](std::size_t) { return slot; }));
  }

  // From what a descent of the tree compares, as far as children are closer. Deliberately not BTQuery: ties go
  // to the lower slot, as in all of the search, and every example that is compared is offered.
  void start_by_descent(const BoundaryTree& tree, NodeId n_nodes) {
    NodeId v = 0;
    Leaf at_v = offer(scratch_.visited.meet(1, end_, [&](std::size_t) { return tree.example(0); }));
    for (;;) {
      const ChildLists::View children = tree.children(v, n_nodes);
      const auto child = [&](std::size_t j) {
        return tree.example(children[static_cast<std::uint32_t>(j)]);
      };
      // Nobody is met twice in a tree, so they stand as the children do.
      const auto met = scratch_.visited.meet(children.count, end_, child);
      const Leaf closest = offer(met);
      const bool is_closer = closest.reduced < at_v.reduced ||
                             (closest.reduced == at_v.reduced && closest.example < at_v.example);
      if (closest.example == nothing || !is_closer) return;
      const auto at = std::find(met.begin(), met.end(), closest.example);
      v = children[static_cast<std::uint32_t>(at - met.begin())];
      at_v = closest;
    }
  }

  // Until there is nobody left in the beam to go on from.
  void run() {
    Beam& beam = scratch_.beam;
    for (Slot slot = beam.expand(); slot != nothing; slot = beam.expand()) {
      const ChildLists::View view = links_.of(slot);
      // Most likely the next one; its head was prefetched when it came into the beam.
      if (const Slot next = beam.next(); next != nothing) links_.prefetch(next);
      const auto link = [&](std::size_t j) { return view.ids[j].load(std::memory_order_relaxed); };
      const auto only = [&](std::size_t) { return view.only_child; };
      offer(view.ids != nullptr ? scratch_.visited.meet(view.count, end_, link)
                                : scratch_.visited.meet(view.count, end_, only));
    }
  }

  std::size_t n_compared() const { return n_compared_; }

 private:
  // Offers examples to the beam, and returns the closest of them and its distance.
  Leaf offer(std::span<const Slot> met) {
    const std::size_t n = met.size();
    scratch_.rows.resize(n);
    scratch_.reduced.resize(n);
    const std::byte** const rows = scratch_.rows.data();
    for (std::size_t j = 0; j < n; ++j) {
      rows[j] = reinterpret_cast<const std::byte*>(rows_.at(met[j]));
      for (std::size_t at = 0; at < row_bytes_; at += 64) __builtin_prefetch(rows[j] + at);
    }
    d_.distances(y_, rows, n, scratch_.reduced.data());
    n_compared_ += n;
    Leaf closest{nothing, std::numeric_limits<double>::infinity()};
    for (std::size_t j = 0; j < n; ++j) {
      double reduced = scratch_.reduced[j];
      // Rows in a mapped file are not checked.
      if (std::isnan(reduced)) reduced = std::numeric_limits<double>::infinity();
      if (scratch_.beam.offer(reduced, met[j], is_returned_(met[j]))) links_.prefetch_head(met[j]);
      if (reduced < closest.reduced || (reduced == closest.reduced && met[j] < closest.example))
        closest = {met[j], reduced};
    }
    return closest;
  }

  const Links& links_;
  const Slot end_;
  const Rows rows_;
  const std::size_t row_bytes_;
  const Metric& d_;
  const Position y_;
  const IsReturned is_returned_;
  SearchScratch& scratch_;
  std::size_t n_compared_ = 0;
};

}  // namespace boundary_forest
