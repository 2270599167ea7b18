// Examples that are forgotten on request.
//
// A tree that has some of them is replaced by one that lacks them: what did not stand below them stays as
// it was, and the others are learned again (rebuilding.hpp). Rows are wiped when no call that may read them
// still runs (example_store.cpp).
//
// In a forest that is searched as a graph, examples are only marked at first: queries pass through them and
// return none. Once as many are marked as are not, and before anything is saved or copied, a forest without
// them takes the place of this one; it begins with no more memory than it needs. Its state is made before
// the marks are published, so that a call that fails leaves no trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "forest/draft.hpp"
#include "forest/rebuilding.hpp"
#include "forest/state.hpp"

namespace boundary_forest {

struct Forgetting {
  std::vector<std::size_t>
      unknown;  // numbers of the ids that are not known: then nothing is forgotten
  std::optional<ForestState>
      rebuilt;  // of the forest that has forgotten them, if it is another one
};

// The marked are a third of all that are stored, or more. Searches pass through them, and take longer by about as
// much as there are more examples than may be returned; to rebuild more often costs more learning.
inline bool is_rebuild_due(std::uint64_t n_marked, std::uint64_t n_stored) {
  return n_marked > 0 && 3 * n_marked >= n_stored;
}

class Deletion {
 public:
  Deletion(const Setup& setup, Rebuilding& rebuilding, Publication& publication, Draft& draft)
      : setup_(setup), rebuilding_(rebuilding), publication_(publication), draft_(draft) {}

  // Forgets the examples with these ids: in trees, in memory, and among the last arrivals; and publishes,
  // once, unless another forest is to take the place of this one; so it is where examples are marked and
  // `erases`. If none would be left (std::invalid_argument), nothing is forgotten.
  Forgetting forget(const Ids& ids, const Run& run, bool erases = false);
  // The state of a forest that has nothing of the marked examples. This one stays as it is.
  ForestState without_marked(const Run& run);
  // The codes of the classes, ascending, that examples with other ids have, in trees or among the last
  // arrivals. Changes nothing.
  std::vector<std::uint32_t> classes_without(const Ids& ids) const;

  // The rest is for a call that has begun, and publishes nothing. Marks the examples that have ids `begin`
  // to `begin` + n.
  void mark_known(const Ids& ids, std::size_t begin, std::size_t n);
  // Whether so many examples are marked that the forest is to be rebuilt without them; and how many more must be
  // replaced until then, at least 1.
  bool must_rebuild() const;
  std::size_t n_before_rebuilding() const;
  // As without_marked(), of the draft, which is then rolled back.
  ForestState take_without_marked(const Run& run);

 private:
  Forgetting mark(const Ids& ids, const Run& run, bool erases);
  std::vector<char> find_in_window(const Ids& ids, std::vector<Arrival>& arrivals) const;
  void uncount(std::span<const char> forgotten, std::span<const Arrival> erased);
  void remove(std::span<const char> forgotten, const Run& run);
  Slot earliest_left(std::span<const char> forgotten) const;

  const Setup& setup_;
  Rebuilding& rebuilding_;
  Publication& publication_;
  Draft& draft_;
};

}  // namespace boundary_forest
