// What the tests of replaced trees share: orders to rebuild trees from, and what a state must be.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "tests/check.hpp"
#include "tests/streams.hpp"

namespace streams {

using State = BoundaryForest::State;

inline Stream stream_for(Task task, std::size_t n = 600) {
  return grid(params_for(task, 6, 3, 4), n, 17);
}

// All examples that tree t holds and `wanted` admits, in a random order of its own.
inline std::vector<Arrival> order_of(const State& state, std::size_t t, std::uint64_t seed,
                                     const std::function<bool(Arrival)>& wanted = {}) {
  const Tree tree = trees_of(state)[t];
  std::vector<Arrival> arrivals;
  for (const std::uint32_t example : tree.examples)
    if (!wanted || wanted(state.examples.arrivals[example]))
      arrivals.push_back(state.examples.arrivals[example]);
  std::vector<Arrival> order;
  for (const std::uint32_t i : shuffled(static_cast<std::uint32_t>(arrivals.size()), seed, t))
    order.push_back(arrivals[i]);
  return order;
}

// Every tree rebuilt from what it holds, but for the examples that are not wanted.
inline std::vector<Regrowth> without(const State& state, std::uint64_t seed,
                                     const std::function<bool(Arrival)>& wanted) {
  std::vector<Regrowth> all;
  for (std::uint32_t t = 0; t < state.tree_sizes.size(); ++t)
    all.push_back({t, order_of(state, t, seed, wanted)});
  return all;
}

// Each example of a state is held, each holder is stored, and arrivals ascend.
inline void check_living(const State& state) {
  std::set<std::uint32_t> held(state.node_examples.begin(), state.node_examples.end());
  CHECK_EQ(held.size(), state.examples.arrivals.size());
  for (std::size_t i = 1; i < state.examples.arrivals.size(); ++i)
    CHECK(state.examples.arrivals[i - 1] < state.examples.arrivals[i]);
}

}  // namespace streams
