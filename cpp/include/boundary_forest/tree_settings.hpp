// What a tree is grown with, so that the trees of a forest may come to differ. The metrics of one
// forest are of one kind: their reduced distances stand for distances in the same way.
#pragma once

#include <memory>
#include <vector>

#include "boundary_forest/feature_weights.hpp"
#include "boundary_forest/metric.hpp"

namespace boundary_forest {

struct TreeSettings {
  std::shared_ptr<const Metric> d;
  LogWeights log_weights = {};  // that d has, if they were learned; none: d is the plain metric
};

}  // namespace boundary_forest
