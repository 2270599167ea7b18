// What single examples weigh in the answers of experts: the distinct examples that the trees end at for one
// query, and their coefficients in a mean or in a ridge regression around the query.
//
// A ridge regression answers mean - centre' (S' S + penalty)^-1 S' t, where rows of S and t are the examples'
// positions relative to the query and their labels, less the weighted means `centre` and `mean`, times the
// roots of the weights. That is linear in the labels, with coefficients that do not depend on them: so one
// system is solved for all classes or outputs. It is solved in whichever space is smaller, that of the
// features or that of the examples. Sums run in the order of the trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "store/example_store.hpp"
#include "tree/nearest.hpp"
#include "vote/experts.hpp"

namespace boundary_forest {

class LocalFit {
 public:
  // `scales` are those of Metric::scales().
  LocalFit(const ExampleStore& store, std::span<const double> scales)
      : store_(store), scales_(scales) {}

  // For the query, whose trees end at v. What v and query refer to must outlive the calls below.
  void begin(const Position& query, std::span<const Leaf> v);
  // The same examples in a wider space: `relative` (ends x n_scores) are scores less the query's. They are
  // scaled so that their squares sum to 8 times those of the positions: from 4 to 16 the trial's errors
  // differed by less than 1 %.
  void begin_with_scores(LocalFit& positions, std::span<const double> relative,
                         std::size_t n_scores);

  // The distinct examples, by the first tree that ends at each; how many trees end at each.
  std::span<const Slot> ends() const { return ends_; }
  std::span<const double> counts() const { return counts_; }
  // The place among them of what each tree ends at.
  std::span<const std::uint32_t> end_of_tree() const { return end_of_tree_; }

  // What each example's label is multiplied by in the expert's answer; they sum to 1. Not of the models
  // over all rows. Valid until the next call.
  std::span<const double> coefficients(const Expert& expert);

 private:
  void measure();
  void leave_out_equal_features();
  void measure_squares();
  void weigh(std::uint8_t power);
  void prepare(std::uint8_t power);
  void prepare_in_space_of_features();
  void prepare_in_space_of_ends();
  bool fit_ridge(double penalty);
  bool in_space_of_ends() const { return ends_.size() < D_; }
  std::size_t size_of_system() const { return in_space_of_ends() ? ends_.size() : D_; }

  const ExampleStore& store_;
  const std::span<const double> scales_;
  Position query_{};
  std::vector<Slot> ends_;
  std::vector<double> counts_;
  std::vector<std::uint32_t> end_of_tree_;
  std::vector<std::uint32_t> place_of_end_;  // a hash table of their places, or `nothing`
  bool is_measured_ = false;
  // Features in which some end differs from the query; the others tell nothing, and are left out. (So
  // features that are always zero do not matter.)
  std::size_t D_ = 0;
  std::vector<std::uint64_t> differs_;  // of each feature: 0 if it is left out
  std::vector<std::uint32_t> kept_;
  std::vector<double> differences_;  // ends x D: positions relative to the query, scaled
  std::vector<double> squares_;      // of the distances
  double least_ = 0.0;               // of them
  bool has_products_ = false;
  std::vector<double> products_;  // ends x ends: of these positions, in the space of the ends
  int weighed_ = -1;              // the power of the weights
  std::vector<double> weights_;   // of the examples; they sum to 1
  int prepared_ = -1;             // the power of what follows
  std::vector<double> roots_;     // of the weights
  std::vector<double> centre_;    // in the space of the ends: S centre
  std::vector<double> gram_;      // S' S or S S'
  double scale_ = 0.0;            // the mean variance of the features
  // For a moment.
  std::vector<double> rows_;
  std::vector<double> system_;
  std::vector<double> rhs_;
  std::vector<double> coefficients_;
};

}  // namespace boundary_forest
