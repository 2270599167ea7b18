// Examples that are forgotten on request.
//
// A tree that has some of them is replaced by one that lacks them: what did not stand below them stays as
// it was, and the others are learned again, in order of arrival; in a forest that is searched as a graph,
// in an order of the tree's own, as trees that differ make the better graph. The new tree is of the same
// generation, so that ties are settled as before and rows take the paths that they took. Rows are wiped
// when no call that may read them still runs (example_store.cpp).
//
// In a forest that is searched as a graph, examples are only marked at first: searches pass through them
// and return none. Once as many are marked as are not, and before anything is saved or copied, a forest
// without them takes the place of this one; it begins with no more memory than it needs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "forest/draft.hpp"
#include "forest/grower.hpp"

namespace boundary_forest {

class Deletion {
 public:
  Deletion(const Setup& setup, const Grower& grower, Draft& draft)
      : setup_(setup), grower_(grower), draft_(draft) {}

  // Forgets the examples with these ids: in trees, in memory, and among the last arrivals. Returns the
  // numbers of those that are not known; then, and if none would be left (std::invalid_argument), nothing
  // is forgotten. Publishes.
  std::vector<std::size_t> forget(const Ids& ids, const Run& run);

  // For a call that has begun; these publish nothing. Marks the examples that have ids begin to begin + n.
  void mark_known(const Ids& ids, std::size_t begin, std::size_t n);
  // Removes all that is marked from the trees. Returns the slots that are left.
  std::vector<Slot> remove_marked(const Run& run);

 private:
  std::vector<std::size_t> mark(const Ids& ids);
  std::vector<char> find_in_window(const Ids& ids, std::vector<Arrival>& arrivals) const;
  void remove(std::span<const char> forgotten, const Run& run);
  Slot earliest_left(std::span<const char> forgotten) const;

  const Setup& setup_;
  const Grower& grower_;
  Draft& draft_;
};

}  // namespace boundary_forest
