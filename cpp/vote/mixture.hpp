// weights="mixture", beyond the paper: what the experts of experts.hpp answer, mixed with weights that are
// fitted to rows before they are learned.
//
// Before each decision up to 250 rows are judged: the products of the experts' errors are summed, and half-way
// and at the decision non-negative weights that sum to 1 follow from them, pulled a little towards equal ones.
// At most four experts keep a weight. The sums of earlier rows count for 0.7 at each decision. On the second
// half of the rows it is judged how sharp probabilities should be (calibration.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "distance/label_metric.hpp"
#include "store/example_store.hpp"
#include "tree/nearest.hpp"
#include "vote/calibration.hpp"
#include "vote/combine.hpp"
#include "vote/experts.hpp"
#include "vote/feature_map.hpp"
#include "vote/linear_model.hpp"
#include "vote/local_fit.hpp"

namespace boundary_forest {

// Classes in order of their first example: sums over classes run in this order, because codes may depend on
// more than the examples.
class ClassOrder {
 public:
  std::span<const std::uint32_t> codes() const { return codes_; }
  std::size_t size() const { return codes_.size(); }
  // Its place; `nothing` if there was no example yet.
  std::uint32_t find(std::uint32_t code) const {
    return code < places_.size() ? places_[code] : nothing;
  }
  std::uint32_t add(std::uint32_t code) {
    if (places_.size() <= code) places_.resize(code + 1, nothing);
    if (places_[code] == nothing) {
      places_[code] = static_cast<std::uint32_t>(codes_.size());
      codes_.push_back(code);
    }
    return places_[code];
  }

 private:
  std::vector<std::uint32_t> codes_;
  std::vector<std::uint32_t> places_;  // by code
};

struct MixtureState {
  std::vector<double> weights;  // of the experts; they sum to 1. None if nothing is mixed
  std::uint8_t sharpness = first_sharpness;
  ClassOrder classes;
  FeatureMap map;         // of the rows that the models over all rows have
  Arrival first_row = 0;  // of them
  LinearModel linear;
  // Of the rows that were judged, of which those before the last decision count for 0.7, and so on.
  double n_judged = 0.0;
  std::vector<double> units;     // 1 / deviation of each output, as the trial began; not of classes
  std::vector<double> products;  // of the errors of experts k and l <= k
  std::vector<double> losses;    // of each of the sharpnesses, in bits
  bool is_calibrating = false;   // in the second half of a trial

  bool is_mixed() const { return !weights.empty(); }
  void add_row(std::span<const double> row, const double* label, bool votes, double sign = 1.0);
  // The models over all rows begin with these, the first of which is arrival `first`.
  void begin_models(Arrival first, std::span<const double> rows, std::span<const double> labels,
                    std::size_t n_features, bool votes);
  void begin_trial(const Spread& spread, bool votes);
  // Half-way: weights from the rows so far.
  void look_ahead();
  void decide();
  // The models over all rows, if they were solved.
  void solve_again();
  // If the models over all rows are lost, and had a weight: as before the first decision.
  void drop_lost_model();
  bool weighs_models() const;
  void widen(std::size_t n_features);

 private:
  bool fit_weights();
};

// As a forest begins that has learned nothing.
void begin_mixture(const Params& params, MixtureState& mixture);

// The quadratic model's answers for stored examples: many rows in turn find the same ones. Two examples may want
// one place; then the later one has it.
class KnownScores {
 public:
  // Of so many outputs.
  void begin(std::size_t n_outputs);
  // Where they are; NaN stands for those that are not known.
  double* of(Slot slot);

 private:
  static constexpr std::size_t n_places = 8192;

  std::size_t n_outputs_ = 0;
  std::vector<Slot> slots_;
  std::vector<double> scores_;
};

// One row at a time; what is computed for a row lasts until the next, but for scores of examples: the mixture must
// stay as it is.
class RowMixture {
 public:
  RowMixture(const ExampleStore& store, std::span<const double> scales, const MixtureState& mixture,
             bool votes)
      : store_(store),
        fit_(store, scales),
        scored_fit_(store, scales),
        mixture_(mixture),
        votes_(votes) {}

  // The trees end at v.
  void begin(const Position& query, std::span<const Leaf> v);

  // The mean label, by the weights in use.
  void label(std::span<double> out);
  // The probability of each class that `seen` has and that has a rank.
  std::span<const Vote> probabilities(const ClassOrder& seen, Ranks ranks,
                                      const ClassWeights& classes);
  // What each tree's example is multiplied by in the answer; the models over all rows have the rest.
  void tree_weights(std::span<double> out);

  // Adds the errors of all experts to those of `trial`, which is the state that this refers to.
  void judge(const double* label, const ClassOrder& seen, MixtureState& trial);

 private:
  void answer_local(std::size_t expert);
  LocalFit& fit_of(std::size_t expert);
  void begin_scores();
  double score(const double* terms, std::size_t column) const;
  std::span<const double> mapped(const Position& position);
  void answer_models();
  void answer_all(std::span<const double> weights);
  void mix_shares(std::span<const double> weights, const ClassOrder& seen, Ranks ranks);
  template <class SetLocal, class Add>
  void judge_class(std::uint32_t code, const ClassOrder& seen, MixtureState& trial,
                   std::span<double> errors, SetLocal&& set_local, Add&& add);
  void judge_sharpness(std::uint32_t code, const ClassOrder& seen, MixtureState& trial);
  double* answer(std::size_t expert) { return answers_.data() + expert * n_columns_; }

  const ExampleStore& store_;
  LocalFit fit_;
  LocalFit scored_fit_;
  const MixtureState& mixture_;
  const bool votes_;
  Position query_{};
  std::vector<std::uint32_t> classes_;    // that the ends have, in order of appearance
  std::vector<std::uint32_t> column_of_;  // of each end's class
  std::vector<const double*> labels_;     // of the ends
  std::vector<double> lowest_;            // of their labels, by output
  std::vector<double> highest_;
  std::size_t n_columns_ = 0;                  // classes of the ends, or outputs
  std::vector<double> answers_;                // experts x columns
  std::array<std::vector<double>, 2> models_;  // linear, quadratic; by output. None: not answered
  bool has_scores_ = false;
  bool is_first_ = true;  // row: then no example is known
  KnownScores known_;
  std::vector<double> scores_;  // ends x columns, less the query's
  std::vector<double> row_;
  std::vector<double> mapped_;
  std::vector<Vote> shares_;
  std::vector<char> is_listed_;  // of each class of `seen`: among the shares
};

}  // namespace boundary_forest
