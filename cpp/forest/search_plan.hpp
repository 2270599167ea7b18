// Of one call that searches: what it reads, and which examples it may return.
#pragma once

#include <cstdint>
#include <vector>

#include "forest/boundary_forest.hpp"

namespace boundary_forest {

struct BoundaryForest::SearchPlan {
  const Version& version;
  bool exact;                         // all that may be returned are compared: `slots`
  std::size_t beam;                   // else, of a graph
  std::size_t n_allowed;              // how many may be returned
  std::vector<std::uint8_t> allowed;  // by slot, if not all that are stored may be
  std::vector<Slot> slots;
  bool is_filtered = false;
  bool compared_only = false;  // fewer than asked for are enough, as other engines have more
};

}  // namespace boundary_forest
