// The state of a mixture as plain arrays: what is saved, copied and hashed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "vote/mixture.hpp"

namespace boundary_forest {

struct MixtureArrays {
  std::vector<double> weights;         // of the experts, then the sharpness; none: nothing is mixed
  std::vector<double> trial;           // rows judged, is_calibrating, units, products, losses
  std::vector<std::uint32_t> classes;  // codes in order of their first example
  // First row that the models over all rows have, knots per feature, step of their terms, then for each feature
  // centre, unit and knots: see FeatureMap. None if there is no model.
  std::vector<double> linear_map;
  // n, unit, number of products of features among the terms, origin, origin of labels, sums, products, sums of
  // labels, cross products: see LinearSums. None if there is no model.
  std::vector<double> linear_sums;
  // For each output the intercept and coefficients of the linear fit, then those of the quadratic one, if there
  // is one.
  std::vector<double> linear_model;
};

// Takes parts of known lengths from the front.
class NumberReader {
 public:
  explicit NumberReader(std::span<const double> all) : left_(all) {}

  std::vector<double> next(std::size_t n) {
    const std::span<const double> part = left_.first(n);
    left_ = left_.subspan(n);
    return {part.begin(), part.end()};
  }
  std::size_t n_left() const { return left_.size(); }

 private:
  std::span<const double> left_;
};

template <class Part>
void append(std::vector<double>& all, const Part& part) {
  all.insert(all.end(), part.begin(), part.end());
}

// One model, behind those that are there.
void append_model(const LinearModel& model, MixtureArrays& arrays);

// These throw as mixture_of does.
LinearModel linear_of(std::span<const double> saved_sums, std::span<const double> saved_fits,
                      LinearModel::Kind kind, std::size_t D, std::size_t n_outputs, bool votes,
                      std::uint64_t seen, std::size_t step = 1);
ClassOrder class_order_of(const MixtureArrays& arrays, bool votes, std::uint32_t n_classes);

MixtureArrays arrays_of(const MixtureState& mixture);

// Throws std::invalid_argument if these could not have come about in a forest that has seen so many rows
// of so many classes.
MixtureState mixture_of(const MixtureArrays& arrays, const Params& params, std::uint64_t seen,
                        std::uint32_t n_classes);

}  // namespace boundary_forest
