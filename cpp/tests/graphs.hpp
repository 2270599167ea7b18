// What the tests of a forest that is searched as a graph share: streams, calls that change it, and what
// it is, as far as anyone can tell.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/streams.hpp"

namespace streams {

// Rows of floats are searched as bytes, those of uint8 as they are.
inline Params graph_params(ElementType type = ElementType::float32, std::uint32_t n_T = 3,
                           std::uint32_t k = 4, std::size_t n_features = 3) {
  Params params = params_for(Task::retrieval, n_T, k, n_features, type);
  params.has_graph = true;
  params.ids = IdKind::integer;
  return params;
}

// Rows in order: trees become chains, and are rebuilt after 512 and 1,024 arrivals.
inline Stream line(const Params& params, std::size_t n) {
  return draw(params, n, 1, [](std::mt19937_64&, std::size_t i) { return static_cast<double>(i); });
}

// Ids of some examples, by their numbers in the stream.
inline Ids names(const Params& params, std::span<const std::size_t> numbers) {
  Ids ids;
  for (const std::size_t i : numbers) {
    const Ids one = ids_for(params, i, 1);
    ids.integers.insert(ids.integers.end(), one.integers.begin(), one.integers.end());
    ids.texts.insert(ids.texts.end(), one.texts.begin(), one.texts.end());
  }
  return ids;
}

// Examples with the ids of examples begin to begin + n get the positions of those from `from` on. As
// whoever holds a forest does, it is replaced whenever another one is due.
inline void replace(std::unique_ptr<BoundaryForest>& forest, const Stream& stream,
                    std::size_t begin, std::size_t n, std::size_t from, std::size_t& learned) {
  const Params& params = stream.params;
  learned = 0;
  while (learned < n) {
    std::size_t now = 0;
    const std::size_t before = learned;
    const auto rows = stream.rows(from + before, n - before);
    try {
      const auto state = forest->replace(rows, stream.labels_from(0), Run{}, now,
                                         ids_for(params, begin + before, n - before));
      if (state)
        forest = forest->rebuilt(
            *state, make_metric("euclidean", 3.0, params.element_type, params.n_features));
    } catch (...) {
      learned += now;
      throw;
    }
    learned += now;
  }
}

// What is found by each kind of search, as bits. Nothing where it is refused for want of examples.
inline std::vector<std::uint64_t> found(BoundaryForest& forest, const RowsView& queries,
                                        std::size_t n_jobs = 1) {
  std::vector<std::uint64_t> all;
  const auto add = [&](const auto& distances, const auto& arrivals, const Ids& ids) {
    for (const double d : distances) all.push_back(std::bit_cast<std::uint64_t>(d));
    all.insert(all.end(), arrivals.begin(), arrivals.end());
    for (const std::int64_t id : ids.integers) all.push_back(static_cast<std::uint64_t>(id));
  };
  try {
    for (const Search& search : {Search{.beam = 2}, Search{.beam = 20}, Search{.exact = true}}) {
      const Neighbors near = forest.neighbors(queries, 3, search, Run{.n_jobs = n_jobs});
      add(near.distances.values, near.arrivals.values, near.ids);
    }
    const Within within = forest.within(queries, 0.2, Search{.beam = 2}, Run{.n_jobs = n_jobs});
    all.insert(all.end(), within.row_ends.begin(), within.row_ends.end());
    add(within.distances, within.arrivals, within.ids);
  } catch (const std::invalid_argument&) {
    all.clear();
  }
  return all;
}

// Trees and stored examples, those that are marked included, and what is found.
struct Content {
  BoundaryForest::State state;
  std::size_t n_marked;
  std::vector<std::uint64_t> found;

  Content(BoundaryForest& forest, const Stream& stream)
      : state(Snapshot(forest).state(true)),
        n_marked(forest.n_marked()),
        found(streams::found(forest, stream.rows(0, 12))) {}

  bool operator==(const Content& other) const {
    return same(state, other.state) && state.seen == other.state.seen &&
           n_marked == other.n_marked && found == other.found;
  }
};

}  // namespace streams
