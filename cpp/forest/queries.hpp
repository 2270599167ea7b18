// ALGORITHM 2 of the paper, the querying side: BFQuery and the answers made of it. Queries read one
// version (version.hpp), and change nothing but the cache of the last row.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "concurrency/object_pool.hpp"
#include "forest/answers.hpp"
#include "forest/results.hpp"
#include "forest/setup.hpp"
#include "forest/version.hpp"
#include "store/example_store.hpp"
#include "store/query_rows.hpp"
#include "tree/cached_descent.hpp"
#include "tree/query_cache.hpp"

namespace boundary_forest {

// Before the n_T-th example there are no trees: the exact nearest of those that have arrived, ties by the
// first tree's priorities. is_there(slot) says which slots below `end` have one.
Leaf nearest_awaited(const Setup& setup, const Metric& d, const ExampleStore& store,
                     const Query& query, Slot end, const std::function<bool(Slot)>& is_there,
                     Counts& cost);

class Queries {
 public:
  Queries(const Setup& setup, const ExampleStore& store, QueryCache& query_cache)
      : setup_(setup), store_(store), answers_(setup, store), query_cache_(query_cache) {}

  // v[row * n_T + i] becomes the locally closest example of tree i, of the n_T that are held here. Where the
  // descent ends at a forgotten one, it is the closest of those that it compared and that are not.
  void BFQuery(const QueryRows& queries, const Version& version, Leaf* v, const Run& run,
               Counts& cost);

  // f(first row, queries) for each block of rows; and f(row, v) for each row and what the trees found.
  template <class F>
  void for_each_block(const RowsView& rows, const Run& run, F&& f) const;
  template <class F>
  void for_each_row(const RowsView& rows, const Run& run, const Version& version, Counts& cost,
                    F&& f);

  // See BoundaryForest.
  Table<Arrival> apply(Reading& reading, const RowsView& rows, const Run& run);
  std::optional<Table<double>> answer(Reading& reading, const RowsView& rows, const Run& run,
                                      AnswerRequest request);
  TreeLeaves leaves(Reading& reading, const RowsView& rows, const Run& run);
  FoundExamples found(Reading& reading, const RowsView& rows, const Run& run);
  Paths paths(Reading& reading, const RowsView& row);

 private:
  void answer_by_mixture(Reading& reading, const RowsView& rows, const Run& run,
                         const AnswerRequest& request, const Ballot& ballot);
  void put_recent(StreamRow& stream, const Adaptation& adaptation, const Position& query,
                  Paths::Recent& out) const;
  // The closest example that is not forgotten of those that tree i compares with a row, or of all.
  Leaf closest_living(const QueryRows& queries, std::size_t row, const Version& version,
                      std::size_t i) const;
  // Queries are answered in blocks of so many rows: many share more, but they should stay in cache.
  std::size_t block_rows() const;

  const Setup& setup_;
  const ExampleStore& store_;
  const Answers answers_;
  QueryCache& query_cache_;
  ObjectPool<DistanceCache> distance_caches_;
};

template <class F>
void Queries::for_each_block(const RowsView& rows, const Run& run, F&& f) const {
  const std::size_t at_once = block_rows();
  for (std::size_t begin = 0; begin < rows.n; begin += at_once) {
    if (begin > 0) run.between_blocks();
    const std::size_t n = std::min(at_once, rows.n - begin);
    StackMemory memory;
    const QueryRows queries(rows.slice(begin, n, setup_.params.n_features), store_, &memory);
    f(begin, queries);
  }
}

template <class F>
void Queries::for_each_row(const RowsView& rows, const Run& run, const Version& version,
                           Counts& cost, F&& f) {
  const std::size_t n_T = setup_.params.n_held();
  StackMemory memory;
  std::pmr::vector<Leaf> v(std::min(rows.n, block_rows()) * n_T, &memory);
  for_each_block(rows, run, [&](std::size_t begin, const QueryRows& queries) {
    BFQuery(queries, version, v.data(), run, cost);
    for (std::size_t row = 0; row < queries.size(); ++row)
      f(begin + row, queries.position(row), std::span(v).subspan(row * n_T, n_T));
  });
}

}  // namespace boundary_forest
