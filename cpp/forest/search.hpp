// How stored examples are searched for, and what a search needs for a moment.
//
// There are three ways. By the paper: for one neighbour, the closest of the examples that the trees end
// at; for more, the closest of the distinct ones that the descents compared, or of all that are stored
// where those are fewer. By the graph, if the forest has one: best first, with a beam (graph_search.cpp).
// And exactly. Ties go to the earlier arrival.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "store/ids.hpp"

namespace boundary_forest {

// What may be returned.
struct Allowed {
  enum class By : std::uint8_t { all, arrivals, ids } by = By::all;
  std::span<const std::uint8_t> arrivals;  // 0 or 1 for each; those beyond are not allowed
  const Ids* ids = nullptr;                // those that name nothing are passed over
};

struct Search {
  bool exact = false;      // else by the graph, or by the paper where there is none
  std::size_t beam = 100;  // of the graph: how many of the closest are kept while it is walked
  Allowed allowed = {};
};

// Which of the examples that a search finds are asked for.
struct Limit {
  std::size_t n = std::numeric_limits<std::size_t>::max();
  double farthest = std::numeric_limits<double>::infinity();  // a distance, not reduced
};

}  // namespace boundary_forest
