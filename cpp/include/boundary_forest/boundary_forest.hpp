// ALGORITHM 2 of the paper: the boundary forest. BFTrain and BFInitialization are in learning.cpp,
// BFQuery is in querying.cpp.
//
// Each tree learns and is asked apart from the others, so trees are spread over threads. Learning
// goes block by block: a block's examples are staged in the store, every tree trains on them in
// order of arrival, those that some tree kept close up, and the result is published (prefix.hpp).
// Nothing depends on where a block begins. Learning calls exclude each other; queries may run at
// any time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <span>
#include <vector>

#include "boundary_forest/boundary_tree.hpp"
#include "boundary_forest/combine.hpp"
#include "boundary_forest/example_store.hpp"
#include "boundary_forest/label_metric.hpp"
#include "boundary_forest/metric.hpp"
#include "boundary_forest/prefix.hpp"
#include "boundary_forest/query_rows.hpp"
#include "boundary_forest/sieve.hpp"
#include "boundary_forest/thread_pool.hpp"
#include "boundary_forest/types.hpp"

namespace boundary_forest {

// How a call is run: on how many threads, and what happens between blocks. `between_blocks` may
// throw to end the call; what was published by then stays.
struct Run {
  std::size_t n_jobs = 1;
  std::function<void()> between_blocks = [] {};
};

// A dense table, row by row.
template <class T>
struct Table {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<T> values;
};

struct Neighbors {
  Table<double> distances;
  Table<Arrival> arrivals;
};

// Per row of a query, examples and their distances.
struct Found {
  Table<Slot> slots;
  Table<double> distances;
};

struct Paths {
  std::vector<Found> trees;
  std::vector<double> weights;
  std::vector<double> estimate;  // as estimate() would have it
};

struct Examples {
  std::vector<std::byte> positions;  // n x n_features, of the store's element type
  std::vector<double> labels;        // n x label_length
  std::vector<Arrival> arrivals;
};

struct Stats {
  std::uint64_t seen = 0;
  Slot stored = 0;
  std::vector<NodeId> nodes;
  Counts learn;
  Counts query;
  std::size_t position_bytes = 0;  // the one copy of the rows
  std::size_t example_bytes = 0;   // labels and arrival numbers
  std::size_t tree_bytes = 0;
};

class BoundaryForest {
 public:
  BoundaryForest(const Params& params, std::unique_ptr<Metric> d);

  const Params& params() const { return params_; }

  // A longer call is learned and published in blocks of so many rows, after `seen` examples. Large
  // blocks share more work; but what a tree gains within a block must be looked at again, so they
  // are kept small beside what has been learned.
  static std::size_t block_rows(std::uint64_t seen) {
    return static_cast<std::size_t>(std::clamp<std::uint64_t>(seen / 8, 256, 4096));
  }

  // Learns rows (of the store's element type) in order; labels has label_length values a row. If it
  // throws, the rows published by then stay, and `learned` says how many; with a metric that may
  // fail that is none of them.
  void learn(const RowsView& rows, const double* labels, const Run& run, std::size_t& learned);

  // Learns likewise, and returns what estimate() would have said of each row just before it was
  // learned, for one descent a tree. The forest must have learned something before.
  Table<double> predict_then_learn(const RowsView& rows, const double* labels, const Run& run,
                                   std::size_t& learned);

  // The paper's offline variant (OBF), for a forest that is still empty: tree i is shown its own
  // shuffle of all rows, and its root is the first of that.
  void learn_offline(const RowsView& rows, const double* labels, const Run& run);

  // The arrival number of the locally closest example in each tree: rows x n_T.
  Table<Arrival> apply(const RowsView& rows, const Run& run);

  // E = Shepard vote: rows x class codes. E = Shepard mean or nearest: rows x label_length.
  Table<double> estimate(const RowsView& rows, const Run& run);

  // n = 1: E = nearest, the paper's retrieval. n > 1: the n best of the distinct examples that the
  // descents compared; of all that are stored where those are fewer. Needs n <= examples stored.
  Neighbors neighbors(const RowsView& rows, std::size_t n, const Run& run);

  // What the trees found: the slots of the locally closest examples and their distances, for an E
  // outside the engine. Slots never change.
  Found found(const RowsView& rows, const Run& run);

  // For one query: per tree, the examples from the root to the locally closest one; the share that
  // each tree's end has in E's answer; and that answer.
  Paths paths(const RowsView& row);

  // The standard deviation of the labels seen (of many outputs, the root of the summed variances).
  double label_deviation();

  Examples examples(std::span<const Slot> slots);

  Stats stats();
  std::uint64_t seen();

  // The whole published state, and putting it into a forest that is still empty. restore() believes
  // nothing: it throws std::invalid_argument where the arrays do not make a forest of these params.
  struct State {
    std::uint64_t seen = 0;
    std::uint32_t n_classes = 0;
    std::vector<double> spread;
    Counts learn;
    Counts query;
    std::vector<NodeId> tree_sizes;    // as Prefix::nodes
    std::vector<Slot> node_examples;   // tree by tree, in order of creation
    std::vector<NodeId> node_parents;  // `nothing` for a root
    Examples examples;                 // all that are stored, by slot
  };
  State state(bool with_positions = true);
  void restore(const State& state);  // with its own positions
  void restore(const State& state, const SavedRows& rows);

  // Stored rows from slot `first` on, as many as lie side by side: they stay where they are as long
  // as the forest lives.
  std::span<const std::byte> rows_from(Slot first);

 private:
  void BFInitialization(const Run& run);
  void BFTrain(Slot first, std::size_t n, const Run& run, Leaf* v);
  void BFQuery(const QueryRows& queries, Reading& reading, Leaf* v, const Run& run);

  // E on the examples that the trees found.
  void E(std::span<const Leaf> v, std::span<double> out) const;

  void learn_rows(const RowsView& rows, const double* labels, const Run& run, std::size_t& learned,
                  Table<double>* answers);
  void learn_block(const RowsView& rows, const double* labels, const Run& run,
                   std::span<double> answers);
  std::pmr::vector<double> thresholds(Slot first, std::size_t n, std::pmr::memory_resource* memory);
  bool planted() const { return !trees_.empty(); }
  void make_trees();
  void close_block(Slot first, std::span<const NodeId> nodes_before);
  void publish();
  void rollback();
  bool may_fail() const { return d_->may_fail() || params_.label_function; }

  template <class F>
  void for_each_tree(const Run& run, F&& f);
  template <class F>
  void for_each_query_block(const RowsView& rows, const Run& run, F&& f);
  Leaf nearest_buffered(const QueryRows& queries, std::size_t i, Slot stored, std::uint64_t seen,
                        Counts& cost) const;
  void neighbors_of(const QueryRows& queries, std::size_t i, const Prefix& prefix, Counts& cost,
                    std::size_t n, double* distances, Arrival* arrivals) const;
  std::unique_ptr<Sieve> sieve_for(const QueryRows& rows) const;
  std::size_t threads(const Run& run) const { return d_->single_threaded() ? 1 : run.n_jobs; }
  Examples examples_at(std::span<const Slot> slots) const;
  void check_examples(const State& state) const;
  void check_trees(const State& state) const;

  // Queries are answered in blocks of so many rows: many share more, but they should stay in cache.
  std::size_t query_block_rows() const {
    const std::size_t row_bytes = params_.n_features * size_of(params_.element_type);
    return std::clamp<std::size_t>((std::size_t{16} << 20) / row_bytes, 1024, 16384);
  }

  const Params params_;
  const std::unique_ptr<Metric> d_;
  const bool plain_;  // see plain_path()
  ExampleStore store_;
  // None while the first n_T examples are awaited. Readers look at them if their prefix is planted.
  std::vector<std::unique_ptr<BoundaryTree>> trees_;
  Publication publication_;
  ThreadPool pool_;

  // The learner's side, ahead of what is published; guarded by learning_.
  struct Progress {
    std::uint64_t seen = 0;
    std::uint32_t n_classes = 0;
    Spread spread;
  };
  std::mutex learning_;
  Progress progress_;
  std::vector<Counts> tree_costs_;  // of the learning that is not yet published
};

}  // namespace boundary_forest
