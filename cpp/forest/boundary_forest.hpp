// ALGORITHM 2 of the paper: the boundary forest. BFTrain and BFInitialization are in learning.cpp,
// BFQuery is in querying.cpp.
//
// Each tree learns and answers apart from the others, so trees are spread over threads. LearningLock
// goes block by block: a block's examples are staged in the store, every tree trains on them in
// order of arrival, those that some tree kept settle, and the result is published (version.hpp).
// publish() is the only commit: whatever ends a call before it leaves no trace. Nothing depends on
// where a block begins. LearningLock calls exclude each other; queries may run at any time.
//
// Trees come and go: regrowing.cpp puts new trees in the places of others. A version lists its
// trees, and what is replaced is reclaimed by the learner once no call that may read it still runs.
// What a forest decides for itself, beyond the paper, is in deciding.cpp. How the trees are searched as
// one graph is in graph_search.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "adapt/adaptation.hpp"
#include "adapt/lifetimes.hpp"
#include "adapt/storage_limit.hpp"
#include "base/types.hpp"
#include "concurrency/forking.hpp"
#include "concurrency/thread_pool.hpp"
#include "distance/label_metric.hpp"
#include "distance/metric.hpp"
#include "distance/prefilter.hpp"
#include "forest/results.hpp"
#include "forest/search.hpp"
#include "forest/version.hpp"
#include "graph/links.hpp"
#include "graph/row_codes.hpp"
#include "graph/search_radius.hpp"
#include "graph/search_scratch.hpp"
#include "store/example_store.hpp"
#include "store/query_rows.hpp"
#include "tree/boundary_tree.hpp"
#include "tree/query_cache.hpp"
#include "vote/combine.hpp"
#include "vote/vote_rules.hpp"

namespace boundary_forest {

// How a call is run: on how many threads, and what happens between blocks. `between_blocks` may
// throw to end the call; what was published by then stays.
struct Run {
  std::size_t n_jobs = 1;
  std::function<void()> between_blocks = [] {};
};

// A tree to be grown from stored examples, by arrival number, in this order; the first is its root.
struct Regrowth {
  std::uint32_t place;
  std::vector<Arrival> order;
  bool answering = true;  // false: it grows beside the tree at its place, until succeed()
};

class BlockPrefilters;

class BoundaryForest : private Forkable {
 public:
  BoundaryForest(const Params& params, std::unique_ptr<Metric> d);

  const Params& params() const { return params_; }

  // A longer call is learned and published in blocks of so many rows, after `seen` examples. Large
  // blocks share more work; but what a tree gains within a block must be looked at again, so they
  // are kept small beside what has been learned.
  static std::size_t block_rows(std::uint64_t seen) {
    return static_cast<std::size_t>(std::clamp<std::uint64_t>(seen / 8, 256, 4096));
  }

  // Learns rows, as learn() does, whose ids may be known: a known example is marked when the row with its
  // id is published. Of a forest with a graph and ids. `learned` may be less than all: rebuilt_without_marked() is
  // due, whose forest goes on.
  void replace(const RowsView& rows, const double* labels, const Run& run, std::size_t& learned,
               const Ids& ids);

  // Learns rows (of the store's element type) in order; labels has label_length values a row, and
  // ids one if examples have them. If it throws, the rows published by then stay, and `learned` says
  // how many; with a metric that may fail that is none of them.
  void learn(const RowsView& rows, const double* labels, const Run& run, std::size_t& learned,
             const Ids& ids = {});

  // Learn likewise, and return what predict() or estimate() would have said of each row just before
  // it was learned, for one descent a tree. The forest must have learned something before, and ranks
  // must be those of all classes, those of these labels too. Where `ends` is not null, it becomes
  // what each answer was made of.
  Table<double> predict_then_learn(const RowsView& rows, const double* labels, const Run& run,
                                   std::size_t& learned, const Ids& ids = {}, Ranks ranks = {},
                                   TreeLeaves* leaves = nullptr);
  Table<double> estimate_then_learn(const RowsView& rows, const double* labels, const Run& run,
                                    std::size_t& learned, const Ids& ids = {}, Ranks ranks = {},
                                    TreeLeaves* leaves = nullptr);

  // The paper's offline variant (OBF), for a forest that is still empty: tree i is shown its own
  // shuffle of all rows, and its root is the first of that.
  void learn_offline(const RowsView& rows, const double* labels, const Run& run,
                     const Ids& ids = {});

  // Throws std::invalid_argument if ids occur twice or, unless they may, already name a stored example.
  void check_ids(const Ids& ids, bool may_be_known = false);

  // Forgets the examples with these ids, wherever they are: in trees, in memory, and among the last
  // arrivals (forgetting.cpp). Returns the numbers of those that are not known; then, and if none would
  // be left (std::invalid_argument), nothing is forgotten.
  //
  // Where there is a graph, examples are marked; no search returns them any more.
  std::vector<std::size_t> forget(const Ids& ids, const Run& run);
  // How many are marked; and whether they are as many as the others: then rebuilt_without_marked() is due.
  std::size_t n_marked() {
    const Reading reading(publication_);
    return params_.has_graph ? reading.version.slots - reading.version.stored : 0;
  }
  bool needs_rebuild() {
    const Reading reading(publication_);
    const Version& version = reading.version;
    return params_.has_graph && version.slots > version.stored &&
           version.slots - version.stored >= version.stored;
  }

  // A forest that has nothing of the examples that are marked, as if they were forgotten from the trees
  // now. The marks here stay.
  std::unique_ptr<BoundaryForest> rebuilt_without_marked(std::unique_ptr<Metric> d, const Run& run);

  // Grows trees anew in the places of others, and publishes once. If it throws, nothing has changed.
  void regrow(std::span<const Regrowth> trees, const Run& run);
  // The trees that grow at these places take over from those that answer there.
  void succeed(std::span<const std::uint32_t> places);

  // The arrival number of the locally closest example in each tree: rows x trees.
  Table<Arrival> apply(const RowsView& rows, const Run& run);

  // The label that E makes of what the trees find: rows x label_length. E = Shepard vote: the code of
  // the class with the largest share, the first by rank among equals. Without ranks, classes rank
  // by code; nothing is returned where the forest knows more classes than there are ranks.
  std::optional<Table<double>> predict(const RowsView& rows, const Run& run, Ranks ranks = {});

  // E = Shepard vote: each class's share, rows x classes, by rank. Otherwise as predict().
  std::optional<Table<double>> estimate(const RowsView& rows, const Run& run, Ranks ranks = {});

  // The n closest examples that the search finds (search.hpp). Needs n <= examples that may be returned.
  Neighbors neighbors(const RowsView& rows, std::size_t n, const Search& search, const Run& run);
  Neighbors neighbors(const RowsView& rows, std::size_t n, const Run& run) {
    return neighbors(rows, n, Search{}, run);
  }
  // All that it finds at distances up to `radius`.
  Within within(const RowsView& rows, double radius, const Search& search, const Run& run);

  // What the trees found, for an E outside the engine.
  Answers found(const RowsView& rows, const Run& run);

  // For one query: per tree, the examples from the root to the locally closest one; the share that
  // each tree's end has in E's answer; and that answer.
  Paths paths(const RowsView& row);

  // The weights of the features in use, and the features' variances: over the last arrivals if
  // weights are learned, otherwise over the stored examples.
  struct Features {
    std::vector<double> weights;  // none: all are 1
    std::vector<double> variances;
  };
  Features features();

  // The standard deviation of the labels seen (of many outputs, the root of the summed variances).
  double label_deviation();

  Stats stats();
  // These wait for nothing.
  std::uint64_t seen() const { return publication_.seen(); }
  std::uint32_t n_classes() const { return publication_.n_classes(); }

  // label_keys stands for class codes, which depend on the order in which classes were named; it is
  // empty where labels are numbers. `votes`: the rule, errors and losses that are kept elsewhere.
  Digest digest(std::span<const std::uint64_t> label_keys, const VoteState* votes = nullptr);

  // Of an engine that holds a part of the trees (parts.cpp): what its trees say, and what they do where
  // all trees, or all that is stored, must be known (forest_driver.hpp).
  //
  // The examples that the trees end at, without weights; and the same before each row is learned.
  TreeLeaves leaves(const RowsView& rows, const Run& run);
  TreeLeaves leaves_then_learn(const RowsView& rows, const double* labels, const Run& run,
                               std::size_t& learned, const Ids& ids = {});
  // Up to n of the examples that neighbors() would choose from, or those within a radius; nearest first.
  Candidates candidates(const RowsView& rows, std::size_t n, double radius, const Search& search,
                        const Run& run);
  // Stored examples, which must all be there.
  Examples examples(std::span<const Arrival> arrivals);
  // The places whose trees are to be grown anew now, from all that is stored anywhere; and doing so, given
  // what is not stored here, in order of arrival. Nobody may query meanwhile.
  std::vector<std::uint32_t> places_to_grow();
  void grow_part(const RowsView& rows, const double* labels, std::span<const Arrival> arrivals,
                 const Ids& ids, const Run& run);
  // The tree that is cut first if there is no more room: of the oldest example, by order among trees.
  struct Oldest {
    Arrival arrival;
    bool answering;
    std::uint32_t place;
  };
  std::optional<Oldest> oldest();
  void cut(std::uint32_t place, bool answering, const Run& run);
  bool is_planted() { return Reading(publication_).version.planted; }

  // The whole of a version, and putting it into a forest that is still empty. restore() believes
  // nothing: it throws std::invalid_argument where the arrays do not make a forest of these params.
  struct State {
    std::uint64_t seen = 0;
    std::uint32_t n_classes = 0;
    std::vector<double> spread;
    Counts learn;
    Counts query;
    // Trees that answer first, by place; sizes are all 0 while the first n_T examples are awaited.
    std::vector<NodeId> tree_sizes;
    std::vector<std::uint32_t> tree_places;       // of those that only grow
    std::vector<std::uint32_t> tree_generations;  // none: all are 0
    std::vector<std::uint32_t> node_examples;     // tree by tree, in order of creation
    std::vector<NodeId> node_parents;             // `nothing` for a root
    // If weights are learned: the distinct ones, the last of which new trees get, feature by feature;
    // which of them each tree has; and the last arrivals.
    LogWeights log_weights;
    std::vector<std::uint32_t> tree_weights;
    Examples window;
    // If votes are tried: what Adaptation has of them.
    std::uint32_t vote_rule = 0;
    std::vector<double> vote_errors;
    std::vector<double> tree_losses;
    Examples examples;  // all that are stored, by arrival
  };
  State state(bool with_positions = true);
  void restore(const State& state);  // with its own positions
  void restore(const State& state, const SavedRows& rows);

  // A forest of the same trees whose rows have further features, all zero.
  std::unique_ptr<BoundaryForest> widened(std::size_t n_features, std::unique_ptr<Metric> d);

 private:
  friend class Snapshot;

  // A tree and what the learner knows of it.
  struct LearnerTree {
    std::unique_ptr<BoundaryTree> tree;
    bool answering = true;
    NodeId n_counted = 0;  // nodes whose examples count it among their holders
    Counts cost;           // of the learning that is not yet published
  };

  // Examples that are learned together, and where the trees' answers go; null: nowhere.
  struct Block {
    const QueryRows& examples;
    std::span<const double> epsilon;
    const BlockPrefilters& prefilters;
    Leaf* v;
    std::span<const DescentEnd> cached = {};  // of a single row, if it was asked just now
  };
  struct Place;  // see renewing.cpp

  void BFInitialization(const Run& run);
  void BFTrain(Slot first, std::size_t n, const Run& run, Leaf* v);
  void train(LearnerTree& grown, const Block& block, std::uint32_t begin, std::uint32_t end,
             std::size_t i) const;
  void train_places(const Block& block, const Run& run);
  void train_place(Place& place, const Block& block, std::size_t i) const;
  void BFQuery(const QueryRows& queries, const Version& version, Leaf* v, const Run& run,
               Counts& cost);

  std::span<const std::byte> bytes_of(const QueryRows& rows, std::size_t i) const;

  // E on the examples that the trees found, in its two forms; see combine.hpp.
  std::pmr::vector<Vote> E_vote(std::span<const Leaf> v, const Ballot& ballot,
                                std::pmr::memory_resource* memory) const;
  void E_label(std::span<const Leaf> v, const Ballot& ballot, std::span<double> out) const;
  std::pmr::vector<double> distances(std::span<const Leaf> v,
                                     std::pmr::memory_resource* memory) const;
  std::pmr::vector<const double*> labels(std::span<const Leaf> v,
                                         std::pmr::memory_resource* memory) const;
  // The share that each of them has in E's answer.
  std::pmr::vector<double> shares(std::span<const Leaf> v, const Ballot& ballot,
                                  std::pmr::memory_resource* memory) const;
  bool votes() const { return params_.estimator == Estimator::shepard_vote; }

  // Where answers go, and what they are: labels, or each class's share by rank.
  struct AnswerRequest {
    Table<double>* out = nullptr;  // none: nothing is asked
    bool shares = false;
    Ranks ranks;
    TreeLeaves* leaves = nullptr;  // none: what answers are made of is not asked
    bool replaces = false;         // examples whose ids are known

    bool any() const { return out != nullptr || leaves != nullptr; }
  };
  void answer(const AnswerRequest& asked, const Ballot& ballot, std::size_t row,
              std::span<const Leaf> v) const;
  TreeLeaves blank_leaves(std::size_t n, bool with_weights) const;
  void put_leaves(TreeLeaves& leaves, const Ballot& ballot, std::size_t row,
                  std::span<const Leaf> v) const;
  std::optional<Table<double>> answers(const RowsView& rows, const Run& run, AnswerRequest asked);
  Table<double> answers_then_learn(const RowsView& rows, const double* labels, const Run& run,
                                   std::size_t& learned, const Ids& ids, AnswerRequest asked);

  // A learning call begins: others wait.
  struct LearningLock {
    std::unique_lock<std::mutex> call;
    std::unique_lock<ChangeMutex> block;
  };
  void learn_rows(LearningLock& learning, const RowsView& rows, const double* labels,
                  const Ids& ids, const Run& run, std::size_t& learned, const AnswerRequest& asked);
  void learn_block(const RowsView& rows, const double* labels, const Ids& ids, std::size_t begin,
                   const Run& run, const AnswerRequest& asked);
  void answer_and_judge(const AnswerRequest& asked, std::size_t begin, Slot first,
                        std::span<const Leaf> v, bool judges);
  std::pmr::vector<double> thresholds(Slot first, std::size_t n,
                                      std::pmr::memory_resource* memory) const;
  void take_note_of(Slot first, std::size_t n);
  double epsilon_now() const {
    return params_.auto_epsilon ? progress_.spread.epsilon() : params_.epsilon;
  }
  bool planted() const { return !trees_.empty(); }
  void make_trees();
  LearnerTree make_tree(std::uint32_t place, std::uint32_t generation,
                        std::shared_ptr<const TreeSettings> settings) const;
  void grow(LearnerTree& grown, const QueryRows& examples, std::span<const std::uint32_t> order,
            double epsilon, const Prefilter* prefilter, const Run& run) const;
  LearningLock begin_learning();
  bool try_pause() override;
  void resume() override;
  void resume_in_child() override;
  void close_block(Slot first);
  void decide(const Run& run);
  void learn_weights(Arrival n_rows, const Run& run);
  void try_votes(Slot first, std::span<const Leaf> v);
  class RowAnswers;
  std::shared_ptr<const TreeSettings> settings_with(const LogWeights& log_weights) const;
  void grow_successors(Arrival step, const Run& run, Slot staged);
  bool is_to_grow(const BoundaryTree& old, Arrival step) const;
  void grow_from_stored(std::span<LearnerTree> anew, const Run& run, Slot staged);
  void take_over();
  std::vector<std::uint32_t> own_order(const BoundaryTree& tree, std::span<const Slot> slots,
                                       std::span<const std::uint32_t> shown) const;
  std::uint32_t next_generation(std::uint32_t place) const;
  std::vector<char> find_in_window(const Ids& ids, std::vector<Arrival>& arrivals) const;
  void forget_slots(std::span<const char> forgotten, const Run& run);
  std::vector<std::size_t> mark_forgotten(const Ids& ids);
  void mark_known(const Ids& ids, std::size_t begin, std::size_t n);
  Slot earliest_but(std::span<const char> forgotten) const;
  void keep_within_limit(const Run& run);
  bool cut_oldest(const Run& run);
  std::pair<std::size_t, Arrival> oldest_tree() const;
  std::vector<Slot> newer_half(const BoundaryTree& tree) const;
  void replace(std::size_t i, std::span<const Slot> slots, const Run& run);
  void publish();
  void rollback();
  bool may_fail() const { return settings_->d->may_fail() || params_.label_function; }
  std::vector<Slot> slots_of(std::span<const Arrival> arrivals) const;
  std::vector<std::pair<Arrival, Slot>> stored_by_arrival(Slot staged = nothing) const;

  template <class F>
  void for_each_tree(const Run& run, F&& f);
  template <class F>
  void for_each_query_block(const RowsView& rows, const Run& run, F&& f);
  template <class F>
  void for_each_answer(const RowsView& rows, const Run& run, Reading& reading, F&& f);
  Leaf nearest_buffered(const QueryRows& queries, std::size_t i, Slot end, std::uint64_t seen,
                        const std::function<bool(Slot)>& is_there, Counts& cost) const;
  // Of one call: what it reads, and which examples it may return.
  struct SearchPlan;
  SearchPlan plan(const Search& search, const Version& version) const;
  Neighbors neighbors(const RowsView& rows, std::size_t n, const SearchPlan& plan, const Run& run,
                      Counts& cost);
  // f(row, its closest examples in order) for each row, as far as the limit goes.
  template <class F>
  void for_each_search(const RowsView& rows, const Limit& limit, const SearchPlan& plan,
                       const Run& run, Counts& cost, F&& f);
  void cut(std::vector<Leaf>& found, const Limit& limit) const;
  bool are_alike(const Version& version) const;
  void measure_alike(const Position& y, const Version& version, std::span<Leaf> leaves,
                     Counts& cost) const;
  std::vector<Leaf> paper_search(const QueryRows& queries, std::size_t i, const Limit& limit,
                                 const SearchPlan& plan, Counts& cost) const;
  void exact_search(const QueryRows& queries, std::size_t begin, std::size_t end,
                    const Limit& limit, const SearchPlan& plan, std::span<std::vector<Leaf>> out,
                    Counts& cost) const;
  std::vector<Leaf> graph_search(const QueryRows& queries, std::size_t i, const Limit& limit,
                                 const SearchPlan& plan, Scratch& scratch, Counts& cost) const;
  void extend_graph();
  Beam::Width width(const SearchPlan& plan, std::size_t beam, std::size_t n) const;
  std::vector<Leaf> walk(const Position& y, const Beam::Width& width, const SearchPlan& plan,
                         const RowCodes* codes, Scratch& scratch, Counts& cost) const;
  void rank(const Position& y, std::vector<Leaf>& found, Counts& cost) const;
  void extend_codes();
  bool has_search_radius() const;
  void measure_search_radius();
  void prepare_search();
  BoundaryForest& searchable() {
    prepare_search();
    return *this;
  }
  std::size_t threads(const Run& run) const {
    return settings_->d->single_threaded() ? 1 : run.n_jobs;
  }
  Examples examples_at(std::span<const Slot> slots, bool with_positions = true) const;
  std::vector<Slot> living(const Version& version, bool with_forgotten = false) const;
  State state_of(const Version& version, std::span<const Slot> living, bool with_positions);
  Stats::Turnover turnover(const Version& version) const;
  void put_adaptation(const Version& version, State& state) const;
  Adaptation restored_adaptation(const State& state) const;
  std::vector<std::shared_ptr<const TreeSettings>> restored_settings(const State& state) const;
  void check_labels(std::span<const double> labels, std::uint32_t n_classes) const;
  void check_examples(const State& state) const;
  void check_trees(const State& state) const;

  // Queries are answered in blocks of so many rows: many share more, but they should stay in cache.
  std::size_t query_block_rows() const {
    const std::size_t row_bytes = params_.n_features * size_of(params_.element_type);
    return std::min(std::clamp<std::size_t>((std::size_t{16} << 20) / row_bytes, 1024, 16384),
                    answered_block_rows());
  }
  // What the trees find for a block's rows is kept until it is answered: at most 64 MB, or a row.
  std::size_t answered_block_rows() const {
    return std::max<std::size_t>(1, (std::size_t{64} << 20) / sizeof(Leaf) / params_.n_held());
  }

  const Params params_;
  const std::shared_ptr<const TreeSettings> settings_;  // that the first trees are made with
  const Schedule schedule_;
  const Lifetimes lifetimes_;
  const StorageLimit storage_limit_;
  const bool plain_;  // see plain_path()
  ExampleStore store_;
  Links links_;                                // if there is a graph
  const std::unique_ptr<Metric> code_metric_;  // of rows as bytes; null: a graph is walked by rows
  const double one_step_;  // the reduced distance between codes that differ by 1 in every feature
  mutable ScratchPool scratch_;
  Publication publication_;
  QueryCache query_cache_;

  // The learner's side, ahead of what is published; guarded by learning_.
  struct Progress {
    std::uint64_t seen = 0;
    std::uint32_t n_classes = 0;
    Spread spread;
    Adaptation adaptation;
    std::shared_ptr<RowCodes> codes;
    SearchRadius search_radius;
  };
  std::mutex learning_;        // held by a learning call, whole
  ChangeMutex block_;          // held while anything is changed; free between two blocks
  bool is_abandoned_ = false;  // by a learning call that is not in this process: see forking.hpp
  Progress progress_;
  std::vector<LearnerTree>
      trees_;  // none while the first n_T examples are awaited; in a version's order
  std::vector<LearnerTree> replaced_;  // since the last publication
  struct Retired {
    std::uint64_t number;  // of the last version that lists it
    std::unique_ptr<BoundaryTree> tree;
  };
  std::vector<Retired> retired_;
  std::atomic<bool> search_is_late_{
      false};  // of rows in a mapped file, which are not touched before
  const KnownToForks known_to_forks_{*this};  // the last member
};

// One version, held as long as this lives: what saving a forest, and questions that belong together,
// are answered from.
class Snapshot {
 public:
  // `searched`: neighbors() will be asked.
  explicit Snapshot(BoundaryForest& forest, bool searched = false)
      : forest_(searched ? forest.searchable() : forest),
        reading_(forest.publication_, Publication::By::holder),
        living_(forest.living(reading_.version)) {}

  std::size_t size() const { return living_.size(); }
  // Of all that the trees have; what was forgotten and is still walked by, too.
  BoundaryForest::State state(bool with_positions) const {
    return forest_.state_of(reading_.version, forest_.living(reading_.version, true),
                            with_positions);
  }
  // Examples number begin to end, by arrival.
  Examples examples(std::size_t begin, std::size_t end, bool with_positions = true) const;
  Neighbors neighbors(const RowsView& rows, std::size_t n, const Search& search,
                      const Run& run) const;

 private:
  BoundaryForest& forest_;
  Reading reading_;
  std::vector<Slot> living_;  // by arrival
};

}  // namespace boundary_forest
