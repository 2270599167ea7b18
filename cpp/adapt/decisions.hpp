// What a forest decides for itself as it learns, from numbers of arrivals, labels and the trees' answers
// alone; the learner carries it out (forest/). Beyond the paper: without these parameters there is nothing
// to decide.
//
// Votes: each rule of vote_rules.hpp is tried on rows before they are learned (voting.hpp); the one with
// the fewest mistakes, or the least squared error, is used from then on. So are the experts of a mixture,
// which get weights (mixture.hpp). Weights of features: see
// weight_learning.hpp; if they change, trees with the new ones succeed those that have no lifetime, step
// by step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "adapt/adaptation.hpp"
#include "adapt/depth_limit.hpp"
#include "adapt/lifetimes.hpp"
#include "adapt/storage_limit.hpp"
#include "base/types.hpp"
#include "distance/label_metric.hpp"
#include "tree/tree_set.hpp"

namespace boundary_forest {

class Decisions {
 public:
  // `settings` are those of trees whose features have no learned weights.
  Decisions(const Params& params, std::shared_ptr<const TreeSettings> settings);

  const Schedule& schedule() const { return schedule_; }
  const Lifetimes& lifetimes() const { return lifetimes_; }
  const DepthLimit& depth_limit() const { return depth_limit_; }

  // As a forest begins that has learned nothing.
  Adaptation first(std::size_t row_bytes) const;

  // A block that begins after `seen` arrivals must not go on beyond so many, if so many are stored.
  Arrival block_end(Arrival seen, Arrival stored) const;

  // After `seen` arrivals: the rule for votes, and weights of features, as far as they are due.
  void decide(Arrival seen, const Spread& spread, std::span<const LearnerTree> trees,
              const ExampleStore& store, std::size_t n_threads, Adaptation& adaptation) const;
  // Weights from the last n_rows arrivals; half of them from the reservoir while its members are replayed.
  void learn_weights(Arrival seen, Arrival n_rows, std::span<const LearnerTree> trees,
                     const ExampleStore& store, std::size_t n_threads,
                     Adaptation& adaptation) const;

  // Whether this tree gets a successor with new weights in a step after the last doubling.
  bool gets_successor(const BoundaryTree& tree, Arrival step, const Adaptation& adaptation) const;

  // Whether a tree must be cut after `seen` arrivals of which so many are stored; n_cut were.
  bool must_cut(Arrival seen, Arrival stored, std::size_t n_cut) const {
    return storage_limit_.is_reached(seen, stored, n_cut);
  }

  // Of trees with these weights.
  std::shared_ptr<const TreeSettings> settings_with(const LogWeights& log_weights) const;

 private:
  // The models over all rows of a mixture, from the rows of the window.
  void begin_models(Adaptation& adaptation) const;

  const Params& params_;
  const std::shared_ptr<const TreeSettings> settings_;
  const Schedule schedule_;
  const Lifetimes lifetimes_;
  const StorageLimit storage_limit_;
  const DepthLimit depth_limit_;
};

}  // namespace boundary_forest
