// What is decided for a forest whose trees are held by several engines.
//
// Each engine learns the whole stream for its own trees (partial_forest.hpp). What is left are answers,
// which are made of all trees' leaves (combine.hpp), and the decisions that need all trees: how votes are
// weighed (voting.hpp), which trees get a successor grown from all that is stored, and which are cut
// because too many examples are stored. The engines stop at block_end() for these.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "adapt/adaptation.hpp"
#include "adapt/storage_limit.hpp"
#include "base/types.hpp"
#include "forest/results.hpp"

namespace boundary_forest {

class ForestDriver {
 public:
  // Params of the whole forest.
  explicit ForestDriver(const Params& params);

  // The leaves of all trees, by place, for some rows.
  struct LeavesView {
    std::size_t rows = 0;
    const double* labels = nullptr;     // rows x trees x label_length
    const double* distances = nullptr;  // rows x trees
  };
  // What to make of them.
  struct VoteRequest {
    Table<double>* out = nullptr;
    bool shares = false;  // of each class, by rank, in place of the class
    Ranks ranks = {};
    Table<double>* weights = nullptr;  // of each tree; null: not wanted
  };

  const Params& params() const { return params_; }
  Arrival seen() const { return seen_; }
  std::uint32_t n_classes() const { return n_classes_; }
  bool is_planted() const { return planted_; }
  double label_deviation() const { return spread_.deviation(); }

  // How many may have arrived before the engines must stop, if so many examples are stored now.
  Arrival block_end(Arrival stored) const;
  // Whether the leaves must be known for the rows up to there.
  bool wants_leaves() const;
  // What is due now: which step of growing successors, 0 for none; and whether a tree must be cut, n_cut were.
  Arrival growing_step() const { return planted_ ? schedule_.growing_step(seen_) : 0; }
  bool is_full(Arrival stored, std::size_t n_cut) const;

  // Rows were learned, and the trees ended there just before each of them was. No leaves where they are
  // neither wanted nor to be answered.
  void learn(std::span<const double> labels, std::size_t n, const LeavesView& leaves,
             const VoteRequest& request);
  void learn_offline(std::span<const double> labels, std::size_t n);

  // See BoundaryForest::weigh_classes.
  void weigh_classes(std::vector<double> weights) { votes_.class_weights = std::move(weights); }

  // Answers, as of now.
  void answer(const LeavesView& leaves, const VoteRequest& request) const;

  const VoteState& votes() const { return votes_; }
  const Spread& spread() const { return spread_; }

  // Puts back what votes(), spread() and the others gave.
  struct State {
    std::uint64_t seen = 0;
    std::uint32_t n_classes = 0;
    bool planted = false;
    std::vector<double> spread;
    std::uint32_t rule = 0;
    std::vector<double> errors;
    std::vector<double> losses;
    std::vector<double> class_weights;
    std::vector<double> class_counts;
  };
  void restore(const State& state);

 private:
  void answer(const LeavesView& leaves, std::size_t row, const VoteRequest& request,
              const Ballot& ballot, std::span<const double*> labels) const;
  std::span<const double> distances(const LeavesView& leaves, std::size_t row) const {
    return {leaves.distances + row * params_.n_T, params_.n_T};
  }
  void labels_of(const LeavesView& leaves, std::size_t row, std::span<const double*> out) const;
  void take_note_of(const double* label);
  bool are_classes() const { return params_.estimator == Estimator::shepard_vote; }

  const Params params_;
  const Schedule schedule_;
  const StorageLimit storage_limit_;
  std::uint64_t seen_ = 0;
  std::uint32_t n_classes_ = 0;
  bool planted_ = false;
  Spread spread_;
  VoteState votes_;
};

}  // namespace boundary_forest
