// What the trees of one engine said of one row, in the form that votes are counted in.
#pragma once

#include "forest/boundary_forest.hpp"
#include "vote/voting.hpp"

namespace boundary_forest {

class BoundaryForest::RowAnswers {
 public:
  RowAnswers(const BoundaryForest& forest, std::span<const Leaf> v,
             std::pmr::memory_resource* memory)
      : distances_(forest.distances(v, memory)), labels_(forest.labels(v, memory)) {
    if (forest.params_.estimator == Estimator::nearest)
      closest_ = forest.store_.label(nearest(v, forest.store_).example);
  }

  TreeAnswers view() const { return {distances_, labels_, closest_}; }

 private:
  const std::pmr::vector<double> distances_;
  const std::pmr::vector<const double*> labels_;
  const double* closest_ = nullptr;
};

}  // namespace boundary_forest
