// ALGORITHM 2 of the paper: the boundary forest. BFTrain and BFInitialization are in training.cpp, BFQuery
// is in queries.cpp; this class owns the parts and forwards to them.
//
// Learning calls exclude each other and publish block by block (learner.hpp, draft.hpp). Queries may run at
// any time: each reads the newest version when it begins (version.hpp). What learning replaces is freed
// once no call that may read it still runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "adapt/decisions.hpp"
#include "concurrency/forking.hpp"
#include "forest/draft.hpp"
#include "forest/learner.hpp"
#include "forest/neighbor_search.hpp"
#include "forest/queries.hpp"
#include "forest/results.hpp"
#include "forest/setup.hpp"
#include "forest/state.hpp"
#include "forest/version.hpp"
#include "graph/graph_index.hpp"
#include "store/example_store.hpp"
#include "tree/query_cache.hpp"

namespace boundary_forest {

// The parts of a forest, for whoever combines them otherwise than BoundaryForest does.
struct ForestParts {
  const Setup& setup;
  const Decisions& decisions;
  Publication& publication;
  Draft& draft;
  Learner& learner;
  Queries& queries;
  NeighborSearch& search;
};

// A search of the newest version, and the hold on that version. The index of ids is that of the newest
// version: so nothing is published while ids are looked up.
class PlannedSearch {
  std::unique_lock<std::mutex> lock_;

 public:
  PlannedSearch(const ForestParts& forest, const Search& search);

  Reading reading;
  SearchPlan plan;
};

class BoundaryForest final : private Forkable {
 public:
  using State = ForestState;

  BoundaryForest(const Params& params, std::unique_ptr<Metric> d);

  const Params& params() const { return setup_.params; }
  // Whether a learning call may fail after its rows were checked; then it is taken back whole.
  bool may_fail() const { return setup_.may_fail(); }

  // Learns rows (of the store's element type) in order; labels has label_length values per row, and
  // ids one if examples have them. If it throws, the rows published by then stay, and `learned` says
  // how many; with a metric that may fail that is none of them.
  void learn(const RowsView& rows, const double* labels, const Run& run, std::size_t& learned,
             const Ids& ids = {});
  // The same for rows whose ids may be known, in a forest with a graph and ids. If it returns a state, it
  // has learned the first `learned` rows, and rebuilt() makes the forest that goes on; see Learner.
  std::optional<State> replace(const RowsView& rows, const double* labels, const Run& run,
                               std::size_t& learned, const Ids& ids);
  // Learn likewise, and return what predict() or estimate() would have returned for each row just before
  // it was learned, for one descent per tree. The forest must have learned something before, and ranks
  // must be those of all classes, those of these labels too. Where `leaves` is not null, it becomes
  // what each answer was made of.
  Table<double> predict_then_learn(const RowsView& rows, const double* labels, const Run& run,
                                   std::size_t& learned, const Ids& ids = {}, Ranks ranks = {},
                                   TreeLeaves* leaves = nullptr);
  Table<double> estimate_then_learn(const RowsView& rows, const double* labels, const Run& run,
                                    std::size_t& learned, const Ids& ids = {}, Ranks ranks = {},
                                    TreeLeaves* leaves = nullptr);
  // See Learner.
  void learn_offline(const RowsView& rows, const double* labels, const Run& run,
                     const Ids& ids = {});

  // What votes for each class are multiplied by, by code: published with the next rows that are learned. A
  // class has one weight for ever, so this only adds to the weights of those that examples have.
  void weigh_classes(std::vector<double> weights);

  // Throws std::invalid_argument if ids occur twice or, unless they may, already name a stored example.
  void check_ids(const Ids& ids, bool may_be_known = false);

  // Of each of these ids, whether a stored example has it; and those examples, in the order of the ids.
  Examples named(const Ids& ids, std::vector<std::uint8_t>& is_known);

  // See Deletion. Where there is a graph, examples are marked: n_marked() says how many are.
  Forgetting forget(const Ids& ids, const Run& run, bool erases = false);
  State without_marked(const Run& run);
  // The codes of the classes, ascending, that examples with other ids have. Changes nothing.
  std::vector<std::uint32_t> classes_without(const Ids& ids);
  std::size_t n_marked();
  // Whether as many are marked as are not. So it is only where a forest could not be rebuilt for want of
  // memory; that must be made up for before anything else is learned.
  bool needs_rebuild();
  // A forest with the same parameters and this state.
  std::unique_ptr<BoundaryForest> rebuilt(const State& state, std::unique_ptr<Metric> d) const;

  // See Replacement.
  void regrow(std::span<const Regrowth> trees, const Run& run);
  void succeed(std::span<const std::uint32_t> places);

  // The arrival number of the locally closest example in each tree: rows x trees.
  Table<Arrival> apply(const RowsView& rows, const Run& run);
  // The label that E makes of what the trees find: rows x label_length. E = Shepard vote: the code of
  // the class with the largest share, the first by rank among equals. Without ranks, classes rank
  // by code; nothing is returned where the forest knows more classes than there are ranks.
  std::optional<Table<double>> predict(const RowsView& rows, const Run& run, Ranks ranks = {});
  // E = Shepard vote: each class's share, rows x classes, by rank. Otherwise as predict().
  std::optional<Table<double>> estimate(const RowsView& rows, const Run& run, Ranks ranks = {});
  // What the trees found, for an E outside the engine.
  FoundExamples found(const RowsView& rows, const Run& run);
  // For one query: per tree, the examples from the root to the locally closest one; the share that
  // each tree's leaf has in E's answer; and that answer.
  Paths paths(const RowsView& row);

  // The n closest examples that the search finds (neighbor_search.hpp). Needs n <= examples that may be returned.
  Neighbors neighbors(const RowsView& rows, std::size_t n, const Search& search, const Run& run);
  Neighbors neighbors(const RowsView& rows, std::size_t n, const Run& run) {
    return neighbors(rows, n, Search{}, run);
  }
  // All that it finds at distances up to `radius`.
  Within within(const RowsView& rows, double radius, const Search& search, const Run& run);

  // See state.hpp.
  Features features();
  Stats stats();
  // Of the first `n_features` alone, if the others are columns to spare, which are zero everywhere.
  std::optional<Digest> digest(std::span<const std::uint64_t> label_keys,
                               const VoteState* votes = nullptr,
                               std::optional<std::size_t> n_features = std::nullopt);
  // The standard deviation of the labels seen (of many outputs, the root of the summed variances).
  double label_deviation();
  // These wait for nothing.
  std::uint64_t seen() const { return publication_.seen(); }
  std::uint32_t n_classes() const { return publication_.n_classes(); }

  // The whole of a version, and putting it into a forest that is still empty (restoring.hpp), with its own
  // positions or others.
  State state(bool with_positions = true);
  void restore(const State& state);
  void restore(const State& state, const SavedRows& rows);
  // A forest of the same trees whose rows have further features, all zero.
  std::unique_ptr<BoundaryForest> widened(std::size_t n_features, std::unique_ptr<Metric> d);

  ForestParts parts() {
    return {setup_, decisions_, publication_, draft_, learner_, queries_, search_};
  }

 private:
  bool try_pause() override { return draft_.try_pause(); }
  void resume() override { draft_.resume(); }
  void resume_in_child() override { draft_.resume_in_child(); }

  const Setup setup_;
  const Decisions decisions_;
  ExampleStore store_;
  GraphIndex graph_;
  Publication publication_;
  QueryCache query_cache_;
  Draft draft_;
  Learner learner_;
  Queries queries_;
  NeighborSearch search_;
  const KnownToForks known_to_forks_{*this};  // the last member
};

// One version, held as long as this lives: for saving a forest, and for queries that belong together.
class Snapshot {
 public:
  // `searched`: neighbors() will be called.
  explicit Snapshot(BoundaryForest& forest, bool searched = false);

  std::size_t size() const { return living_.size(); }
  // Of all that the trees have, forgotten examples that searches still pass through included.
  ForestState state(bool with_positions) const;
  // Examples number begin to end, by arrival.
  Examples examples(std::size_t begin, std::size_t end, bool with_positions = true) const;
  Neighbors neighbors(const RowsView& rows, std::size_t n, const Search& search,
                      const Run& run) const;

 private:
  const ForestParts forest_;
  Reading reading_;
  std::vector<Slot> living_;  // by arrival
};

}  // namespace boundary_forest
