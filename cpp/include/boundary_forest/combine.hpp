// E: how the examples that the trees found become an answer (the paper's section on the algorithm).
//
// Shepard's weights are 1 / d(x_i, y). Examples at distance zero alone decide, equally. Sums run in
// tree order, in double. The weights are scaled by the least distance, which changes no answer and
// keeps 1 / d from overflowing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "boundary_forest/boundary_tree.hpp"
#include "boundary_forest/example_store.hpp"
#include "boundary_forest/metric.hpp"

namespace boundary_forest {

// Turns distances into Shepard's weights, in place; returns their sum.
inline double shepard_weights(std::span<double> d) {
  const double least = *std::min_element(d.begin(), d.end());
  double sum = 0.0;
  for (double& value : d) {
    if (least == 0.0)
      value = value == 0.0 ? 1.0 : 0.0;
    else
      value = value == least ? 1.0 : least / value;  // equal weights too where all are infinite
    sum += value;
  }
  return sum;
}

// The share of the weights that each class gets; out has one entry a class code.
inline void shepard_vote(std::span<const Leaf> v, std::span<const double> weights, double sum,
                         const ExampleStore& store, std::span<double> out) {
  std::fill(out.begin(), out.end(), 0.0);
  for (std::size_t i = 0; i < v.size(); ++i)
    out[static_cast<std::size_t>(*store.label(v[i].example))] += weights[i];
  for (double& share : out) share /= sum;
}

// The weighted mean of the label vectors.
inline void shepard_mean(std::span<const Leaf> v, std::span<const double> weights, double sum,
                         const ExampleStore& store, std::span<double> out) {
  std::fill(out.begin(), out.end(), 0.0);
  for (std::size_t i = 0; i < v.size(); ++i) {
    const double* label = store.label(v[i].example);
    for (std::size_t j = 0; j < out.size(); ++j) out[j] += weights[i] * label[j];
  }
  for (double& value : out) value /= sum;
}

// Retrieval: the closest of the locally closest examples, the earliest among equals.
inline const Leaf& nearest(std::span<const Leaf> v, const ExampleStore& store) {
  return *std::min_element(v.begin(), v.end(), [&](const Leaf& a, const Leaf& b) {
    if (a.reduced != b.reduced) return a.reduced < b.reduced;
    return store.arrival(a.example) < store.arrival(b.example);
  });
}

}  // namespace boundary_forest
