// A forest that holds a part of the trees: what its driver needs of it (forest_driver.hpp), besides what any
// forest does.
//
// Each part learns for itself, and publishes as any engine does, up to the arrivals at which all trees, or
// all examples that are stored anywhere, must be known; the driver says which arrivals these are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "forest/boundary_forest.hpp"

namespace boundary_forest {

// Of what several engines have to say, one after the other: the numbers of the n closest for each row, in
// order and each example once; of row i, from ends[i - 1] to ends[i].
struct Closest {
  std::vector<std::uint64_t> row_ends;
  std::vector<std::uint64_t> numbers;
};
// `ends` are those of each engine, and the others stand one after the other.
Closest closest(std::span<const std::span<const std::uint64_t>> ends,
                std::span<const double> reduced, std::span<const Arrival> arrivals, std::size_t n);

class PartialForest {
 public:
  explicit PartialForest(BoundaryForest& forest) : parts_(forest.parts()) {}

  bool is_planted() { return Reading(parts_.publication).version.planted; }

  // The examples that the trees end at, without weights; and the same before each row is learned.
  TreeLeaves leaves(const RowsView& rows, const Run& run);
  TreeLeaves leaves_then_learn(const RowsView& rows, const double* labels, const Run& run,
                               std::size_t& learned, const Ids& ids = {});
  // Up to n of the examples that neighbors() would choose from, or those within a radius; nearest first.
  Candidates candidates(const RowsView& rows, std::size_t n, double radius, const Search& search,
                        const Run& run);
  // Stored examples, which must all be there.
  Examples examples(std::span<const Arrival> arrivals);

  // The places whose trees get a successor now, from all that is stored anywhere; and growing these, given
  // what is not stored here, in order of arrival. Nobody may query meanwhile: examples that settle here
  // count as if they had always been here, so that a version that is being read might seem to have them.
  std::vector<std::uint32_t> places_to_grow();
  void grow(const RowsView& rows, const double* labels, std::span<const Arrival> arrivals,
            const Ids& ids, const Run& run);

  // The tree that is cut first if too many examples are stored: that of the oldest one, by order among
  // trees.
  struct Oldest {
    Arrival arrival;
    bool answering;
    std::uint32_t place;
  };
  std::optional<Oldest> oldest();
  void cut(std::uint32_t place, bool answering, const Run& run);

 private:
  Arrival growing_step() const {
    return parts_.decisions.schedule().growing_step(parts_.draft.progress().seen);
  }

  const ForestParts parts_;
};

}  // namespace boundary_forest
