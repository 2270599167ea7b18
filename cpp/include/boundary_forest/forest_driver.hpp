// A forest whose trees are held by several engines, seen by the one who drives them.
//
// Each engine learns the whole stream for its own trees (Params::first_tree). What is left are answers,
// which are made of all trees' ends (combine.hpp), and the decisions that need all trees: how votes are
// weighed (voting.hpp) is decided here, as trees do not depend on it. Which trees are grown anew from all
// that is stored, and which are cut for want of room, the engines must be told (parts.cpp): so they stop
// at block_end().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "boundary_forest/adaptation.hpp"
#include "boundary_forest/boundary_forest.hpp"
#include "boundary_forest/storage_bound.hpp"
#include "boundary_forest/types.hpp"

namespace boundary_forest {

class ForestDriver {
 public:
  // Params of the whole forest.
  explicit ForestDriver(const Params& params);

  // The ends of all trees, by place, for some rows.
  struct EndsView {
    std::size_t rows = 0;
    const double* labels = nullptr;     // rows x trees x label_length
    const double* distances = nullptr;  // rows x trees
  };
  // What is asked about them.
  struct Asked {
    Table<double>* out = nullptr;
    bool shares = false;  // of each class, by rank, in place of the class
    Ranks ranks = {};
    Table<double>* weights = nullptr;  // of each tree; null: not asked
  };

  const Params& params() const { return params_; }
  Arrival seen() const { return seen_; }
  std::uint32_t n_classes() const { return n_classes_; }
  bool is_planted() const { return planted_; }
  double label_deviation() const { return spread_.deviation(); }

  // How many may have arrived before the engines must stop, if so many examples are stored now.
  Arrival block_end(Arrival stored) const;
  // Whether the ends must be known for the rows up to there.
  bool wants_ends() const;
  // What is due now: which step of growing anew, 0 for none; and whether a tree must be cut, n_cut were.
  Arrival growing_step() const { return planted_ ? schedule_.growing_step(seen_) : 0; }
  bool is_full(Arrival stored, std::size_t n_cut) const;

  // Rows were learned, and the trees ended there just before each of them was. No ends where they are
  // neither wanted nor asked about.
  void learn(std::span<const double> labels, std::size_t n, const EndsView& ends,
             const Asked& asked);
  void learn_offline(std::span<const double> labels, std::size_t n);

  // Answers, as of now.
  void answer(const EndsView& ends, const Asked& asked) const;

  const Adaptation& votes() const { return votes_; }
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
  };
  void restore(const State& state);

 private:
  void answer(const EndsView& ends, std::size_t row, const Asked& asked, const Ballot& ballot,
              std::span<const double*> labels) const;
  std::span<const double> distances(const EndsView& ends, std::size_t row) const {
    return {ends.distances + row * params_.n_T, params_.n_T};
  }
  void labels_of(const EndsView& ends, std::size_t row, std::span<const double*> out) const;
  void take_note_of(const double* label);
  bool are_classes() const { return params_.estimator == Estimator::shepard_vote; }

  const Params params_;
  const Schedule schedule_;
  const StorageBound bound_;
  std::uint64_t seen_ = 0;
  std::uint32_t n_classes_ = 0;
  bool planted_ = false;
  Spread spread_;
  Adaptation votes_;  // rule, errors and losses alone
};

}  // namespace boundary_forest
