// What the forest's tests share: seeded streams of examples, and forests that learn pieces of them.
#pragma once

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "forest/boundary_forest.hpp"

namespace streams {

using namespace boundary_forest;

enum class Task { classes, numbers, retrieval };

inline const char* name_of(Task task) {
  return task == Task::classes ? "classes" : task == Task::numbers ? "numbers" : "retrieval";
}

// Params for a task, with small defaults that a test overrides.
inline Params params_for(Task task, std::uint32_t n_T, std::uint32_t k, std::size_t n_features,
                         ElementType type = ElementType::float32) {
  Params params;
  params.n_T = n_T;
  params.k = k;
  params.n_features = n_features;
  params.element_type = type;
  params.seed = 20150125;
  if (task == Task::classes) {
    params.label_length = 1;
  } else if (task == Task::numbers) {
    params.label_length = 2;
    params.label_metric = LabelMetric::euclidean;
    params.estimator = Estimator::shepard_mean;
    params.auto_epsilon = true;
  } else {
    params.label_metric = LabelMetric::always;
    params.estimator = Estimator::nearest;
  }
  return params;
}

// Uniform in [0, 1), the same on every platform, which std::uniform_real_distribution is not.
inline double uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

inline void put(std::vector<std::byte>& to, ElementType type, double value) {
  with_element_type(type, [&](auto zero) {
    const auto element = static_cast<decltype(zero)>(value);
    const auto* bytes = reinterpret_cast<const std::byte*>(&element);
    to.insert(to.end(), bytes, bytes + sizeof element);
  });
}

struct Stream {
  Params params;
  std::size_t n;
  std::vector<std::byte> positions;  // n x n_features, of params.element_type
  std::vector<double> labels;        // n x label_length

  RowsView rows(std::size_t begin, std::size_t count) const {
    return RowsView{positions.data(), n, params.element_type}.slice(begin, count,
                                                                    params.n_features);
  }
  RowsView rows() const { return rows(0, n); }
  const double* labels_from(std::size_t begin) const {
    return labels.data() + begin * params.label_length;
  }
};

// n examples whose features `feature()` draws; labels follow the position, with some noise.
template <class Feature>
Stream draw(const Params& params, std::size_t n, std::uint64_t seed, Feature&& feature) {
  std::mt19937_64 random(seed);
  Stream stream{params, n, {}, {}};
  for (std::size_t i = 0; i < n; ++i) {
    double sum = 0.0;
    for (std::size_t f = 0; f < params.n_features; ++f) {
      const double value = feature(random, i);
      sum += value;
      put(stream.positions, params.element_type, value);
    }
    for (std::size_t l = 0; l < params.label_length; ++l) {
      const bool classes = params.label_metric == LabelMetric::discrete;
      const bool noise = uniform(random) < 0.1;
      if (classes)
        stream.labels.push_back(static_cast<double>((static_cast<int>(sum) + noise) % 4));
      else
        stream.labels.push_back(sum + (noise ? uniform(random) : 0.0));
    }
  }
  return stream;
}

// Positions on a small integer grid: ties and duplicates abound, distances are exact.
inline Stream grid(const Params& params, std::size_t n, std::uint64_t seed) {
  return draw(params, n, seed, [](std::mt19937_64& random, std::size_t) {
    return static_cast<double>(random() % 4);
  });
}

// Uniform in the unit hypercube.
inline Stream cube(const Params& params, std::size_t n, std::uint64_t seed) {
  return draw(params, n, seed,
              [](std::mt19937_64& random, std::size_t) { return uniform(random); });
}

// The origin first, then points all around it: in many dimensions the origin is nearer to each of
// them than they are to one another, so it gets most of the children.
inline Stream star(const Params& params, std::size_t n, std::uint64_t seed) {
  return draw(params, n, seed, [](std::mt19937_64& random, std::size_t i) {
    const double value = 2.0 * uniform(random) - 1.0;
    return i == 0 ? 0.0 : value;
  });
}

inline std::unique_ptr<BoundaryForest> forest_for(const Params& params,
                                                  const std::string& metric = "euclidean") {
  return std::make_unique<BoundaryForest>(
      params, make_metric(metric, 3.0, params.element_type, params.n_features));
}

inline void learn(BoundaryForest& forest, const Stream& stream, std::size_t begin,
                  std::size_t count, std::size_t n_jobs = 1) {
  std::size_t learned = 0;
  forest.learn(stream.rows(begin, count), stream.labels_from(begin), Run{.n_jobs = n_jobs},
               learned);
}

// Names for examples begin to begin + n, of the kind that the forest takes.
inline Ids ids_for(const Params& params, std::size_t begin, std::size_t n) {
  Ids ids;
  for (std::size_t i = begin; i < begin + n; ++i) {
    if (params.ids == IdKind::integer) ids.integers.push_back(static_cast<std::int64_t>(7 * i));
    if (params.ids == IdKind::text)
      ids.texts.push_back("an id that is long enough " + std::to_string(i));
  }
  return ids;
}

inline void learn_named(BoundaryForest& forest, const Stream& stream, std::size_t begin,
                        std::size_t n, std::size_t& learned, const Ids& ids) {
  forest.learn(stream.rows(begin, n), stream.labels_from(begin), Run{}, learned, ids);
}

// Calls of the given sizes, over and over, until the stream ends.
inline void learn_in_calls(BoundaryForest& forest, const Stream& stream,
                           const std::vector<std::size_t>& sizes, std::size_t n_jobs = 1) {
  for (std::size_t begin = 0, call = 0; begin < stream.n; ++call) {
    const std::size_t count = std::min(sizes[call % sizes.size()], stream.n - begin);
    learn(forest, stream, begin, count, n_jobs);
    begin += count;
  }
}

// A state's trees one by one, and all put back again.
struct Tree {
  std::vector<Slot> examples;
  std::vector<NodeId> parents;
};

inline std::vector<Tree> trees_of(const BoundaryForest::State& state) {
  std::vector<Tree> trees;
  auto example = state.node_examples.begin();
  auto parent = state.node_parents.begin();
  for (const NodeId size : state.tree_sizes) {
    trees.push_back({{example, example + size}, {parent, parent + size}});
    example += size;
    parent += size;
  }
  return trees;
}

inline void set_trees(BoundaryForest::State& state, const std::vector<Tree>& trees) {
  state.tree_sizes.clear();
  state.node_examples.clear();
  state.node_parents.clear();
  for (const Tree& tree : trees) {
    state.tree_sizes.push_back(static_cast<NodeId>(tree.examples.size()));
    state.node_examples.insert(state.node_examples.end(), tree.examples.begin(),
                               tree.examples.end());
    state.node_parents.insert(state.node_parents.end(), tree.parents.begin(), tree.parents.end());
  }
}

inline bool same(const BoundaryForest::State& a, const BoundaryForest::State& b) {
  return a.tree_sizes == b.tree_sizes && a.tree_places == b.tree_places &&
         a.tree_generations == b.tree_generations && a.node_examples == b.node_examples &&
         a.node_parents == b.node_parents && a.examples.positions == b.examples.positions &&
         a.examples.labels == b.examples.labels && a.examples.arrivals == b.examples.arrivals &&
         a.examples.ids.integers == b.examples.ids.integers &&
         a.examples.ids.texts == b.examples.ids.texts;
}

}  // namespace streams
