// d: the distance between positions, compared in reduced form and converted at the edge.
//
// Reduced distances order like distances but are cheaper (squared for the Euclidean metric). They
// are doubles that hold the kernel's sum exactly: an integer for uint8, the float32 or float64 sum
// else; rows of int8 and float16 are compared as the float32 that have their values. The order of
// summation is part of the definition: 16 lanes, lane l takes the features i = l mod 16 in order, then
// 16 -> 8 -> 4 -> 2 -> 1, no fused multiply-add; so every instruction set and reference/ agree bit for
// bit (promises 1 and 2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace boundary_forest {

class QueryRows;
class Prefilter;
class RowSketches;

class Metric {
 public:
  static constexpr std::uint32_t group =
      64;  // rows that are measured in one call, where there are many

  virtual ~Metric() = default;

  // Reduced distances from `query` to `n` stored rows. Never NaN.
  virtual void distances(const Position& query, const std::byte* const* rows, std::size_t n,
                         double* out) const = 0;

  // Whether sketches of rows (row_sketches.hpp) tell which of them are far apart.
  virtual bool has_sketches() const { return false; }

  // What compares the rows of a block with many stored rows at once; `block` must outlive it. `sketches` are
  // those of all stored rows that it will meet, the block's own included if they are stored, or null.
  virtual std::unique_ptr<Prefilter> prefilter(const QueryRows& block,
                                               std::shared_ptr<const RowSketches> sketches = {},
                                               std::size_t n_threads = 1) const;

  // Whether distances depend on the directions of rows alone, and order as the Euclidean distances of rows
  // that are divided by their lengths: then these are what is coded.
  virtual bool compares_directions() const { return false; }

  // A metric for rows that are coded as bytes, all features with one scale, which orders them as this one
  // orders the rows; null where there is none, or where rows are bytes already.
  virtual std::unique_ptr<Metric> on_codes() const { return nullptr; }

  // The distance that a reduced distance stands for.
  virtual double distance(double reduced) const { return reduced; }

  // What differences of features are multiplied by, the roots of their weights; none: nothing.
  virtual std::span<const double> scales() const { return {}; }

  // May be below zero: then it cannot weigh a Shepard vote or mean.
  virtual bool may_be_negative() const { return false; }

  // A user's function may throw; a call that learns with it is then taken back whole.
  virtual bool may_fail() const { return false; }

  // Whether sketches gain time where few rows descend together, too.
  virtual bool has_sketches_for_few() const { return false; }

  // Runs on the calling thread alone (a Python callable).
  virtual bool single_threaded() const { return false; }
};

// The names of the built-in metrics.
std::vector<std::string> metric_names();

// A built-in metric by its name; p is minkowski's, at least 1. Throws std::invalid_argument for any
// other name.
std::unique_ptr<Metric> make_metric(const std::string& name, double p, ElementType stored,
                                    std::size_t n_features);

// Of a feature, unless it is 0.
inline constexpr double least_weight = 1e-60;
inline constexpr double largest_weight = 1e60;

// The Euclidean metric whose squared differences are multiplied by weights, one for each feature. Each
// is 0 or within these bounds. Differences are multiplied by the roots, which have the type that
// sums have: float64 for rows of float64, float32 for others.
std::unique_ptr<Metric> make_weighted_metric(std::span<const double> weights, ElementType stored);

// A compiled function: the distance between two rows of n doubles. Stored rows of another type are
// converted for it.
using DistanceFunction = double (*)(const double* x, const double* y, std::int64_t n);

std::unique_ptr<Metric> make_metric(DistanceFunction function, ElementType stored,
                                    std::size_t n_features, bool needs_non_negative);

// Copies n elements into doubles; for metrics that see every row as doubles.
void to_doubles(const Position& row, std::size_t n, double* out);

// Throws std::domain_error where a user's metric returned what no distance can be.
double checked_distance(double value, bool needs_non_negative);

// The instruction set that built-in metrics use: "scalar", "avx2", "avx512". Chosen at first use from what
// the processor has, or from BOUNDARY_FOREST_ISA, which must name one that it has.
std::string instruction_set();

}  // namespace boundary_forest
